"""Key prefixes of a vnode's key space, one byte each, so that kinds never overlap and scans stay bounded.

Integers in keys are big-endian and fixed width, so that byte order is numeric order.
"""

import struct

CLUSTER = b"a"  # facts about the cluster itself (vnode 0)
COUNTER = b"c"  # counter name -> next free value (vnode 0)
DROP = b"d"  # time, range -> nothing: when a range can next have something to drop
TOPIC = b"t"  # topic name -> topic
OPERATION = b"o"  # operation id -> kind, arguments, step
RANGE = b"r"  # range -> log start and end, state, limits
ROW = b"x"  # range, last offset -> coordinates row
TIME_NODE = b"n"  # range, level, index -> greatest timestamp of that block of offsets
PRODUCER = b"p"  # range, producer id -> epoch and last batches
PRODUCER_EXPIRY = b"e"  # time, range, producer id -> nothing
BUCKET = b"b"  # bucket -> ids issued, state (at its home)
MARK = b"k"  # the vnode's closed-bucket mark
OBJECT = b"j"  # object -> results of its entries, live rows (at each vnode that holds some)
HOLDER = b"h"  # object -> vnodes that hold it (at its home, once its bucket is closed)
RELEASED = b"q"  # object -> nothing: releases not yet acknowledged by its home
WORK = b"w"  # work item -> kind, objects, lease (at the item's home)

_U64 = struct.Struct(">Q")
_U64_U64 = struct.Struct(">QQ")


def u64(value: int) -> bytes:
    """Eight bytes in numeric order."""
    return _U64.pack(value)


def u64_pair(first: int, second: int) -> bytes:
    """Two integers in numeric order of the first, then the second."""
    return _U64_U64.pack(first, second)


def read_u64(key: bytes, position: int) -> int:
    """The integer at a position of a key."""
    value: int = _U64.unpack_from(key, position)[0]
    return value


def after(prefix: bytes) -> bytes:
    """The least key greater than every key that starts with this prefix."""
    for i in range(len(prefix) - 1, -1, -1):
        if prefix[i] != 0xFF:
            return prefix[:i] + bytes((prefix[i] + 1,))
    raise AssertionError("prefix of 0xff bytes only")
