"""Coordinates rows: key (range, last offset), so that one scan finds the row that holds an offset."""

import struct

from floe.machines.log_draft import RowSpan
from floe.metadata.keys import ROW
from floe.model.coordinates import Row, RowFlags
from floe.model.ids import ObjectId, Offset, RangeId

_KEY = struct.Struct(">cQQ")
# level, flags, offsets before the last, object, position, size, greatest timestamp, commit time
_VALUE = struct.Struct(">BBIQQIqq")
_NO_OBJECT = (1 << 64) - 1
_FLAGS = tuple(RowFlags(value) for value in range(256))


def row_key(range_id: RangeId, last: int) -> bytes:
    """Scans from here start at the row that holds offset `last`."""
    return _KEY.pack(ROW, range_id, last)


def rows_end(range_id: RangeId) -> bytes:
    """The end of a range's rows, exclusive."""
    return _KEY.pack(ROW, range_id + 1, 0)


def encode_span(span: RowSpan, committed_at: int) -> bytes:
    """The value of a new level 0 row; its range and last offset are in the key."""
    return _VALUE.pack(
        0,
        span.flags,
        span.last - span.first,
        span.object,
        span.position,
        span.end_position - span.position,
        span.max_timestamp,
        committed_at,
    )


def decode_row(key: bytes, value: bytes) -> Row:
    """The row stored under this key."""
    _, range_id, last = _KEY.unpack(key)
    level, flags, span, object_id, position, size, max_timestamp, committed_at = _VALUE.unpack(value)
    return Row(
        RangeId(range_id),
        Offset(last - span),
        Offset(last),
        None if object_id == _NO_OBJECT else ObjectId(object_id),
        position,
        size,
        max_timestamp,
        committed_at,
        level,
        _FLAGS[flags],
    )
