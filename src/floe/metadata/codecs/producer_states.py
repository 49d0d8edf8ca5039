"""Producer states, key (range, producer), and the index of when they may expire."""

import struct
from functools import lru_cache

from floe.machines.producer_state import ProducerState
from floe.metadata.keys import PRODUCER, PRODUCER_EXPIRY
from floe.model.ids import ProducerId, RangeId

_KEY = struct.Struct(">cQQ")
_EXPIRY_KEY = struct.Struct(">cQQQ")
_FIXED = ">hq"
_BATCH_SIZE = struct.calcsize(">iiQ")


def producer_key(range_id: RangeId, producer_id: int) -> bytes:
    return _KEY.pack(PRODUCER, range_id, producer_id)


def read_producer_key(key: bytes) -> tuple[RangeId, ProducerId]:
    _, range_id, producer_id = _KEY.unpack(key)
    return RangeId(range_id), ProducerId(producer_id)


def producers_end(range_id: RangeId) -> bytes:
    """The end of a range's producer states, exclusive."""
    return _KEY.pack(PRODUCER, range_id + 1, 0)


def expiry_key(time_ms: int, range_id: RangeId, producer_id: int) -> bytes:
    return _EXPIRY_KEY.pack(PRODUCER_EXPIRY, time_ms, range_id, producer_id)


def read_expiry_key(key: bytes) -> tuple[int, RangeId, ProducerId]:
    _, time_ms, range_id, producer_id = _EXPIRY_KEY.unpack(key)
    return time_ms, RangeId(range_id), ProducerId(producer_id)


@lru_cache(maxsize=8)
def _layout(number_count: int) -> struct.Struct:
    return struct.Struct(_FIXED + "iiQ" * (number_count // 3))


def encode_producer(state: ProducerState) -> bytes:
    batches = state.batches
    return _layout(len(batches)).pack(state.epoch, state.last_used_ms, *batches)


def decode_producer(value: bytes) -> ProducerState:
    batch_count = (len(value) - _layout(0).size) // _BATCH_SIZE
    epoch, last_used_ms, *batches = _layout(3 * batch_count).unpack(value)
    return ProducerState(epoch, last_used_ms, tuple(batches))
