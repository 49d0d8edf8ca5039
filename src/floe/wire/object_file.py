"""The object file: batches of many ranges, one span per range, and a footer that indexes them.

    start   8 bytes             magic and version
    body    spans               whole batches, spans in order of range, no gaps
    footer  entries, points     80 bytes per entry, then 24 bytes per point
    trailer 40 bytes            where the footer starts, counts, checksum, magic

docs/reference/object-file.md describes every byte. The footer lies at the end, so one read of an
object's tail gives its index, and an object is written in one pass with no length known ahead.

What protects what: a batch's own CRC32C covers all of it but its first 21 bytes, its checksum among
them. An entry's CRC32C covers those 21-byte prefixes of all batches of the span, one after another.
Together they cover every byte of the body, yet writing an object costs no second pass over the records.
The trailer's CRC32C covers the footer and the trailer.

Level 0 spans hold batches exactly as they were produced; their offsets live in the metadata. Spans of
higher levels hold batches stamped with their real offsets, and points at most 1 MiB apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

import msgspec
from crc32c import crc32c

from floe.model.coordinates import RowFlags
from floe.model.ids import NO_OFFSET, NO_PRODUCER, ObjectId, Offset, ProducerId, RangeId
from floe.wire.batch import CRC_START, NO_EPOCH, NO_TIMESTAMP, TRANSACTIONAL_BIT, Batch, Buffer, stamp

VERSION = 1
START_MAGIC = b"FLOEOBJ\x01"
END_MAGIC = b"FLOEEND\x01"
NO_OBJECT = ObjectId(-1)
POINT_SPACING = 1 << 20  # a point's block is at most this long, or one batch if that is longer
POINTS_LEVEL_MIN = 1  # spans from this level on are stamped and have points

# range, position, size, first offset, last offset, greatest timestamp, producer id, record count,
# batch count, crc32c of the batch prefixes, point count, producer epoch, level, flags
ENTRY = Struct(">qQQqqqqQIIIhBB")
POINT = Struct(">qQq")  # offset, position, greatest timestamp of the span up to the end of this block
# footer position, entry count, point count, object id, version, flags, crc32c of footer and trailer, magic
TRAILER = Struct(">QIIqHHI8s")
TRAILER_CRC_AT = 28  # the trailer's bytes before this one are under its checksum
START_SIZE = len(START_MAGIC)

assert ENTRY.size == 80
assert POINT.size == 24
assert TRAILER.size == 40

_U32 = Struct(">I")


class Span(msgspec.Struct, frozen=True, gc=False):
    """All batches that one object holds of one range, in the order in which they get their offsets."""

    range: RangeId
    batches: Sequence[Batch]


class BuiltObject(msgspec.Struct, frozen=True, gc=False):
    """An object ready to be put: `pieces` in order make the file; the batches among them are the views given.

    `positions` has one position per batch, in the order in which the spans were given.
    """

    pieces: list[Buffer]
    positions: list[int]
    size: int


class ObjectBuilder:
    """Writes one object front to back; the caller sends what each call gives, in call order.

    Start with `START_MAGIC`, add spans and markers in ascending order of range, end with `footer`.
    """

    def __init__(self, object_id: ObjectId = NO_OBJECT) -> None:
        self.position = START_SIZE
        self._object_id = object_id
        self._entries: list[bytes] = []
        self._points: list[bytes] = []
        self._last_range = -1

    def add(self, range_id: RangeId, batches: Sequence[Batch], positions: list[int]) -> None:
        """Lay out a level 0 span; its bytes are the batches' views, whose positions are appended.

        Costs a few operations per batch and nothing per byte.
        """
        self._enter(range_id)
        start = position = self.position
        record_count = attributes = 0
        max_timestamp = NO_TIMESTAMP
        prefixes = []
        for batch in batches:
            positions.append(position)
            position += batch.size
            record_count += batch.record_count
            attributes |= batch.attributes
            if batch.max_timestamp > max_timestamp:
                max_timestamp = batch.max_timestamp
            prefixes.append(batch.view[:CRC_START])
        self.position = position
        flags = RowFlags.TRANSACTIONAL if attributes & TRANSACTIONAL_BIT else 0
        entry = ENTRY.pack(
            range_id, start, position - start, NO_OFFSET, NO_OFFSET, max_timestamp, NO_PRODUCER, record_count,
            len(prefixes), crc32c(b"".join(prefixes)), 0, NO_EPOCH, 0, flags,
        )  # fmt: skip
        self._entries.append(entry)

    def add_stamped(
        self, range_id: RangeId, batches: Iterable[tuple[Offset, Batch]], *, level: int, leader_epoch: int = 0
    ) -> Iterator[Buffer]:
        """Lay out a span of a higher level from (base offset, batch) pairs in order of offset.

        Yields the pieces to write; the span has its entry once the iterator is exhausted, so a span of
        any size passes through in the memory of one batch.
        """
        assert level >= POINTS_LEVEL_MIN
        self._enter(range_id)
        writer = _StampedSpan(self.position)
        for base_offset, batch in batches:
            yield from writer.append(base_offset, batch, leader_epoch)
        self._entries.append(writer.finish(range_id, level))
        self._points += writer.points
        self.position = writer.position

    def add_marker(
        self,
        range_id: RangeId,
        offset: Offset,
        *,
        timestamp: int,
        producer_id: ProducerId,
        producer_epoch: int,
        flags: RowFlags,
        level: int = POINTS_LEVEL_MIN,
    ) -> None:
        """Add the end of a transaction: an entry that takes one offset and no bytes."""
        assert flags in (RowFlags.MARKER_COMMIT, RowFlags.MARKER_ABORT)
        self._enter(range_id)
        entry = ENTRY.pack(
            range_id, self.position, 0, offset, offset, timestamp, producer_id, 0,
            0, 0, 0, producer_epoch, level, flags,
        )  # fmt: skip
        self._entries.append(entry)

    def footer(self) -> bytes:
        """The last bytes of the object: footer and trailer."""
        body = b"".join(self._entries) + b"".join(self._points)
        trailer = TRAILER.pack(
            self.position, len(self._entries), len(self._points), self._object_id, VERSION, 0, 0, END_MAGIC
        )
        covered = trailer[:TRAILER_CRC_AT]
        checksum = crc32c(covered, crc32c(body))
        return b"".join((body, covered, _U32.pack(checksum), END_MAGIC))

    def _enter(self, range_id: RangeId) -> None:
        assert range_id >= self._last_range, "spans come in order of range"
        self._last_range = range_id


class _StampedSpan:
    """What a span of a higher level adds up to while its batches pass."""

    def __init__(self, position: int) -> None:
        self.points: list[bytes] = []
        self.position = position
        self._start = position
        self._block: tuple[Offset, int] = (NO_OFFSET, position)  # offset and position of the open block
        self._first = self._last = NO_OFFSET
        self._record_count = self._batch_count = self._attributes = self._crc = 0
        self._max_timestamp = NO_TIMESTAMP

    def append(self, base_offset: Offset, batch: Batch, leader_epoch: int) -> tuple[Buffer, Buffer]:
        assert base_offset > self._last, "batches come in order of offset"
        prefix, rest = stamp(batch.view, base_offset, leader_epoch)
        if self._batch_count == 0:
            self._first = base_offset
            self._block = (base_offset, self.position)
        elif self.position + batch.size - self._block[1] > POINT_SPACING:
            self._close_block()
            self._block = (base_offset, self.position)
        self._crc = crc32c(rest[: CRC_START - len(prefix)], crc32c(prefix, self._crc))
        self._last = Offset(base_offset + _last_offset_delta(batch))
        self._batch_count += 1
        self._record_count += batch.record_count
        self._attributes |= batch.attributes
        self._max_timestamp = max(self._max_timestamp, batch.max_timestamp)
        self.position += batch.size
        return prefix, rest

    def finish(self, range_id: RangeId, level: int) -> bytes:
        """The span's entry; the points are complete from here on."""
        assert self._batch_count > 0, "a span holds at least one batch"
        self._close_block()
        flags = RowFlags.OFFSETS_STAMPED
        if self._attributes & TRANSACTIONAL_BIT:
            flags |= RowFlags.TRANSACTIONAL
        return ENTRY.pack(
            range_id, self._start, self.position - self._start, self._first, self._last, self._max_timestamp,
            NO_PRODUCER, self._record_count, self._batch_count, self._crc, len(self.points), NO_EPOCH,
            level, flags,
        )  # fmt: skip

    def _close_block(self) -> None:
        self.points.append(POINT.pack(*self._block, self._max_timestamp))


def _last_offset_delta(batch: Batch) -> int:
    """Not the record count less one: a cleaned batch keeps the offsets of the records it lost."""
    return int(_U32.unpack_from(batch.view, 23)[0])


def build(spans: Iterable[Span], *, object_id: ObjectId = NO_OBJECT) -> BuiltObject:
    """A level 0 object of spans in ascending order of range; no batch is copied."""
    builder = ObjectBuilder(object_id)
    pieces: list[Buffer] = [START_MAGIC]
    positions: list[int] = []
    for span in spans:
        builder.add(span.range, span.batches, positions)
        pieces += [batch.view for batch in span.batches]
    footer = builder.footer()
    pieces.append(footer)
    return BuiltObject(pieces, positions, builder.position + len(footer))


def spans_of(entries: Iterable[tuple[RangeId, Batch]]) -> list[Span]:
    """Entries already sorted by range, grouped; the order within a range is kept."""
    spans: list[Span] = []
    batches: list[Batch] = []
    current = None
    for range_id, batch in entries:
        if range_id != current:
            current = range_id
            batches = []
            spans.append(Span(range_id, batches))
        batches.append(batch)
    return spans
