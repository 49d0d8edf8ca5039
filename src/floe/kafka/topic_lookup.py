"""What Produce and Fetch need of a topic, worked out once per change of the directory."""

from floe.metadata.api import TopicDirectory
from floe.model.error_codes import ErrorCode
from floe.model.ids import RangeId, TopicId
from floe.model.topic import Placement, Topic

MAX_MESSAGE_BYTES = "max.message.bytes"
TIMESTAMP_TYPE = "message.timestamp.type"
LEADER_EPOCH = 0  # object topics never change leaders, so the epoch is stable


class TopicRoute:
    """One topic as the hot path sees it."""

    __slots__ = (
        "batch_bytes_max",
        "is_log_append_time",
        "is_produced_by_kafka",
        "is_special",
        "partition_count",
        "ranges",
        "topic",
    )

    def __init__(self, topic: Topic, batch_bytes_default: int) -> None:
        self.topic = topic
        self.ranges: tuple[RangeId, ...] = topic.ranges
        self.partition_count = len(topic.ranges)
        self.batch_bytes_max = int(topic.config.get(MAX_MESSAGE_BYTES, batch_bytes_default))
        self.is_log_append_time = topic.config.get(TIMESTAMP_TYPE) == "LogAppendTime"
        self.is_produced_by_kafka = topic.placement is Placement.KAFKA
        self.is_special = self.is_log_append_time or not self.is_produced_by_kafka


class TopicLookup:
    """Routes by name and id; bounded by the topics that exist."""

    __slots__ = ("_batch_bytes_default", "_by_id", "_by_name", "_directory", "_version")

    def __init__(self, directory: TopicDirectory, batch_bytes_default: int) -> None:
        self._directory = directory
        self._batch_bytes_default = batch_bytes_default
        self._version = -1
        self._by_name: dict[str, TopicRoute] = {}
        self._by_id: dict[TopicId, TopicRoute] = {}

    def by_name(self, name: str) -> TopicRoute | None:
        """The topic of this name, if clients can see one."""
        if self._directory.version != self._version:
            self._forget()
        return self._by_name.get(name) or self._add(self._directory.by_name(name))

    def by_id(self, topic_id: TopicId) -> TopicRoute | None:
        """The topic of this id, if clients can see one."""
        if self._directory.version != self._version:
            self._forget()
        return self._by_id.get(topic_id) or self._add(self._directory.by_id(topic_id))

    def _forget(self) -> None:
        self._by_name.clear()
        self._by_id.clear()
        self._version = self._directory.version

    def _add(self, topic: Topic | None) -> TopicRoute | None:
        if topic is None:
            return None
        route = TopicRoute(topic, self._batch_bytes_default)
        self._by_name[topic.name] = route
        self._by_id[topic.id] = route
        return route


def epoch_error(current_leader_epoch: int) -> ErrorCode:
    """What a client is told whose idea of the leader epoch is not ours; -1 means that it has none."""
    if current_leader_epoch < 0 or current_leader_epoch == LEADER_EPOCH:
        return ErrorCode.NONE
    if current_leader_epoch > LEADER_EPOCH:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.FENCED_LEADER_EPOCH
