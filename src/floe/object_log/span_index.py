"""Spans by range and offset, and how an answer is cut from them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from floe.model.ids import RangeId
from floe.object_log.cached_span import CachedSpan
from floe.wire.batch import Buffer

Find = Callable[[RangeId, int], CachedSpan | None]


class _RangeSpans:
    """Spans of one range in order of offset; no two have the same first offset."""

    __slots__ = ("firsts", "spans")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.spans: list[CachedSpan] = []


class SpanIndex:
    """Look-ups cost the logarithm of a range's number of spans; adding at the end costs no search."""

    __slots__ = ("_by_range",)

    def __init__(self) -> None:
        self._by_range: dict[RangeId, _RangeSpans] = {}

    def add(self, span: CachedSpan) -> bool:
        """Take a span in, unless one begins at the same offset."""
        index = self._by_range.get(span.range)
        if index is None:
            index = self._by_range[span.range] = _RangeSpans()
        firsts = index.firsts
        if not firsts or firsts[-1] < span.first:
            firsts.append(span.first)
            index.spans.append(span)
            return True
        at = bisect_left(firsts, span.first)
        if firsts[at] == span.first:
            return False
        firsts.insert(at, span.first)
        index.spans.insert(at, span)
        return True

    def find(self, range_id: RangeId, offset: int) -> CachedSpan | None:
        """The span that holds an offset, if the last one to begin at or before it does."""
        index = self._by_range.get(range_id)
        if index is None:
            return None
        at = bisect_right(index.firsts, offset) - 1
        if at < 0:
            return None
        span = index.spans[at]
        return span if offset < span.end else None

    def remove(self, span: CachedSpan) -> None:
        """Take out a span that is in."""
        index = self._by_range[span.range]
        at = bisect_left(index.firsts, span.first)
        assert index.spans[at] is span
        del index.firsts[at]
        del index.spans[at]
        if not index.firsts:
            del self._by_range[span.range]


def collect(
    find: Find, range_id: RangeId, offset: int, log_end: int, budget: int, at_least_one: bool
) -> tuple[list[Buffer], int, int] | None:
    """Whole batches from the one that holds `offset` on, within the budget, as far as `find` knows them.

    Returns pieces, their size and the offset after them; None when the offset itself is not known. The first
    batch alone may be larger than the budget, if `at_least_one`. Nothing is looked for from `log_end` on.
    """
    span = find(range_id, offset)
    if span is None:
        return None
    pieces: list[Buffer] = []
    size = 0
    while span is not None:
        ends = span.ends
        first = bisect_right(span.bases, offset) - 1
        start = ends[first - 1] if first else 0
        last = bisect_right(ends, start + budget - size, first)
        if last == first:
            if size or not at_least_one:
                break
            last += 1
        pieces += span.cut(first, last)
        size += ends[last - 1] - start
        if last < len(ends):
            offset = span.bases[last]
            break
        offset = span.end
        span = find(range_id, offset) if offset < log_end else None
    return pieces, size, offset
