"""The record of a range: state, limits, ends, and what decides when its front can be dropped."""

import struct
from functools import lru_cache
from typing import NamedTuple

from floe.machines.retention import NEVER, RangeLimits
from floe.machines.time_tree import OpenNode, OpenNodes
from floe.metadata.keys import RANGE
from floe.model.ids import RangeId, TopicId
from floe.model.topic import RangeState

_KEY = struct.Struct(">cQ")
_FIXED = ">B16sqqQQQQQqqQB"
_STATES = (RangeState.ACTIVE, RangeState.SEALED, RangeState.DELETING)
_STATE_NUMBERS = {state: number for number, state in enumerate(_STATES)}


class RangeRecord(NamedTuple):
    """A range as its coordinator keeps it; immutable.

    `log_start` may lie inside the first row. `rows_start` is the first offset of the first stored row and
    equals `log_end` when there is none; scans begin there, so that they do not pass over deleted keys.
    `head_time` and `head_size` are the first row's. `drop_at` is the range's time in the drop index, or
    `NEVER`.
    """

    topic_id: TopicId
    state: RangeState
    limits: RangeLimits
    log_start: int = 0
    log_end: int = 0
    rows_start: int = 0
    row_count: int = 0
    stored_bytes: int = 0
    drop_at: int = NEVER
    head_time: int = 0
    head_size: int = 0
    open_nodes: OpenNodes = ()


def range_key(range_id: RangeId) -> bytes:
    return _KEY.pack(RANGE, range_id)


@lru_cache(maxsize=16)
def _layout(level_count: int) -> struct.Struct:
    return struct.Struct(_FIXED + "qI" * level_count)


def encode_range(record: RangeRecord) -> bytes:
    nodes = record.open_nodes
    limits = record.limits
    levels = [number for node in nodes for number in node]
    return _layout(len(nodes)).pack(
        _STATE_NUMBERS[record.state],
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
        len(nodes),
        *levels,
    )


def decode_range(value: bytes) -> RangeRecord:
    level_count = (len(value) - _layout(0).size) // 12
    fields = _layout(level_count).unpack(value)
    levels = fields[13:]
    nodes = tuple(OpenNode(levels[i], levels[i + 1]) for i in range(0, len(levels), 2))
    limits = RangeLimits(fields[2], fields[3])
    return RangeRecord._make((fields[1], _STATES[fields[0]], limits, *fields[4:12], nodes))
