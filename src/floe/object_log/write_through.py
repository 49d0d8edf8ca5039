"""Committed batches enter the hot cache at once, so that reads at the tail cost no GET.

They enter by reference to the buffer they were received in, unless that would keep much more memory than the
batches are worth.
"""

from collections.abc import Sequence

from floe.model.coordinates import EntryResult
from floe.object_log.appends import AppendedSpan
from floe.object_log.cache import CacheManager, Pool
from floe.object_log.cached_span import SMALL_BATCH_BYTES, span_of_batches

PIN_WASTE_MAX = 2  # a buffer is kept if the batches of its request are at least one part in this many of it


class WriteThrough:
    """What the committer tells of each span that has its results."""

    def __init__(self, cache: CacheManager, *, leader_epoch: int) -> None:
        self._cache = cache
        self._leader_epoch = leader_epoch

    def committed(self, span: AppendedSpan, results: Sequence[EntryResult]) -> None:
        """Cache the batches that got offsets of their own, run by run of consecutive ones."""
        batches = span.batches
        count = len(batches)
        at = 0
        while at < count:
            start, first = at, results[at].base_offset
            end: int = first
            while at < count:
                result = results[at]
                if result.error or result.is_duplicate or result.base_offset != end:
                    break
                end += batches[at].record_count
                at += 1
            if at == start:
                at += 1
                continue
            pinned_size = _pinned_size(span, start, at)
            self._cache.add(
                span_of_batches(span.range, batches[start:at], first, self._leader_epoch, pinned_size),
                Pool.HOT,
            )


def _pinned_size(span: AppendedSpan, start: int, end: int) -> int | None:
    """The batches' share of the buffers that their views keep; None when copying them keeps less."""
    pinned = size = 0
    for number in range(start, end):
        append = span.origins[number][0]
        buffer_size = append.buffer_size
        if buffer_size > PIN_WASTE_MAX * append.size:
            return None
        batch_size = span.batches[number].size
        size += batch_size
        pinned += max(batch_size, batch_size * buffer_size // append.size)
    return None if size < (end - start) * SMALL_BATCH_BYTES else pinned
