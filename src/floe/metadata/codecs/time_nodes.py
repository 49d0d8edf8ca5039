"""Complete nodes of a range's time tree, key (range, level, index)."""

import struct

from floe.metadata.keys import TIME_NODE
from floe.model.ids import RangeId

_KEY = struct.Struct(">cQBQ")
_VALUE = struct.Struct(">q")


def node_key(range_id: RangeId, level: int, index: int) -> bytes:
    return _KEY.pack(TIME_NODE, range_id, level, index)


def node_index(key: bytes) -> int:
    index: int = _KEY.unpack(key)[3]
    return index


def encode_node(max_timestamp: int) -> bytes:
    return _VALUE.pack(max_timestamp)


def decode_node(value: bytes) -> int:
    max_timestamp: int = _VALUE.unpack(value)[0]
    return max_timestamp
