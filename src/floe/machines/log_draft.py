"""A range's log while a commit appends to it: offsets, coalesced rows, time nodes.

Offsets are assigned from the log end. Entries that follow one another both in the object and in the log
share one row up to `ROW_BYTES_MAX`; a larger batch has a row of its own.

Invariants:
- Rows come out in order and cover exactly the offsets assigned, without gap or overlap.
- A row's bytes are exactly those of its entries.
- The log end never goes back.
"""

from typing import NamedTuple

from floe.machines import time_tree
from floe.machines.time_tree import Node, OpenNodes
from floe.model.coordinates import ROW_BYTES_MAX, BatchEntry
from floe.model.ids import ObjectId, Offset


class RowSpan(NamedTuple):
    """A row as far as the log decides it."""

    first: int
    last: int
    object: ObjectId
    position: int
    size: int
    max_timestamp: int
    flags: int


class LogDraft:
    """Appends of one transaction to one range."""

    __slots__ = (
        "_end_position",
        "_first",
        "_flags",
        "_max_timestamp",
        "_object",
        "_position",
        "_sealed_count",
        "log_end",
        "nodes",
        "open_nodes",
        "rows",
    )

    def __init__(self, log_end: int, open_nodes: OpenNodes) -> None:
        self.log_end = log_end
        self.open_nodes = open_nodes
        self.rows: list[RowSpan] = []
        self.nodes: list[Node] = []
        self._sealed_count = 0
        self._first = -1  # of the open row; negative without one
        self._object = ObjectId(0)
        self._position = self._end_position = 0
        self._max_timestamp = self._flags = 0

    def append(self, object_id: ObjectId, entry: BatchEntry) -> Offset:
        """Assign offsets to a batch and return the first."""
        base = self.log_end
        position, timestamp = entry.position, entry.max_timestamp
        end_position = position + entry.size
        if (
            self._first >= 0
            and position == self._end_position
            and end_position - self._position <= ROW_BYTES_MAX
            and object_id == self._object
        ):
            self._end_position = end_position
            self._flags |= entry.flags
            if timestamp > self._max_timestamp:
                self._max_timestamp = timestamp
        else:
            if self._first >= 0:
                self._close_row()
            self._first, self._object = base, object_id
            self._position, self._end_position = position, end_position
            self._max_timestamp, self._flags = timestamp, entry.flags
        self.log_end = base + entry.record_count
        return Offset(base)

    def seal(self) -> int:
        """Close the open row; the number of rows that came about since the last call."""
        if self._first >= 0:
            self._close_row()
        fresh = len(self.rows) - self._sealed_count
        self._sealed_count += fresh
        return fresh

    def _close_row(self) -> None:
        first, last, timestamp = self._first, self.log_end - 1, self._max_timestamp
        self.rows.append(
            RowSpan(
                first,
                last,
                self._object,
                self._position,
                self._end_position - self._position,
                timestamp,
                self._flags,
            )
        )
        self.open_nodes, completed = time_tree.append(self.open_nodes, first, last, timestamp)
        if completed:
            self.nodes += completed
        self._first = -1
