"""What a vnode holds of an object: its live rows and, until its bucket is closed, its commit's results."""

import struct
from collections.abc import Sequence

from floe.metadata.keys import OBJECT, RELEASED
from floe.model.coordinates import EntryResult
from floe.model.error_codes import ErrorCode
from floe.model.ids import Bucket, ObjectId, Offset, object_id

_KEY = struct.Struct(">cQ")
_LIVE = struct.Struct(">I")
_RESULT = struct.Struct(">hBqq")  # error, whether a duplicate, base offset, log start
# One call packs the results of a small commit; layouts grow with their number, so there are few of them.
_LAYOUTS = tuple(struct.Struct(">I" + "hBqq" * count) for count in range(33))


def object_key(object_id: ObjectId) -> bytes:
    return _KEY.pack(OBJECT, object_id)


def bucket_keys(bucket: Bucket, after: ObjectId | None = None) -> tuple[bytes, bytes]:
    """Start and end of the keys of a bucket's objects, beyond `after`."""
    start = object_id(bucket, 0) if after is None else ObjectId(after + 1)
    return _KEY.pack(OBJECT, start), _KEY.pack(OBJECT, object_id(Bucket(bucket + 1), 0))


def released_key(object_id: ObjectId) -> bytes:
    return _KEY.pack(RELEASED, object_id)


def read_object_key(key: bytes) -> ObjectId:
    """The object named by a key of this module."""
    return ObjectId(_KEY.unpack(key)[1])


def encode_object(live_rows: int, results: Sequence[EntryResult]) -> bytes:
    if len(results) >= len(_LAYOUTS):
        packed = [_RESULT.pack(r.error, r.is_duplicate, r.base_offset, r.log_start) for r in results]
        return _LIVE.pack(live_rows) + b"".join(packed)
    numbers: list[int] = []
    for result in results:
        numbers += (result.error, result.is_duplicate, result.base_offset, result.log_start)
    return _LAYOUTS[len(results)].pack(live_rows, *numbers)


def decode_results(value: bytes) -> tuple[EntryResult, ...]:
    return tuple(
        EntryResult(ErrorCode(error), Offset(base), Offset(log_start), bool(is_duplicate))
        for error, is_duplicate, base, log_start in _RESULT.iter_unpack(value[_LIVE.size :])
    )


def live_rows_of(value: bytes) -> int:
    live: int = _LIVE.unpack_from(value)[0]
    return live


def with_live_rows(value: bytes, live_rows: int) -> bytes:
    return _LIVE.pack(live_rows) + value[_LIVE.size :]


def without_results(value: bytes) -> bytes:
    return value[: _LIVE.size]
