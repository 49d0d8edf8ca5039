"""One vnode on a memory store, with its coordinators and a clock that moves when told."""

from collections.abc import Sequence
from random import Random

import msgspec

from floe.metadata.api import FindRequest
from floe.metadata.coordinators.objects import ObjectHome
from floe.metadata.coordinators.ranges import RangeCoordinator, RangeLimits, RangeSpec
from floe.metadata.store.memory import MemoryDisk, MemoryStore
from floe.metadata.vnode import Vnode
from floe.model.coordinates import BatchEntry, EntryResult, ObjectCommit, RangeView, RowFlags
from floe.model.ids import Bucket, ObjectId, Offset, RangeId, Term, TopicId, VnodeId, bucket_at
from floe.model.ids import object_id as make_object_id
from floe.observability.metrics import Metrics

NOW_MS = 1_700_000_000_000
TOPIC = TopicId(b"t" * 16)


class ManualClock:
    """Time stands still until `now` is changed."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


class Shard:
    """A vnode and its coordinators; `crash` reopens them on what was durable."""

    def __init__(self, *, random: Random | None = None) -> None:
        self.clock = ManualClock()
        self.random = random
        self._next_object = 0
        self._open(MemoryDisk(1))

    def _open(self, disk: MemoryDisk) -> None:
        self.store = MemoryStore(disk=disk, random=self.random)
        self.vnode = Vnode(self.store, VnodeId(0))
        self.vnode.led(Term(disk.terms[0]))
        self.ranges = RangeCoordinator(self.vnode, clock=self.clock, metrics=Metrics())
        self.home = ObjectHome(self.vnode, clock=self.clock)

    def crash(self) -> None:
        disk = self.store.crash()
        self.vnode.led(None)
        self._open(disk)

    def lead_again(self) -> None:
        self.vnode.led(Term(self.store.disk.terms[0]))

    def new_object(self) -> ObjectId:
        self._next_object += 1
        return make_object_id(bucket_at(self.clock.now), self._next_object)

    @property
    def bucket(self) -> Bucket:
        return bucket_at(self.clock.now)

    async def create(self, *range_ids: int, retention_ms: int = -1, retention_bytes: int = -1) -> None:
        limits = RangeLimits(retention_ms, retention_bytes)
        await self.ranges.create_ranges([RangeSpec(RangeId(r), TOPIC, limits) for r in range_ids])

    async def put(self, *entries: BatchEntry, object_id: ObjectId | None = None) -> tuple[EntryResult, ...]:
        """Commit one object; entries are laid out one after the other."""
        commit = ObjectCommit(self.new_object() if object_id is None else object_id, laid_out(entries))
        (results,) = await self.ranges.commit([commit])
        return results

    async def find(self, range_id: int, offset: int, max_bytes: int = 1 << 30) -> RangeView:
        (view,) = await self.ranges.find([FindRequest(RangeId(range_id), Offset(offset), max_bytes)])
        return view

    async def ends(self, range_id: int) -> tuple[int, int]:
        view = await self.find(range_id, 0, 0)
        return view.log_start, view.log_end

    def keys(self, prefix: bytes) -> list[bytes]:
        """The durable keys of one kind."""
        pairs = self.store.disk.vnodes[0].scan(prefix, bytes((prefix[0] + 1,)), 100_000)
        return [key for key, _ in pairs]


def entry(
    range_id: int,
    count: int = 1,
    *,
    size: int = 100,
    timestamp: int = NOW_MS,
    flags: RowFlags = RowFlags.NONE,
) -> BatchEntry:
    """A batch for a commit; its position is given by `laid_out`."""
    return BatchEntry(RangeId(range_id), 0, size, count, timestamp, flags=flags)


def sequenced(
    range_id: int, sequence: int, count: int = 1, *, producer: int = 7, epoch: int = 0, size: int = 100
) -> BatchEntry:
    """A batch of an idempotent producer."""
    return BatchEntry(RangeId(range_id), 0, size, count, NOW_MS, producer, epoch, sequence)


def laid_out(entries: Sequence[BatchEntry]) -> tuple[BatchEntry, ...]:
    """Entries one after the other in one object."""
    position, placed = 0, []
    for e in entries:
        placed.append(msgspec.structs.replace(e, position=position))
        position += e.size
    return tuple(placed)
