"""How keys map to ranges: Kafka's partitioner seen as a forest of binary tries.

A topic of N = m * 2^k partitions (m odd) has m roots. With h = murmur2(key) & 0x7fffffff, the root is
h % m and the path below it is the low bits of h // m, lowest first. The partition is
root + m * path, which equals h % N. Doubling N therefore splits every slice in two: partition p keeps the
slice whose next bit is 0 and partition p + N takes the one whose next bit is 1.

Invariant: the slices of a topic cover every hash exactly once.
"""

from dataclasses import dataclass

_MASK32 = 0xFFFFFFFF
_M = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2, unsigned."""
    length = len(data)
    h = _SEED ^ length
    for i in range(0, length & ~3, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK32
        k = (k ^ k >> 24) * _M & _MASK32
        h = (h * _M & _MASK32) ^ k
    tail = data[length & ~3 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK32
    h = (h ^ h >> 13) * _M & _MASK32
    return h ^ h >> 15


def key_hash(key: bytes) -> int:
    """The non-negative hash that Kafka's default partitioner takes modulo the partition count."""
    return murmur2(key) & 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Slice:
    """The keys of one partition: those of `root` among `roots` whose path starts with `depth` bits."""

    roots: int
    root: int
    depth: int
    path: int

    def holds(self, hash_: int) -> bool:
        """Whether a key with this hash belongs here."""
        if hash_ % self.roots != self.root:
            return False
        return (hash_ // self.roots) & ((1 << self.depth) - 1) == self.path

    def halves(self) -> tuple["Slice", "Slice"]:
        """The two slices this one splits into; the first keeps the partition's number."""
        deeper = self.depth + 1
        return (
            Slice(self.roots, self.root, deeper, self.path),
            Slice(self.roots, self.root, deeper, self.path | 1 << self.depth),
        )

    @property
    def partition(self) -> int:
        """Kafka's number of this slice in a topic whose slices all have this depth."""
        return self.root + self.roots * self.path


def odd_part(partitions: int) -> tuple[int, int]:
    """(m, k) with partitions = m * 2^k and m odd."""
    assert partitions > 0
    depth = (partitions & -partitions).bit_length() - 1
    return partitions >> depth, depth


def slice_of(partition: int, partitions: int) -> Slice:
    """The slice that Kafka's partitioner gives to this partition."""
    assert 0 <= partition < partitions
    roots, depth = odd_part(partitions)
    return Slice(roots, partition % roots, depth, partition // roots)


def is_doubling(old: int, new: int) -> bool:
    """Whether going from `old` to `new` partitions keeps the slices aligned."""
    return new > old and new % old == 0 and (new // old).bit_count() == 1
