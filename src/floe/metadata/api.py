"""What engines and front doors may ask of the metadata plane; answered by `Router`.

Every call names what it touches (a topic, a range, an object), never a vnode: the router finds the
vnode and its leader. All answers are durable facts. Calls raise `Unavailable` when no leader answers
in time and `Fenced` only inside the metadata room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from floe.model.coordinates import EntryResult, ObjectCommit, RangeView
from floe.model.ids import ObjectId, Offset, ProducerId, RangeId, TopicId, VnodeId
from floe.model.topic import Topic
from floe.model.work import WorkItem, WorkKind, WorkResult


@dataclass(frozen=True, slots=True)
class FindRequest:
    """Rows of one range from `offset` on, up to about `max_bytes` of them (at least one row)."""

    range: RangeId
    offset: Offset
    max_bytes: int


class TopicDirectory(Protocol):
    """A broker's view of all topics; follows the coordinators, costs no I/O to read."""

    def by_name(self, name: str) -> Topic | None: ...

    def by_id(self, topic_id: TopicId) -> Topic | None: ...

    def all(self) -> Sequence[Topic]:
        """Every topic, by name."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever any topic changes; keys caches of encoded answers."""
        ...


class Metadata(Protocol):
    """The metadata plane as one broker sees it."""

    @property
    def topics(self) -> TopicDirectory: ...

    def vnode_of_range(self, range_id: RangeId) -> VnodeId: ...

    async def create_topic(
        self, name: str, *, partitions: int, config: Mapping[str, str], validate_only: bool = False
    ) -> Topic:
        """Raise `Rejected` with Kafka's code, or return when the topic is visible to clients."""
        ...

    async def delete_topic(self, topic_id: TopicId) -> None:
        """Hidden from clients when this returns; the rows go in the background."""
        ...

    async def add_partitions(self, name: str, *, total: int, validate_only: bool = False) -> Topic: ...

    async def alter_config(
        self, name: str, *, changes: Mapping[str, str | None], validate_only: bool = False
    ) -> Topic: ...

    async def lease_object_ids(self, count: int) -> Sequence[ObjectId]:
        """Ids of the current bucket, leased durably from the bucket's home."""
        ...

    async def commit(self, vnode: VnodeId, commits: Sequence[ObjectCommit]) -> list[tuple[EntryResult, ...]]:
        """Commit objects in order; entries of each belong to ranges of this vnode.

        Idempotent per object: a repeat returns the first call's results. A commit of an object whose
        bucket is closed answers REQUEST_TIMED_OUT for each of its entries.
        """
        ...

    async def find(self, requests: Sequence[FindRequest]) -> list[RangeView]:
        """One view per request, now."""
        ...

    def view_now(self, range_id: RangeId) -> RangeView | None:
        """The published state of a range without rows, at no I/O; None when this broker does not hold it.

        It never claims more than is durable, but may lag behind another broker's leader: only `find` may
        say that an offset is out of range.
        """
        ...

    async def wait(self, positions: Mapping[RangeId, Offset], timeout_ms: int) -> set[RangeId]:
        """Return the ranges that have something past their position, as soon as one has.

        Also woken by log start, deletion and loss of leadership. Empty after the timeout. A range whose
        end is already past its position returns at once.
        """
        ...

    async def find_timestamp(self, range_id: RangeId, timestamp: int) -> RangeView:
        """The view whose first row is the first with a record at or after the timestamp."""
        ...

    async def find_max_timestamp(self, range_id: RangeId) -> RangeView:
        """The view whose first row is the first that holds the range's greatest timestamp."""
        ...

    async def delete_records(self, range_id: RangeId, before: Offset) -> RangeView:
        """Raise the log start; -1 means the log end. Returns the view after it."""
        ...

    async def next_producer_id(self) -> ProducerId: ...

    async def claim_work(self, worker: str, kinds: Sequence[WorkKind], limit: int) -> list[WorkItem]: ...

    async def finish_work(self, item: WorkItem, result: WorkResult) -> None: ...
