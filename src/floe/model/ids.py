"""Identifiers, one type each, so that a partition index never lands where an offset belongs."""

from typing import NewType

TopicId = NewType("TopicId", bytes)  # 16 bytes, never reused; Kafka's topic UUID
RangeId = NewType("RangeId", int)  # never reused; drawn from a cluster-wide counter
Offset = NewType("Offset", int)
VnodeId = NewType("VnodeId", int)
Term = NewType("Term", int)
BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)
Bucket = NewType("Bucket", int)  # number of a time bucket of BUCKET_MS since the epoch
ObjectId = NewType("ObjectId", int)  # bucket << 32 | sequence within the bucket

BUCKET_MS = 5 * 60 * 1000
NO_PRODUCER = ProducerId(-1)
NO_OFFSET = Offset(-1)
ZERO_TOPIC_ID = TopicId(bytes(16))

_SEQUENCE_BITS = 32


def bucket_at(now_ms: int) -> Bucket:
    """The bucket that ids issued at this time belong to."""
    return Bucket(now_ms // BUCKET_MS)


def object_id(bucket: Bucket, sequence: int) -> ObjectId:
    """Ids of one bucket are contiguous, so that a vnode lists a bucket's objects in one scan."""
    assert 0 <= sequence < 1 << _SEQUENCE_BITS
    return ObjectId(bucket << _SEQUENCE_BITS | sequence)


def bucket_of(object_id: ObjectId) -> Bucket:
    """The bucket an object was issued in; it decides the object's home vnode."""
    return Bucket(object_id >> _SEQUENCE_BITS)


def sequence_of(object_id: ObjectId) -> int:
    """The object's number within its bucket."""
    return object_id & ((1 << _SEQUENCE_BITS) - 1)


def object_key(cluster_id: str, object_id: ObjectId) -> str:
    """The key below the store's prefix; the only place that knows how keys are spelled."""
    return f"{cluster_id}/objects/{bucket_of(object_id):08x}/{sequence_of(object_id):08x}"
