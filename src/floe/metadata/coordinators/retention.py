"""Dropping the front of ranges: by age, by size, and below a log start that was raised.

Ranges are looked at in the order of the earliest time at which they can have something to drop. A pass
handles so many ranges, each in a transaction of its own with so many rows, so that a commit never waits for
a long one; a range that has more is put back by the time its next row is due.

Invariants:
- The log start never goes back and never passes the log end; the log end does not change here.
- A row is deleted only when it lies wholly below the log start.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from floe.machines import retention
from floe.machines.range_record import RangeRecord
from floe.machines.retention import NEVER
from floe.metadata.coordinators.drop_index import DropIndex
from floe.metadata.coordinators.held_objects import HeldObjects
from floe.metadata.coordinators.range_cache import UNKNOWN_RANGE, RangeCache, view_of
from floe.metadata.coordinators.row_dropping import drop_front, read_front
from floe.metadata.vnode import Transaction, Vnode
from floe.model.coordinates import RangeView
from floe.model.error_codes import ErrorCode
from floe.model.ids import NO_OFFSET, Offset, RangeId
from floe.model.topic import RangeState
from floe.observability.clock import Clock

RANGES_PER_PASS = 64
ROWS_PER_RANGE = 64
UNDURABLE_TRIMS_MAX = 16


class RetentionPass(NamedTuple):
    """What a pass found: whether another is due at once, and the age of the oldest overdue entry."""

    has_more: bool
    lag_ms: int


class Retention:
    """Retention of one vnode's ranges."""

    def __init__(
        self, vnode: Vnode, ranges: RangeCache, held: HeldObjects, drops: DropIndex, clock: Clock
    ) -> None:
        self._vnode = vnode
        self._ranges = ranges
        self._held = held
        self._drops = drops
        self._clock = clock

    async def run_pass(
        self, *, ranges_max: int = RANGES_PER_PASS, rows_max: int = ROWS_PER_RANGE
    ) -> RetentionPass:
        """Drop what is due of the most overdue ranges."""
        now = self._clock.now_ms()
        due = await self._vnode.run(lambda tx: self._drops.due(tx, now, ranges_max))
        if not due:
            return RetentionPass(False, 0)
        outcomes = await self._trim_all(due, now, rows_max)
        return RetentionPass(len(due) == ranges_max or any(outcomes), max(0, now - due[0][0]))

    async def delete_records(self, range_id: RangeId, before: Offset) -> RangeView:
        """Raise the log start; -1 means the log end. Rows below it go with the next passes."""
        return await self._vnode.run(partial(self._delete_records, range_id, before))

    async def _trim_all(self, due: Sequence[tuple[int, RangeId]], now: int, rows_max: int) -> list[bool]:
        """Trim ranges one after the other: each begins when the one before is decided, durable or not.

        So a commit that comes meanwhile waits for one of them at most, and they share group commits.
        """
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(UNDURABLE_TRIMS_MAX)
        trims: list[asyncio.Task[bool]] = []
        try:
            for time_ms, range_id in due:
                await room.acquire()
                decided: asyncio.Future[None] = loop.create_future()
                body = partial(self._trim, range_id, time_ms, now, rows_max, decided)
                trim = loop.create_task(self._vnode.run(body))
                trim.add_done_callback(lambda _: room.release())
                trims.append(trim)
                await asyncio.wait((trim, decided), return_when=asyncio.FIRST_COMPLETED)
            return await asyncio.gather(*trims)
        finally:
            for trim in trims:
                trim.cancel()

    async def _trim(
        self,
        range_id: RangeId,
        time_ms: int,
        now: int,
        rows_max: int,
        decided: "asyncio.Future[None]",
        tx: Transaction,
    ) -> bool:
        """Drop up to `rows_max` rows of one range; whether more of them are due."""
        tx.when_decided(partial(decided.set_result, None))
        record = await self._ranges.load(tx, range_id)
        if record is None or record.drop_at != time_ms:
            self._drops.move(tx, range_id, time_ms, NEVER)
            return False
        rows = await read_front(tx, range_id, record, rows_max + 1)
        count, stored_bytes = 0, record.stored_bytes
        for row in rows[:rows_max]:
            age_from = retention.row_time(row.max_timestamp, row.committed_at)
            is_below = row.last < record.log_start
            if not is_below and not retention.is_due(record.limits, stored_bytes, age_from, row.size, now):
                break
            count += 1
            stored_bytes -= row.size
        await drop_front(tx, self._held, range_id, record, rows[:count])
        kept = rows[count] if count < len(rows) else None
        after = msgspec.structs.replace(
            record,
            log_start=max(record.log_start, Offset(rows[count - 1].last + 1)) if count else record.log_start,
            rows_start=kept.first if kept else record.log_end,
            row_count=record.row_count - count,
            stored_bytes=stored_bytes,
            head_time=retention.row_time(kept.max_timestamp, kept.committed_at) if kept else 0,
            head_size=kept.size if kept else 0,
        )
        is_below = kept is not None and kept.last < after.log_start
        after = msgspec.structs.replace(after, drop_at=now if is_below else next_drop(after, now))
        self._drops.move(tx, range_id, record.drop_at, after.drop_at)
        self._ranges.save(tx, {range_id: after})
        return NEVER < after.drop_at <= now

    async def _delete_records(self, range_id: RangeId, before: Offset, tx: Transaction) -> RangeView:
        record = await self._ranges.load(tx, range_id)
        if record is None or record.state is RangeState.DELETING:
            return UNKNOWN_RANGE
        target = record.log_end if before == NO_OFFSET else before
        if not 0 <= target <= record.log_end:
            return msgspec.structs.replace(view_of(record), error=ErrorCode.OFFSET_OUT_OF_RANGE)
        if target <= record.log_start:
            return view_of(record)
        now = self._clock.now_ms()
        drop_at = record.drop_at
        if record.row_count:
            drop_at = now if drop_at == NEVER else min(now, drop_at)
            self._drops.move(tx, range_id, record.drop_at, drop_at)
        raised = msgspec.structs.replace(record, log_start=target, drop_at=drop_at)
        self._ranges.save(tx, {range_id: raised})
        return view_of(raised)


def next_drop(record: RangeRecord, now_ms: int) -> int:
    """When a range whose first row is not below its log start can next have something to drop."""
    if not record.row_count:
        return NEVER
    return retention.due_at(record.limits, record.stored_bytes, record.head_time, record.head_size, now_ms)
