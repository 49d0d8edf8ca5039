"""Where ranges live: a list of ranges split by the vnodes that own them, and the coordinators there."""

from collections.abc import Iterable, Sequence

from floe.metadata.coordinators.ranges import RangeCoordinator
from floe.metadata.ring import RANGES_TOGETHER_BITS, Ring
from floe.model.ids import RangeId, VnodeId


class RangePlaces:
    """The ring and the range coordinator of each vnode."""

    def __init__(self, ring: Ring, coordinators: Sequence[RangeCoordinator]) -> None:
        assert len(coordinators) == ring.vnode_count
        self._ring = ring
        self._coordinators = coordinators

    def at(self, vnode: VnodeId) -> RangeCoordinator:
        return self._coordinators[vnode]

    def all_vnodes(self) -> Sequence[VnodeId]:
        return [VnodeId(i) for i in range(self._ring.vnode_count)]

    def split(self, ranges: Iterable[RangeId]) -> dict[VnodeId, list[RangeId]]:
        """The ranges by owner, each owner's in the order given."""
        split: dict[VnodeId, list[RangeId]] = {}
        neighbours, part = -1, []
        for range_id in ranges:
            if range_id >> RANGES_TOGETHER_BITS != neighbours:
                neighbours = range_id >> RANGES_TOGETHER_BITS
                part = split.setdefault(self._ring.of_range(range_id), [])
            part.append(range_id)
        return split
