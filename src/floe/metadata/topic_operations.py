"""What operations on topics do at the vnodes that own the topic's ranges, and at their end."""

from collections.abc import Sequence
from typing import TypeVar

from typing_extensions import override

from floe.machines.retention import RangeLimits
from floe.metadata.codecs.operations import AddPartitions, AlterConfig, CreateTopic, DeleteTopic, ranges_of
from floe.metadata.codecs.topics import TopicRow
from floe.metadata.coordinators.ranges import RangeSpec
from floe.metadata.coordinators.topics import TopicRecords, grown, settled, shown
from floe.metadata.operations import DONE, MORE, OperationKind, Outcome
from floe.metadata.range_places import RangePlaces
from floe.metadata.vnode import Transaction
from floe.model.errors import Internal
from floe.model.ids import RangeId, TopicId, VnodeId

DROPPED_PER_CALL = 2_000  # rows
TopicArguments = CreateTopic | AddPartitions | AlterConfig | DeleteTopic
A = TypeVar("A", bound=TopicArguments)


class _TopicKind(OperationKind[A]):
    """Steps go to the vnodes that own ranges of the topic."""

    def __init__(self, records: TopicRecords, places: RangePlaces) -> None:
        self._records = records
        self._places = places
        self._last_split: tuple[A, dict[VnodeId, list[RangeId]]] | None = None

    @override
    def targets(self, arguments: A, step: int) -> Sequence[VnodeId]:
        return sorted(self._split(arguments))

    def _ranges(self, arguments: A, vnode: VnodeId) -> list[RangeId]:
        return self._split(arguments)[vnode]

    def _split(self, arguments: A) -> dict[VnodeId, list[RangeId]]:
        """The topic's ranges by owner, kept for the vnodes of one step, since topics can be large."""
        if self._last_split is None or self._last_split[0] is not arguments:
            self._last_split = arguments, self._places.split(ranges_of(arguments.runs))
        return self._last_split[1]

    async def _row(self, arguments: A, tx: Transaction) -> TopicRow:
        row = await self._records.get(tx, arguments.name)
        if row is None or row.topic_id != arguments.topic_id:
            raise Internal(f"the topic went while its operation was under way. topic={arguments.name}")
        return row


class CreateTopicKind(_TopicKind[CreateTopic]):
    """Make the ranges; then show the topic."""

    @override
    async def apply(self, arguments: CreateTopic, step: int, vnode: VnodeId) -> Outcome:
        await self._places.at(vnode).create_ranges(_specs(arguments, self._ranges(arguments, vnode)))
        return DONE

    @override
    async def conclude(self, arguments: CreateTopic, tx: Transaction) -> None:
        self._records.put(tx, shown(await self._row(arguments, tx)))


class AddPartitionsKind(_TopicKind[AddPartitions]):
    """Make the new ranges; then show them."""

    @override
    async def apply(self, arguments: AddPartitions, step: int, vnode: VnodeId) -> Outcome:
        await self._places.at(vnode).create_ranges(_specs(arguments, self._ranges(arguments, vnode)))
        return DONE

    @override
    async def conclude(self, arguments: AddPartitions, tx: Transaction) -> None:
        self._records.put(tx, grown(await self._row(arguments, tx), ranges_of(arguments.runs)))


class AlterConfigKind(_TopicKind[AlterConfig]):
    """Tell the ranges their limits; the topic shows its new config already."""

    @override
    async def apply(self, arguments: AlterConfig, step: int, vnode: VnodeId) -> Outcome:
        limits = RangeLimits(arguments.retention_ms, arguments.retention_bytes)
        await self._places.at(vnode).configure_ranges(self._ranges(arguments, vnode), limits)
        return DONE

    @override
    async def conclude(self, arguments: AlterConfig, tx: Transaction) -> None:
        self._records.put(tx, settled(await self._row(arguments, tx)))


class DeleteTopicKind(_TopicKind[DeleteTopic]):
    """Take all ranges out of service; then drop their rows, so much at a time."""

    step_count = 2
    _MARK, _DROP = 0, 1

    @override
    async def apply(self, arguments: DeleteTopic, step: int, vnode: VnodeId) -> Outcome:
        ranges, coordinator = self._ranges(arguments, vnode), self._places.at(vnode)
        if step == self._MARK:
            await coordinator.mark_deleting(ranges)
            return DONE
        return DONE if await coordinator.drop_rows(ranges, DROPPED_PER_CALL) else MORE


def _specs(arguments: CreateTopic | AddPartitions, ranges: Sequence[RangeId]) -> list[RangeSpec]:
    topic_id = TopicId(arguments.topic_id)
    limits = RangeLimits(arguments.retention_ms, arguments.retention_bytes)
    return [RangeSpec(range_id, topic_id, limits) for range_id in ranges]
