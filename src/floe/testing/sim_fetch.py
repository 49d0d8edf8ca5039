"""A consumer's side of fetch sessions (KIP-227): full requests first, then only what has changed.

Without a session, or with an API version that knows none, every request is a full one.
"""

from floe.model.error_codes import ErrorCode
from floe.model.ids import TopicId
from floe.testing.sim_history import Partition
from floe.wire.kafka.messages import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

FIRST_VERSION = 7
NO_SESSION_EPOCH = -1


class FetchSession:
    """What the broker was told last, if it remembers."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._id = 0
        self._epoch = 0
        self._told: dict[Partition, tuple[int, int]] = {}  # position, bytes
        self._asked: dict[Partition, tuple[int, int]] = {}

    def reset(self) -> None:
        """Begin again with a full request."""
        self._id, self._epoch = 0, 0
        self._told = {}

    def request(
        self, positions: dict[Partition, int], partition_bytes: int, topics: dict[str, TopicId]
    ) -> FetchRequest:
        """Ask for these partitions from these positions on; limits are the caller's to set."""
        asked = {partition: (position, partition_bytes) for partition, position in positions.items()}
        changed = {partition: ask for partition, ask in asked.items() if self._told.get(partition) != ask}
        gone = [partition for partition in self._told if partition not in asked]
        self._asked = asked
        by_topic: dict[str, FetchTopic] = {}
        for (name, index), (position, size) in changed.items():
            topic = by_topic.setdefault(name, FetchTopic(topic=name, topic_id=topics[name]))
            topic.partitions.append(
                FetchPartition(partition=index, fetch_offset=position, partition_max_bytes=size)
            )
        forgotten = [
            ForgottenTopic(topic=name, topic_id=topics[name], partitions=[index]) for name, index in gone
        ]
        return FetchRequest(
            session_id=self._id,
            session_epoch=self._epoch if self._is_wanted else NO_SESSION_EPOCH,
            topics=list(by_topic.values()),
            forgotten_topics_data=forgotten,
        )

    def answered(self, answer: FetchResponse) -> bool:
        """Take the broker's word on the session; False when it wants a full request."""
        if answer.error_code != ErrorCode.NONE:
            self.reset()
            return False
        if not self._is_wanted or answer.session_id == 0:
            self.reset()
        else:
            self._id = answer.session_id
            self._epoch += 1
            self._told = self._asked
        return True
