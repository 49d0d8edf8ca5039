"""Which vnode owns what: points of a 64-bit ring, cut into arcs.

Everything that has a home has a point. A vnode owns the points from its start up to the next start, so a
vnode is split by adding a start within its arc, and nobody else's points move. The functions from things to
points are part of the stored format and never change:

- a topic: BLAKE2b of its name with dots read as underscores, since Kafka takes names that differ only
  there for the same; such names share a home, which can then keep all but one of them out;
- a range: a mix (splitmix64's finalizer) of its id without the lowest three bits, so that eight neighbours,
  which are usually partitions of one topic, share a vnode and an object's commit reaches few vnodes;
- a bucket: its number with the 64 bits reversed, so that consecutive buckets rotate over all vnodes, in
  steps as large as can be, however many vnodes there are.
"""

from bisect import bisect_right
from hashlib import blake2b

from floe.model.ids import Bucket, ObjectId, RangeId, VnodeId, bucket_of

RING_BITS = 64
RANGES_TOGETHER_BITS = 3
_MASK = (1 << RING_BITS) - 1


def topic_point(name: str) -> int:
    """Names that Kafka takes for the same have the same point."""
    folded = folded_name(name).encode()
    return int.from_bytes(blake2b(folded, digest_size=RING_BITS // 8).digest(), "big")


def folded_name(name: str) -> str:
    """What two names have in common when Kafka would not tell them apart in a metric's name."""
    return name.replace(".", "_")


def range_point(range_id: RangeId) -> int:
    """The same for eight neighbours; else without any order."""
    x = range_id >> RANGES_TOGETHER_BITS
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def bucket_point(bucket: Bucket) -> int:
    """Consecutive buckets lie as far from one another as can be."""
    return int(f"{bucket:0{RING_BITS}b}"[::-1], 2)


class Ring:
    """The arcs: vnode i owns the points from `starts[i]` up to the next start."""

    def __init__(self, starts: tuple[int, ...]) -> None:
        assert starts
        assert starts[0] == 0
        assert list(starts) == sorted(set(starts))
        self._starts = starts

    @classmethod
    def even(cls, vnode_count: int) -> "Ring":
        """Arcs of equal length."""
        return cls(tuple((i << RING_BITS) // vnode_count for i in range(vnode_count)))

    @property
    def vnode_count(self) -> int:
        return len(self._starts)

    def owner(self, point: int) -> VnodeId:
        return VnodeId(bisect_right(self._starts, point) - 1)

    def of_topic(self, name: str) -> VnodeId:
        return self.owner(topic_point(name))

    def of_range(self, range_id: RangeId) -> VnodeId:
        return self.owner(range_point(range_id))

    def of_bucket(self, bucket: Bucket) -> VnodeId:
        return self.owner(bucket_point(bucket))

    def of_object(self, object_id: ObjectId) -> VnodeId:
        """An object's home is its bucket's."""
        return self.owner(bucket_point(bucket_of(object_id)))
