"""Range records: one per range, key (range)."""

import struct

from floe.machines.range_record import RangeRecord
from floe.machines.retention import RangeLimits
from floe.metadata.keys import RANGE
from floe.model.ids import Offset, RangeId, TopicId
from floe.model.topic import RangeState

_KEY = struct.Struct(">cQ")
_FIXED = ">B16sqqQQQQQqqQ"
_LEVELS_MAX = 12  # of a time tree over 64-bit offsets
_LAYOUTS = tuple(struct.Struct(_FIXED + "qI" * level_count) for level_count in range(_LEVELS_MAX + 1))
_LEVEL_SIZE = struct.calcsize(">qI")
_ACTIVE = RangeState.ACTIVE
_STATES = (RangeState.ACTIVE, RangeState.SEALED, RangeState.DELETING)


def range_key(range_id: RangeId) -> bytes:
    return _KEY.pack(RANGE, range_id)


def encode_range(record: RangeRecord) -> bytes:
    open_nodes, limits = record.open_nodes, record.limits
    return _LAYOUTS[len(open_nodes) // 2].pack(
        0 if record.state is _ACTIVE else _STATES.index(record.state),
        record.topic_id,
        limits.retention_ms,
        limits.retention_bytes,
        record.log_start,
        record.log_end,
        record.rows_start,
        record.row_count,
        record.stored_bytes,
        record.drop_at,
        record.head_time,
        record.head_size,
        *open_nodes,
    )


def decode_range(value: bytes) -> RangeRecord:
    level_count = (len(value) - _LAYOUTS[0].size) // _LEVEL_SIZE
    state, topic_id, retention_ms, retention_bytes, *numbers = _LAYOUTS[level_count].unpack(value)
    limits = RangeLimits(retention_ms, retention_bytes)
    return RangeRecord(
        TopicId(topic_id),
        _STATES[state],
        limits,
        Offset(numbers[0]),
        Offset(numbers[1]),
        Offset(numbers[2]),
        row_count=numbers[3],
        stored_bytes=numbers[4],
        drop_at=numbers[5],
        head_time=numbers[6],
        head_size=numbers[7],
        open_nodes=tuple(numbers[8:]),
    )
