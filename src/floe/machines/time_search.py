"""Lookups over a time tree, as generators that ask for nodes and rows and are told them.

A search yields `NodesAsked` or `RowsAsked` and is sent the answer; its return value is the row it looked
for. It reads whole families of up to 64 nodes, so it asks O(levels) times and reads O(64 * levels) entries.
Nodes are upper bounds and rows are exact, so a stale node costs a descent in vain and never a wrong answer.
An answer may lack rows that were dropped since; it must be in order and hold no row that ends before the
asked offset.
"""

import heapq
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from floe.machines.time_tree import FAN_OUT, FAN_OUT_BITS
from floe.model.coordinates import Row

ROWS_ASKED = 64


class NodesAsked(NamedTuple):
    """The written nodes of one level with start <= index < end."""

    level: int
    start: int
    end: int


class RowsAsked(NamedTuple):
    """Up to `ROWS_ASKED` rows from the one that holds `offset` on, or the one after it."""

    offset: int


NodesTold = Mapping[int, int]  # index -> greatest timestamp
RowsTold = Sequence[Row]
_Steps = Generator[NodesAsked | RowsAsked, NodesTold | RowsTold, None]
Search = Generator[NodesAsked | RowsAsked, NodesTold | RowsTold, Row | None]


def first_at_or_after(timestamp: int, start: int, end: int) -> Search:
    """The first row that ends at or after `start` and reaches the timestamp; `end` is the log end."""
    position = start
    level = top = _top_level(end)
    while position < end:
        while level and _node_end(level, position) > end:
            level -= 1
        if not level:
            rows = yield RowsAsked(position)
            assert isinstance(rows, Sequence)
            for row in rows:
                if row.max_timestamp >= timestamp:
                    return row
            passed = rows[-1].last + 1 if rows else end
            level = _level_after(position, passed, top)
            position = passed
            continue
        shift = FAN_OUT_BITS * level
        index = position >> shift
        family_end = min((index | (FAN_OUT - 1)) + 1, end >> shift)
        nodes = yield NodesAsked(level, index, family_end)
        assert isinstance(nodes, Mapping)
        bound: int | None = None
        while index < family_end:
            bound = nodes.get(index)
            if bound is None or bound >= timestamp:
                break
            index += 1
        passed = max(position, index << shift)
        if index == family_end:
            level = _level_after(position, passed, top)
        else:
            # A complete node that is not written has few rows: they are read at once.
            level = 0 if bound is None else level - 1
        position = passed
    return None


def greatest(start: int, end: int) -> Search:
    """The first row with the greatest timestamp among those that end at or after `start`."""
    # Ordered by greatest bound, then offset. A node comes before a row with which it shares both, since it
    # may hide an equal row that begins before its own first offset.
    heap: list[_Candidate] = []
    yield from _expand(heap, _top_level(end) + 1, 0, start, end)
    while heap:
        candidate = heapq.heappop(heap)
        if candidate.row is not None:
            return candidate.row
        level = -candidate.level_negative
        yield from _expand(heap, level, candidate.first >> FAN_OUT_BITS * level, start, end)
    return None


class _Candidate(NamedTuple):
    bound_negative: int
    first: int
    level_negative: int
    row: Row | None


def _expand(heap: "list[_Candidate]", level: int, index: int, start: int, end: int) -> _Steps:
    """Replace a node by its complete children and, where there are none, by the best of its rows."""
    low = max(start, index << FAN_OUT_BITS * level)
    high = min(end, (index + 1) << FAN_OUT_BITS * level)
    while low < high:
        level -= 1
        shift = FAN_OUT_BITS * level
        if not level:
            yield from _push_best_row(heap, low, high, start)
            return
        first, family_end = low >> shift, high >> shift
        if first < family_end:
            nodes = yield NodesAsked(level, first, family_end)
            assert isinstance(nodes, Mapping)
            for i, bound in nodes.items():
                heapq.heappush(heap, _Candidate(-bound, i << shift, -level, None))
            for low_index, high_index in _gaps(nodes, first, family_end):
                gap_low = max(low, low_index << shift)
                yield from _push_best_row(heap, gap_low, high_index << shift, start)
        low = max(low, family_end << shift)  # what is left lies in the open child: go down


def _push_best_row(heap: "list[_Candidate]", low: int, high: int, start: int) -> _Steps:
    """Push the first of the greatest rows that begin here; one that began before is found where it began."""
    best: Row | None = None
    begin = 0 if low == start else low
    while low < high:
        rows = yield RowsAsked(low)
        assert isinstance(rows, Sequence)
        for row in rows:
            if begin <= row.first < high and (best is None or row.max_timestamp > best.max_timestamp):
                best = row
        low = rows[-1].last + 1 if rows else high
    if best is not None:
        heapq.heappush(heap, _Candidate(-best.max_timestamp, best.first, 0, best))


def _gaps(nodes: NodesTold, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The runs of indexes that are not among the nodes; their rows are few and read together."""
    for index in (*sorted(nodes), end):
        if start < index:
            yield start, index
        start = index + 1


def _top_level(end: int) -> int:
    """The highest level at which a node can be complete."""
    return max(0, end.bit_length() - 1) // FAN_OUT_BITS


def _node_end(level: int, position: int) -> int:
    shift = FAN_OUT_BITS * level
    return ((position >> shift) + 1) << shift


def _level_after(before: int, position: int, top: int) -> int:
    """The highest level at which `position` lies in another node than `before`: one not asked for yet."""
    return min(((before ^ position).bit_length() - 1) // FAN_OUT_BITS, top)
