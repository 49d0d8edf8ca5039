"""Rows that the coordinators told this broker, kept as hints.

A row may go stale: its object may be compacted away and deleted. Readers that find this out drop the range
and ask again. Nothing here says where a log begins or ends.

Invariant: the rows of a range are disjoint and in order of offset; they need not be contiguous.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence

from floe.model.coordinates import Row
from floe.model.ids import RangeId


class _RangeRows:
    __slots__ = ("firsts", "rows")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.rows: list[Row] = []

    def add(self, rows: Sequence[Row]) -> None:
        """Contiguous rows; they replace whatever they overlap."""
        start, last = rows[0].first, rows[-1].last
        low = bisect_left(self.firsts, start)
        if low and self.rows[low - 1].last >= start:
            low -= 1
        high = bisect_right(self.firsts, last)
        self.firsts[low:high] = [row.first for row in rows]
        self.rows[low:high] = rows


class CoordinateCache:
    """At most `rows_max` rows; the range that was used least recently goes first, whole."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._count = 0
        self._by_range: OrderedDict[RangeId, _RangeRows] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Sequence[Row]) -> None:
        """Contiguous rows of one range, newer than what is known."""
        if not rows:
            return
        known = self._by_range.pop(rows[0].range, None) or _RangeRows()
        self._count -= len(known.rows)
        if len(known.rows) + len(rows) > self._rows_max:
            known = _RangeRows()
        known.add(rows[: self._rows_max])
        self._count += len(known.rows)
        self._by_range[rows[0].range] = known
        while self._count > self._rows_max:
            _, oldest = self._by_range.popitem(last=False)
            self._count -= len(oldest.rows)

    def rows_from(self, range_id: RangeId, offset: int, *, max_bytes: int, rows_max: int) -> list[Row]:
        """Contiguous rows from the one that holds `offset` on; empty when that one is not known.

        The first row is always there; those after it only if they fit in `max_bytes` behind what the first
        one holds from `offset` on, guessed from the share of its offsets.
        """
        known = self._by_range.get(range_id)
        if known is None:
            return []
        at = bisect_right(known.firsts, offset) - 1
        if at < 0 or known.rows[at].last < offset:
            return []
        self._by_range.move_to_end(range_id)
        first = known.rows[at]
        found = [first]
        left = max_bytes - first.size * (first.last - offset + 1) // (first.last - first.first + 1)
        for row in known.rows[at + 1 : at + rows_max]:
            if row.size > left or row.first != found[-1].last + 1:
                break
            found.append(row)
            left -= row.size
        return found

    def drop(self, range_id: RangeId) -> None:
        """Forget a range whose rows proved wrong."""
        known = self._by_range.pop(range_id, None)
        if known is not None:
            self._count -= len(known.rows)
