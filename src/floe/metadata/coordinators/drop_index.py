"""The index of when a range can next have something to drop, ordered by time."""

import struct

from floe.machines.retention import NEVER
from floe.metadata.keys import DROP
from floe.metadata.vnode import Transaction
from floe.model.ids import RangeId

_KEY = struct.Struct(">cQQ")


def drop_key(time_ms: int, range_id: RangeId) -> bytes:
    return _KEY.pack(DROP, time_ms, range_id)


def read_drop_key(key: bytes) -> tuple[int, RangeId]:
    _, time_ms, range_id = _KEY.unpack(key)
    return time_ms, RangeId(range_id)


def move_drop(tx: Transaction, range_id: RangeId, before: int, after: int) -> None:
    """Move a range's entry from one time to another; either may be `NEVER`."""
    if before == after:
        return
    if before != NEVER:
        tx.delete(drop_key(before, range_id))
    if after != NEVER:
        tx.put(drop_key(after, range_id), b"")
