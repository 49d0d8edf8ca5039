"""Birth, limits and death of ranges: idempotent steps of topic operations."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from floe.machines.range_record import RangeRecord
from floe.machines.retention import NEVER, RangeLimits
from floe.metadata.codecs.producer_states import producer_key, producers_end, read_producer_key
from floe.metadata.coordinators.drop_index import DropIndex
from floe.metadata.coordinators.held_objects import HeldObjects
from floe.metadata.coordinators.producers import Producers
from floe.metadata.coordinators.range_cache import RangeCache
from floe.metadata.coordinators.retention import next_drop
from floe.metadata.coordinators.row_dropping import drop_front, read_front
from floe.metadata.vnode import Transaction, Vnode
from floe.model.errors import Internal
from floe.model.ids import RangeId, TopicId
from floe.model.topic import RangeState
from floe.observability.clock import Clock


class RangeSpec(NamedTuple):
    """A range to be created."""

    range_id: RangeId
    topic_id: TopicId
    limits: RangeLimits = RangeLimits()


class RangeLife:
    """The ranges of one vnode as topics come, change and go."""

    def __init__(
        self,
        vnode: Vnode,
        ranges: RangeCache,
        producers: Producers,
        held: HeldObjects,
        drops: DropIndex,
        clock: Clock,
    ) -> None:
        self._vnode = vnode
        self._ranges = ranges
        self._producers = producers
        self._held = held
        self._drops = drops
        self._clock = clock

    async def create(self, items: Sequence[RangeSpec]) -> None:
        """Create ranges from offset 0; one that is there already is left as it is."""
        await self._vnode.run(partial(self._create, items))

    async def configure(self, range_ids: Sequence[RangeId], limits: RangeLimits) -> None:
        """Set the limits of those ranges that are there and not being deleted."""
        await self._vnode.run(partial(self._configure, range_ids, limits))

    async def mark_deleting(self, range_ids: Sequence[RangeId]) -> None:
        """Hide ranges from everybody; their rows stay until `drop`."""
        await self._vnode.run(partial(self._mark_deleting, range_ids))

    async def drop(self, range_ids: Sequence[RangeId], limit: int) -> bool:
        """Delete up to about `limit` keys of deleting ranges; True when nothing of them is left."""
        assert limit > 0
        return await self._vnode.run(partial(self._drop, range_ids, limit))

    async def _create(self, items: Sequence[RangeSpec], tx: Transaction) -> None:
        created: dict[RangeId, RangeRecord] = {}
        for range_id, topic_id, limits in items:
            if await self._ranges.load(tx, range_id) is None:
                created[range_id] = RangeRecord(topic_id, RangeState.ACTIVE, limits)
        self._ranges.save(tx, created)

    async def _configure(self, range_ids: Sequence[RangeId], limits: RangeLimits, tx: Transaction) -> None:
        now = self._clock.now_ms()
        changed: dict[RangeId, RangeRecord] = {}
        for range_id in range_ids:
            record = await self._ranges.load(tx, range_id)
            if record is None or record.state is RangeState.DELETING:
                continue
            after = msgspec.structs.replace(record, limits=limits)
            has_raised_start = bool(record.row_count) and record.log_start > record.rows_start
            drop_at = now if has_raised_start else next_drop(after, now)
            self._drops.move(tx, range_id, record.drop_at, drop_at)
            changed[range_id] = msgspec.structs.replace(after, drop_at=drop_at)
        self._ranges.save(tx, changed)

    async def _mark_deleting(self, range_ids: Sequence[RangeId], tx: Transaction) -> None:
        changed: dict[RangeId, RangeRecord] = {}
        for range_id in range_ids:
            record = await self._ranges.load(tx, range_id)
            if record is not None and record.state is not RangeState.DELETING:
                self._drops.move(tx, range_id, record.drop_at, NEVER)
                changed[range_id] = msgspec.structs.replace(record, state=RangeState.DELETING, drop_at=NEVER)
        self._ranges.save(tx, changed)

    async def _drop(self, range_ids: Sequence[RangeId], limit: int, tx: Transaction) -> bool:
        for range_id in range_ids:
            record = await self._ranges.load(tx, range_id)
            if record is None:
                continue
            if record.state is not RangeState.DELETING:
                raise Internal(f"the range is not being deleted. range={range_id}")
            limit -= await self._drop_rows(tx, range_id, record, limit)
            if limit > 0:
                limit -= await self._drop_producers(tx, range_id, limit)
            if limit <= 0:
                return False
            self._ranges.remove(tx, range_id)
        return True

    async def _drop_rows(self, tx: Transaction, range_id: RangeId, record: RangeRecord, limit: int) -> int:
        # The time nodes go with the rows: the last row's end is the log end, and no written node is beyond
        # it.
        rows = await read_front(tx, range_id, record, limit)
        await drop_front(tx, self._held, range_id, record, rows)
        if len(rows) == limit:
            # Only a record that stays is written: it is written once per transaction.
            after = msgspec.structs.replace(
                record,
                rows_start=rows[-1].last + 1,
                row_count=record.row_count - len(rows),
                stored_bytes=record.stored_bytes - sum(row.size for row in rows),
            )
            self._ranges.save(tx, {range_id: after})
        return len(rows)

    async def _drop_producers(self, tx: Transaction, range_id: RangeId, limit: int) -> int:
        pairs = await tx.scan(producer_key(range_id, 0), producers_end(range_id), limit)
        for key, _ in pairs:
            self._producers.remove(tx, *read_producer_key(key))
        return len(pairs)
