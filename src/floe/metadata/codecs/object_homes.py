"""What an object's home keeps: buckets that are not closed, and the holders of closed buckets' objects."""

import struct
from collections.abc import Collection
from typing import NamedTuple

from floe.metadata.keys import BUCKET, HOLDER
from floe.model.ids import Bucket, ObjectId, VnodeId

_KEY = struct.Struct(">cQ")
_BUCKET = struct.Struct(">?II")


class BucketRecord(NamedTuple):
    """A bucket that is open or being closed; a closed one has no record.

    `issued` ids have been leased, from 0 on. The first `settled` of them have been judged by a close.
    """

    is_closing: bool = False
    issued: int = 0
    settled: int = 0


def bucket_key(bucket: Bucket) -> bytes:
    return _KEY.pack(BUCKET, bucket)


def read_bucket_key(key: bytes) -> Bucket:
    return Bucket(_KEY.unpack(key)[1])


def encode_bucket(record: BucketRecord) -> bytes:
    return _BUCKET.pack(*record)


def decode_bucket(value: bytes) -> BucketRecord:
    return BucketRecord(*_BUCKET.unpack(value))


def holder_key(object_id: ObjectId) -> bytes:
    return _KEY.pack(HOLDER, object_id)


def encode_holders(vnodes: Collection[VnodeId]) -> bytes:
    return struct.pack(f">{len(vnodes)}H", *vnodes)


def decode_holders(value: bytes) -> set[VnodeId]:
    return {VnodeId(vnode) for vnode in struct.unpack(f">{len(value) // 2}H", value)}
