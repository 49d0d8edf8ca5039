"""Verifying an object against nothing but itself.

`verify` takes a whole object; `check_span` takes the bytes of one span, so that an object of any size
can be verified a span at a time after its index was read.
"""

import msgspec
from crc32c import crc32c

from floe.model.coordinates import RowFlags
from floe.model.errors import Corrupt
from floe.wire.batch import (
    CRC_START,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from floe.wire.object_file import POINT_SPACING, START_MAGIC, START_SIZE
from floe.wire.object_index import ObjectIndex, SpanEntry, read_index

PROBLEMS_MAX = 100


class Report(msgspec.Struct, frozen=True):
    """What a verification found; an object without problems holds just what was once written.

    `problems` has at most `PROBLEMS_MAX` sentences. `index` is None when the index itself is broken.
    """

    problems: tuple[str, ...]
    index: ObjectIndex | None = None

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(data: Buffer) -> Report:
    """Check every byte of a whole object."""
    view = memoryview(data)
    try:
        index = read_index(view)
    except Corrupt as error:
        return Report((str(error),))
    problems: list[str] = []
    if view[:START_SIZE] != START_MAGIC:
        problems.append("the bytes do not start like an object")
    if len(view) != index.size:
        problems.append(f"object has {len(view)} bytes, its index says {index.size}")
    else:
        for entry in index.entries:
            problems += check_span(index, entry, view[entry.position : entry.position + entry.size])
            if len(problems) >= PROBLEMS_MAX:
                break
    return Report(tuple(problems[:PROBLEMS_MAX]), index)


def check_span(index: ObjectIndex, entry: SpanEntry, span: memoryview) -> list[str]:
    """What is wrong with the bytes of one span; empty when nothing is."""
    where = f"range {entry.range} at position {entry.position}"
    try:
        found = _measure(index, entry, span)
    except Corrupt as error:
        return [f"{where}: {error}"]
    expected = _Sums(
        entry.batch_count, entry.record_count, entry.max_timestamp, entry.prefix_crc, entry.flags
    )
    if entry.is_marker or found == expected:
        return []
    return [f"{where}: entry says {expected}, its batches say {found}"]


class _Sums(msgspec.Struct):
    """What a span's batches add up to, as its entry has it."""

    batch_count: int = 0
    record_count: int = 0
    max_timestamp: int = NO_TIMESTAMP
    prefix_crc: int = 0
    flags: RowFlags = RowFlags.NONE


def _measure(index: ObjectIndex, entry: SpanEntry, span: memoryview) -> _Sums:
    is_stamped = RowFlags.OFFSETS_STAMPED in entry.flags
    sums = _Sums(flags=entry.flags & RowFlags.OFFSETS_STAMPED)
    position, next_offset = 0, int(entry.first)
    points = _Points(index, entry)
    while position < len(span):
        header = read_header(span, position)
        batch = span[position : position + header.size]
        if not has_valid_crc(batch):
            raise Corrupt(f"checksum of the batch at {entry.position + position} is wrong")
        if is_stamped:
            if header.base_offset < next_offset:
                raise Corrupt(
                    f"offset {header.base_offset} of the batch at {entry.position + position} goes back"
                )
            next_offset = header.base_offset + header.last_offset_delta + 1
            points.pass_batch(entry.position + position, header, sums.max_timestamp)
        _add(sums, header, batch)
        position += header.size
    if is_stamped and (next_offset != entry.last + 1 or not points.are_passed):
        raise Corrupt(f"batches end before offset {next_offset}, the entry says {entry.last} is the last")
    return sums


def _add(sums: _Sums, header: BatchHeader, batch: memoryview) -> None:
    sums.batch_count += 1
    sums.record_count += header.record_count
    sums.max_timestamp = max(sums.max_timestamp, header.max_timestamp)
    sums.prefix_crc = crc32c(batch[:CRC_START], sums.prefix_crc)
    if header.attributes & TRANSACTIONAL_BIT:
        sums.flags |= RowFlags.TRANSACTIONAL


class _Points:
    """Follows a span's batches and compares each point with the batch it names."""

    def __init__(self, index: ObjectIndex, entry: SpanEntry) -> None:
        self._index = index
        self._next = entry.point_start
        self._end = entry.point_end
        self._block_position = entry.position

    @property
    def are_passed(self) -> bool:
        return self._next == self._end

    def pass_batch(self, position: int, header: BatchHeader, max_timestamp_before: int) -> None:
        index, point = self._index, self._next
        if point < self._end and index.point_positions[point] == position:
            if index.point_offsets[point] != header.base_offset:
                raise Corrupt(f"the point at {position} says offset {index.point_offsets[point]}")
            if position > self._block_position and index.point_timestamps[point - 1] != max_timestamp_before:
                raise Corrupt(f"the point before {position} has a wrong greatest timestamp")
            self._block_position = position
            self._next += 1
        elif position + header.size - self._block_position > POINT_SPACING:
            raise Corrupt(f"no point for the batch at {position}")
