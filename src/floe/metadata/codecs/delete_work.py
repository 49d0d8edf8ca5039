"""Delete work at an object's home: objects that wait, leased items, and when their leases run out."""

import struct
from typing import NamedTuple

from floe.metadata.keys import WORK
from floe.model.ids import ObjectId

WAITING = WORK + b"p"  # time, object -> nothing
LEASES = WORK + b"l"  # deadline, item -> nothing
_ITEMS = WORK + b"i"  # item -> token, deadline, objects
COUNTERS_KEY = WORK + b"c"

_TIME_AND_ID = struct.Struct(">2sQQ")
_ITEM_KEY = struct.Struct(">2sQ")
_ITEM = struct.Struct(">QQ")
_COUNTERS = struct.Struct(">QQ")


class LeasedItem(NamedTuple):
    """An item as stored."""

    token: int
    deadline_ms: int
    objects: tuple[ObjectId, ...]


class WorkCounters(NamedTuple):
    """The next item id or token, and how many objects are not deleted yet."""

    next_number: int = 1
    pending: int = 0


def waiting_key(time_ms: int, object_id: ObjectId) -> bytes:
    return _TIME_AND_ID.pack(WAITING, time_ms, object_id)


def read_waiting_key(key: bytes) -> ObjectId:
    return ObjectId(_TIME_AND_ID.unpack(key)[2])


def lease_key(deadline_ms: int, item_id: int) -> bytes:
    return _TIME_AND_ID.pack(LEASES, deadline_ms, item_id)


def read_lease_key(key: bytes) -> int:
    item_id: int = _TIME_AND_ID.unpack(key)[2]
    return item_id


def item_key(item_id: int) -> bytes:
    return _ITEM_KEY.pack(_ITEMS, item_id)


def encode_item(item: LeasedItem) -> bytes:
    return _ITEM.pack(item.token, item.deadline_ms) + struct.pack(f">{len(item.objects)}Q", *item.objects)


def decode_item(value: bytes) -> LeasedItem:
    token, deadline_ms = _ITEM.unpack_from(value)
    count = (len(value) - _ITEM.size) // 8
    objects = struct.unpack_from(f">{count}Q", value, _ITEM.size)
    return LeasedItem(token, deadline_ms, tuple(ObjectId(o) for o in objects))


def encode_counters(counters: WorkCounters) -> bytes:
    return _COUNTERS.pack(*counters)


def decode_counters(value: bytes) -> WorkCounters:
    return WorkCounters(*_COUNTERS.unpack(value))
