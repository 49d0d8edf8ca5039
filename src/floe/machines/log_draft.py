"""A range's log while a commit appends to it: offsets, coalesced rows, time nodes, the record that follows.

Offsets are assigned from the log end. Entries that follow one another both in the object and in the log
share one row up to `ROW_BYTES_MAX`; a larger batch has a row of its own.

Invariants:
- Rows come out in order and cover exactly the offsets assigned, without gap or overlap.
- A row's bytes are exactly those of its entries.
- The log end never goes back.
"""

import msgspec

from floe.machines import retention, time_tree
from floe.machines.range_record import RangeRecord
from floe.machines.retention import NEVER
from floe.machines.time_tree import Node
from floe.model.coordinates import ROW_BYTES_MAX, BatchEntry
from floe.model.ids import ObjectId, Offset


class RowSpan(msgspec.Struct, gc=False):
    """A row as far as the log decides it; open ones grow. `end_position` is exclusive."""

    first: int
    last: int
    object: ObjectId
    position: int
    end_position: int
    max_timestamp: int
    flags: int


class LogDraft:
    """Appends of one transaction to one range."""

    __slots__ = (
        "_record",
        "_row",
        "_sealed_count",
        "drop_at",
        "log_end",
        "log_start",
        "nodes",
        "open_nodes",
        "rows",
    )

    def __init__(self, record: RangeRecord) -> None:
        self._record = record
        self._row: RowSpan | None = None
        self._sealed_count = 0
        self.drop_at = record.drop_at
        self.log_start = record.log_start
        self.log_end = record.log_end
        self.open_nodes = record.open_nodes
        self.rows: list[RowSpan] = []
        self.nodes: list[Node] = []

    def append(self, object_id: ObjectId, entry: BatchEntry) -> Offset:
        """Assign offsets to a batch and return the first."""
        base, position, row = self.log_end, entry.position, self._row
        end = base + entry.record_count
        end_position = position + entry.size
        if (
            row is not None
            and position == row.end_position
            and end_position - row.position <= ROW_BYTES_MAX
            and object_id == row.object
        ):
            row.last = end - 1
            row.end_position = end_position
            if entry.flags is not row.flags:
                row.flags |= entry.flags
            if entry.max_timestamp > row.max_timestamp:
                row.max_timestamp = entry.max_timestamp
        else:
            if row is not None:
                self._close(row)
            self._row = row = RowSpan(
                base, end - 1, object_id, position, end_position, entry.max_timestamp, entry.flags
            )
            self.rows.append(row)
        self.log_end = Offset(end)
        return base

    def seal(self) -> int:
        """Close the open row: what comes next lies elsewhere. The number of rows since the last call."""
        if self._row is not None:
            self._close(self._row)
        fresh = len(self.rows) - self._sealed_count
        self._sealed_count += fresh
        return fresh

    def record(self, now_ms: int) -> RangeRecord:
        """The record once the rows are in; its `drop_at` may be earlier than before, never later."""
        before, rows = self._record, self.rows
        head_time, head_size, drop_at = before.head_time, before.head_size, before.drop_at
        limits, stored_bytes = before.limits, before.stored_bytes
        for row in rows:
            stored_bytes += row.end_position - row.position
        if not before.row_count and rows:
            head = rows[0]
            head_time = retention.row_time(head.max_timestamp, now_ms)
            head_size = head.end_position - head.position
        if drop_at == NEVER or limits.retention_bytes >= 0:
            due = retention.due_at(limits, stored_bytes, head_time, head_size, now_ms)
            if due != NEVER and (drop_at == NEVER or due < drop_at):
                drop_at = due
        return RangeRecord(
            before.topic_id,
            before.state,
            limits,
            before.log_start,
            self.log_end,
            before.rows_start,
            before.row_count + len(rows),
            stored_bytes,
            drop_at,
            head_time,
            head_size,
            self.open_nodes,
        )

    def _close(self, row: RowSpan) -> None:
        self.open_nodes, completed = time_tree.append(self.open_nodes, row.first, row.last, row.max_timestamp)
        if completed:
            self.nodes += completed
        self._row = None
