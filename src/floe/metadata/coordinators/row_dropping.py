"""Deleting rows from the front of a range, with the time nodes that end before what is left."""

from collections import Counter
from collections.abc import Sequence

from floe.machines.range_record import RangeRecord
from floe.machines.time_tree import FAN_OUT_BITS
from floe.metadata.codecs.rows import decode_row, row_key
from floe.metadata.codecs.time_nodes import node_key
from floe.metadata.coordinators.held_objects import HeldObjects
from floe.metadata.vnode import Transaction
from floe.model.coordinates import Row
from floe.model.ids import RangeId


async def read_front(tx: Transaction, range_id: RangeId, record: RangeRecord, limit: int) -> list[Row]:
    """Up to `limit` of the first rows."""
    start, end = row_key(range_id, record.rows_start), row_key(range_id, record.log_end)
    return [decode_row(key, value) for key, value in await tx.scan(start, end, limit)]


async def drop_front(
    tx: Transaction, held: HeldObjects, range_id: RangeId, record: RangeRecord, rows: Sequence[Row]
) -> None:
    """Delete these rows, which are the first of the range; the caller saves the record."""
    if not rows:
        return
    assert rows[0].first == record.rows_start
    for row in rows:
        tx.delete(row_key(range_id, row.last))
    await held.let_go(tx, Counter(row.object for row in rows if row.object is not None))
    await _drop_nodes(tx, range_id, record, rows[-1].last + 1, len(rows))


async def _drop_nodes(
    tx: Transaction, range_id: RangeId, record: RangeRecord, end: int, row_count: int
) -> None:
    """Delete the nodes that end at or before `end`; those before the first row have gone with their rows."""
    page = row_count + 2  # there are fewer nodes than rows, apart from those that straddle the ends
    for level in range(1, len(record.open_nodes) // 2 + 1):
        shift = FAN_OUT_BITS * level
        start_key = node_key(range_id, level, record.rows_start >> shift)
        end_key = node_key(range_id, level, end >> shift)
        while start_key < end_key:
            pairs = await tx.scan(start_key, end_key, page)
            for key, _ in pairs:
                tx.delete(key)
            start_key = pairs[-1][0] + b"\0" if len(pairs) == page else end_key
