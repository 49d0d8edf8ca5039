"""Fetch sessions (KIP-227): the broker remembers what a consumer reads, so that each side sends changes only.

A session belongs to whoever knows its id and says its next epoch. When there is no room for a session, or
its client asks for none, every request and answer is a full one; Kafka allows that at any time.

Invariants:
- Sessions and the partitions they remember are bounded.
- The epoch of a session rises by one with each request; any other epoch is refused and changes nothing.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

from floe.model.error_codes import ErrorCode
from floe.model.ids import TopicId
from floe.wire.kafka.messages import FetchPartition, FetchRequest, ForgottenTopic

PARTITIONS_MAX = 200_000  # remembered by all sessions together, about 200 bytes each
EPOCH_INITIAL = 0
EPOCH_FINAL = -1
EPOCH_MAX = 0x7FFFFFFF
TOPIC_ID_VERSION = 13

Key = tuple[str | TopicId, int]


class Target:
    """One partition that a consumer wants, and what it was told last; -1 means nothing yet."""

    __slots__ = (
        "leader_epoch", "max_bytes", "name", "offset", "partition", "told_error", "told_high_watermark",
        "told_log_start", "topic_id",
    )  # fmt: skip

    def __init__(self, name: str, topic_id: TopicId, asked: FetchPartition) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition = asked.partition
        self.told_error = 0
        self.told_high_watermark = -1
        self.told_log_start = -1
        self.update(asked)

    def update(self, asked: FetchPartition) -> None:
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch


class Session:
    """What one consumer reads, in the order in which it is served."""

    __slots__ = ("epoch", "id", "targets", "used_ms", "uses_ids")

    def __init__(self, session_id: int, targets: dict[Key, Target], *, uses_ids: bool, now_ms: int) -> None:
        self.id = session_id
        self.epoch = EPOCH_INITIAL + 1
        self.targets = targets
        self.uses_ids = uses_ids
        self.used_ms = now_ms

    def served(self, key: Key) -> None:
        """Data was sent for this partition: the others come first next time."""
        target = self.targets.pop(key, None)
        if target is not None:
            self.targets[key] = target


class Fetch:
    """One request in terms of its session: `targets` in order; `session` None for a full answer that opens
    none.

    `is_incremental` answers leave out what has not changed.
    """

    __slots__ = ("error", "is_incremental", "session", "targets")

    def __init__(
        self,
        targets: dict[Key, Target],
        *,
        session: Session | None = None,
        is_incremental: bool = False,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.targets = targets
        self.session = session
        self.is_incremental = is_incremental
        self.error = error


class IdSource(Protocol):
    """A seeded `random.Random`."""

    def getrandbits(self, k: int, /) -> int: ...


class FetchSessions:
    """All sessions of a broker, the longest unused first."""

    def __init__(self, *, limit: int, idle_ms: int, random: IdSource) -> None:
        self._limit = limit
        self._idle_ms = idle_ms
        self._random = random
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self._partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> Fetch:
        """What this request asks for, after the changes that it brings to its session."""
        if request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL):
            self._close(request.session_id)
            targets = _targets(request, version)
            if request.session_epoch == EPOCH_FINAL:
                return Fetch(targets)
            return Fetch(targets, session=self._open(targets, version, now_ms))
        session = self._sessions.get(request.session_id)
        if session is None:
            return Fetch({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.uses_ids != (version >= TOPIC_ID_VERSION):
            return Fetch({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.epoch != request.session_epoch:
            return Fetch({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        return self._continue(session, request, version, now_ms)

    def _continue(self, session: Session, request: FetchRequest, version: int, now_ms: int) -> Fetch:
        before = len(session.targets)
        for key, target in _targets(request, version).items():
            known = session.targets.get(key)
            if known is None:
                session.targets[key] = target
            else:
                known.offset, known.max_bytes = target.offset, target.max_bytes
                known.leader_epoch = target.leader_epoch
        for key in _forgotten(request.forgotten_topics_data, version):
            session.targets.pop(key, None)
        self._partition_count += len(session.targets) - before
        if not session.targets or self._partition_count > PARTITIONS_MAX:
            self._close(session.id)
            return Fetch(session.targets)
        session.epoch = session.epoch + 1 if session.epoch < EPOCH_MAX else EPOCH_INITIAL + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.id)
        return Fetch(session.targets, session=session, is_incremental=True)

    def _open(self, targets: dict[Key, Target], version: int, now_ms: int) -> Session | None:
        if not targets:
            return None
        while len(self._sessions) >= self._limit or self._partition_count + len(targets) > PARTITIONS_MAX:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.used_ms < self._idle_ms:
                return None
            self._close(oldest.id)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._random.getrandbits(31)
        session = Session(session_id, targets, uses_ids=version >= TOPIC_ID_VERSION, now_ms=now_ms)
        self._sessions[session_id] = session
        self._partition_count += len(targets)
        return session

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session.targets)


def _targets(request: FetchRequest, version: int) -> dict[Key, Target]:
    by_id = version >= TOPIC_ID_VERSION
    return {
        (topic.topic_id if by_id else topic.topic, asked.partition): Target(
            topic.topic, topic.topic_id, asked
        )
        for topic in request.topics
        for asked in topic.partitions
    }


def _forgotten(topics: Iterable[ForgottenTopic], version: int) -> Iterable[Key]:
    by_id = version >= TOPIC_ID_VERSION
    for topic in topics:
        for partition in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic), partition
