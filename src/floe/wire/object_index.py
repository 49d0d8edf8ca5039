"""Reading an object's index from its tail, with no metadata at all.

Everything read is checked before it is believed: magic, version, checksum, that counts fit the bytes
at hand, that spans follow each other without gaps, that points lie inside their spans in order. What
does not fit raises `Corrupt`; an index that was read can be used without further checks.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from crc32c import crc32c

from floe.model.coordinates import RowFlags
from floe.model.errors import Corrupt
from floe.model.ids import ObjectId, Offset, ProducerId, RangeId
from floe.wire.batch import Buffer
from floe.wire.object_file import (
    END_MAGIC,
    ENTRY,
    POINT,
    POINTS_LEVEL_MIN,
    START_SIZE,
    TRAILER,
    TRAILER_CRC_AT,
    VERSION,
)

TAIL_SIZE_GUESS = 64 << 10  # holds the index of some 800 spans: what to read before the size is known

_MARKERS = RowFlags.MARKER_COMMIT | RowFlags.MARKER_ABORT
_FLAGS = tuple(RowFlags(bits) for bits in range(16))  # making a flag value is slow, looking it up is not


class SpanEntry(NamedTuple):
    """One entry of the footer: a span of batches, or a marker, which has no bytes.

    Offsets are -1 at level 0, the producer is -1 except for markers. The entry's points are those from
    `point_start` to `point_end` of its index.
    """

    range: RangeId
    position: int
    size: int
    first: Offset
    last: Offset
    max_timestamp: int
    producer_id: ProducerId
    record_count: int
    batch_count: int
    prefix_crc: int
    producer_epoch: int
    level: int
    flags: RowFlags
    point_start: int
    point_end: int

    @property
    def is_marker(self) -> bool:
        return bool(self.flags & _MARKERS)


class ObjectIndex:
    """What an object holds; entries in order of range and position."""

    __slots__ = (
        "entries",
        "footer_position",
        "object_id",
        "point_offsets",
        "point_positions",
        "point_timestamps",
        "size",
    )  # fmt: skip

    def __init__(
        self,
        object_id: ObjectId,
        size: int,
        footer_position: int,
        entries: Sequence[SpanEntry],
        points: bytes,
    ) -> None:
        self.object_id = object_id
        self.size = size
        self.footer_position = footer_position
        self.entries = entries
        offsets, positions, timestamps = array("q"), array("Q"), array("q")
        for offset, position, timestamp in POINT.iter_unpack(points):
            offsets.append(offset)
            positions.append(position)
            timestamps.append(timestamp)
        self.point_offsets = offsets
        self.point_positions = positions
        self.point_timestamps = timestamps

    def entries_of(self, range_id: RangeId) -> Sequence[SpanEntry]:
        """The entries of one range; empty when the object holds none."""
        start = bisect_left(self.entries, range_id, key=_range_of)
        end = bisect_right(self.entries, range_id, lo=start, key=_range_of)
        return self.entries[start:end]

    def block_of(self, entry: SpanEntry, offset: Offset) -> tuple[int, int]:
        """(position, size) of the block that holds the offset, or of the first after it.

        A span without points is one block.
        """
        if entry.point_start == entry.point_end:
            return entry.position, entry.size
        after = bisect_right(self.point_offsets, offset, entry.point_start, entry.point_end)
        return self._block(entry, max(after - 1, entry.point_start))

    def block_at_time(self, entry: SpanEntry, timestamp: int) -> tuple[int, int] | None:
        """(position, size) of the first block with a record at or after the timestamp."""
        if entry.is_marker or entry.max_timestamp < timestamp:
            return None
        if entry.point_start == entry.point_end:
            return entry.position, entry.size
        first = bisect_left(self.point_timestamps, timestamp, entry.point_start, entry.point_end)
        return self._block(entry, first)

    def _block(self, entry: SpanEntry, point: int) -> tuple[int, int]:
        position = self.point_positions[point]
        is_last = point + 1 == entry.point_end
        end = entry.position + entry.size if is_last else self.point_positions[point + 1]
        return position, end - position


def _range_of(entry: SpanEntry) -> RangeId:
    return entry.range


def tail_size(tail: Buffer) -> int:
    """How many of an object's last bytes hold its whole index; read that many when `tail` has fewer."""
    _, entry_count, point_count, *_ = _trailer(tail)
    return entry_count * ENTRY.size + point_count * POINT.size + TRAILER.size


def read_index(tail: Buffer) -> ObjectIndex:
    """The index, from the last bytes of an object: at least `tail_size` of them, or all."""
    footer_position, entry_count, point_count, object_id, checksum = _trailer(tail)
    view = memoryview(tail)
    points_size = point_count * POINT.size
    start = len(view) - TRAILER.size - points_size - entry_count * ENTRY.size
    if start < 0:
        raise Corrupt(
            f"index of {entry_count} spans and {point_count} points does not fit into {len(view)} bytes"
        )
    covered_end = len(view) - TRAILER.size + TRAILER_CRC_AT
    if crc32c(view[start:covered_end]) != checksum:
        raise Corrupt("checksum of the object's footer is wrong")
    points_start = start + entry_count * ENTRY.size
    entries = _entries(view[start:points_start], footer_position, point_count)
    index = ObjectIndex(
        object_id,
        footer_position + len(view) - start,
        footer_position,
        entries,
        bytes(view[points_start : points_start + points_size]),
    )
    for entry in entries:
        _check_points(index, entry)
    return index


def _trailer(tail: Buffer) -> tuple[int, int, int, ObjectId, int]:
    """(footer position, entry count, point count, object id, checksum)."""
    if len(tail) < TRAILER.size:
        raise Corrupt(f"{len(tail)} bytes are shorter than an object's trailer")
    fields = TRAILER.unpack_from(tail, len(tail) - TRAILER.size)
    footer_position, entry_count, point_count, object_id, version, flags, checksum, magic = fields
    if magic != END_MAGIC:
        raise Corrupt("the bytes do not end like an object")
    if version != VERSION or flags != 0:
        raise Corrupt(f"object format version {version} with flags {flags} is not known")
    return footer_position, entry_count, point_count, ObjectId(object_id), checksum


def _entries(table: memoryview, body_end: int, point_count: int) -> tuple[SpanEntry, ...]:
    """The entry table; spans must tile the body and their points the point table."""
    entries: list[SpanEntry] = []
    position, point, last_range = START_SIZE, 0, 0
    for (
        range_id, start, size, first, last, max_timestamp, producer_id, record_count,
        batch_count, prefix_crc, points, producer_epoch, level, flags,
    ) in ENTRY.iter_unpack(table):  # fmt: skip
        if start != position or range_id < last_range or flags >= len(_FLAGS):
            raise Corrupt(f"entry of range {range_id} at position {start} is out of place")
        entry = SpanEntry(
            range_id, start, size, first, last, max_timestamp, producer_id, record_count,
            batch_count, prefix_crc, producer_epoch, level, _FLAGS[flags], point, point + points,
        )  # fmt: skip
        _check_shape(entry)
        entries.append(entry)
        position += size
        point += points
        last_range = range_id
    if position != body_end or point != point_count:
        raise Corrupt(f"spans end at {position} and points at {point}, not at {body_end} and {point_count}")
    return tuple(entries)


def _check_shape(entry: SpanEntry) -> None:
    """A marker has no bytes and no points; a stamped span has offsets and points; level 0 has neither."""
    points = entry.point_end - entry.point_start
    is_stamped = RowFlags.OFFSETS_STAMPED in entry.flags
    if entry.is_marker:
        fits = (
            entry.size == entry.batch_count == entry.record_count == points == 0 and entry.first == entry.last
        )
    elif entry.level < POINTS_LEVEL_MIN:
        fits = points == 0 and entry.first == entry.last == -1 and not is_stamped
    else:
        fits = 0 < points <= entry.batch_count and 0 <= entry.first <= entry.last and is_stamped
    if not fits:
        raise Corrupt(f"entry of range {entry.range} at position {entry.position} contradicts itself")


def _check_points(index: ObjectIndex, entry: SpanEntry) -> None:
    """Points start with the span, rise in offset and position, and never fall in timestamp."""
    start, end = entry.point_start, entry.point_end
    if start == end:
        return
    offsets, positions = index.point_offsets[start:end], index.point_positions[start:end]
    timestamps = index.point_timestamps[start:end]
    if (
        offsets[0] != entry.first
        or positions[0] != entry.position
        or offsets[-1] > entry.last
        or positions[-1] >= entry.position + entry.size
        or timestamps[-1] != entry.max_timestamp
        or any(a >= b for a, b in pairwise(offsets))
        or any(a >= b for a, b in pairwise(positions))
        or any(a > b for a, b in pairwise(timestamps))
    ):
        raise Corrupt(f"points of range {entry.range} at position {entry.position} are out of order")
