"""Coordinates rows: key (range, last offset), so that one scan finds the row that holds an offset."""

import struct

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


def encode_row(
    first: int,
    last: int,
    object_id: ObjectId | None,
    position: int,
    size: int,
    max_timestamp: int,
    flags: int,
    committed_at: int,
    level: int = 0,
) -> bytes:
    """A row's value; its range and last offset are in the key."""
    stored = _NO_OBJECT if object_id is None else object_id
    return _VALUE.pack(level, flags, last - first, stored, position, size, max_timestamp, committed_at)


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
