"""Neighbouring batches of one range, stamped with their offsets and ready to be sent to any reader.

Stamping happens once, when the span is made, into fresh memory: the bytes of a request or of a GET are never
written to. A span has one of two forms.

- Large batches stay where they are: per batch a 16-byte prefix of our own and a view of the rest. The view
  keeps the whole buffer alive that it points into, so the span's cost counts its share of that buffer.
- Small batches are copied into one run of bytes with their prefixes in place. This lets go of the buffers
  they came in, makes one piece of many batches, and leaves nothing for the garbage collector to walk.
"""

from collections.abc import Sequence

import msgspec

from floe.model.coordinates import Row
from floe.model.errors import Corrupt
from floe.model.ids import Offset, RangeId
from floe.wire.batch import Batch, Buffer, stamp, walk

SMALL_BATCH_BYTES = 4096  # spans whose batches are smaller than this on average are copied
SPAN_OVERHEAD = 512  # bytes of a span besides its batches
BATCH_OVERHEAD = 80  # bytes per batch of either form: two integers
VIEW_OVERHEAD = 320  # bytes per batch of the first form: prefix, view and their places in a list


class CachedSpan(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Batches of offsets `first` to `end`, exclusive. Compared by identity.

    `bases` are the batches' base offsets, `ends` where each ends within the span, both in order; `pieces` are
    two per batch, or None when `data` holds the bytes. `cost` is the memory that the span keeps.
    """

    range: RangeId
    first: Offset
    end: Offset
    bases: tuple[int, ...]
    ends: tuple[int, ...]
    pieces: list[Buffer] | None
    data: bytes
    cost: int

    def cut(self, first: int, last: int) -> list[Buffer]:
        """Batches by number, `last` exclusive, as pieces."""
        if self.pieces is not None:
            return self.pieces[2 * first : 2 * last]
        if first == 0 and last == len(self.bases):
            return [self.data]
        start = self.ends[first - 1] if first else 0
        return [memoryview(self.data)[start : self.ends[last - 1]]]

    def batch(self, number: int) -> memoryview:
        """One whole batch in a row, for those who look inside."""
        pieces = self.cut(number, number + 1)
        return memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))


def span_of_batches(
    range_id: RangeId, batches: Sequence[Batch], first: Offset, leader_epoch: int, pinned_size: int | None
) -> CachedSpan:
    """A span of batches that got consecutive offsets.

    `pinned_size` is the share of their buffers that keeping their views would keep; None: copy them.
    """
    pieces: list[Buffer] = []
    bases: list[int] = []
    ends: list[int] = []
    base: int = first
    size = 0
    for batch in batches:
        pieces += stamp(batch.view, base, leader_epoch)
        bases.append(base)
        base += batch.record_count
        size += batch.size
        ends.append(size)
    return _span(range_id, first, Offset(base), bases, ends, pieces, pinned_size)


def span_of_bytes(row: Row, data: memoryview, leader_epoch: int, pinned_size: int) -> CachedSpan:
    """The span of a level 0 row from its stored bytes; raise `Corrupt` when they are not the row's."""
    pieces: list[Buffer] = []
    bases: list[int] = []
    ends: list[int] = []
    base: int = row.first
    for position, size, _, offset_count in walk(data):
        pieces += stamp(data[position : position + size], base, leader_epoch)
        bases.append(base)
        ends.append(position + size)
        base += offset_count
    if base != row.last + 1 or not bases:
        raise Corrupt(
            f"bytes end at offset {base}, not at {row.last + 1}. range={row.range} object={row.object}"
        )
    is_small = len(data) < len(bases) * SMALL_BATCH_BYTES
    return _span(row.range, row.first, Offset(base), bases, ends, pieces, None if is_small else pinned_size)


def _span(
    range_id: RangeId,
    first: Offset,
    end: Offset,
    bases: list[int],
    ends: list[int],
    pieces: list[Buffer],
    pinned_size: int | None,
) -> CachedSpan:
    count, size = len(bases), ends[-1]
    if pinned_size is None:
        cost = SPAN_OVERHEAD + count * BATCH_OVERHEAD + size
        return CachedSpan(range_id, first, end, tuple(bases), tuple(ends), None, b"".join(pieces), cost)
    cost = SPAN_OVERHEAD + count * (BATCH_OVERHEAD + VIEW_OVERHEAD) + pinned_size
    return CachedSpan(range_id, first, end, tuple(bases), tuple(ends), pieces, b"", cost)
