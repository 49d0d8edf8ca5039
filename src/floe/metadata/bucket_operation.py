"""The close of a bucket: every vnode raises its mark and says what it holds; then the home judges."""

from collections.abc import Mapping, Sequence
from functools import partial

from typing_extensions import override

from floe.metadata.codecs.operations import CloseBucket
from floe.metadata.coordinators.objects import ObjectHome
from floe.metadata.operations import OperationDriver, OperationKind, Outcome
from floe.metadata.range_places import RangePlaces
from floe.metadata.vnode import Transaction, Vnode
from floe.model.ids import Bucket, ObjectId, VnodeId

_OPERATION_IDS = 1 << 63  # ids of closes: this bit and the bucket; no other operation has it


class CloseBucketKind(OperationKind[CloseBucket]):
    """Begun when the home has stopped leasing ids of the bucket."""

    def __init__(self, home: ObjectHome, places: RangePlaces) -> None:
        self._home = home
        self._places = places

    @override
    def targets(self, arguments: CloseBucket, step: int) -> Sequence[VnodeId]:
        return self._places.all_vnodes()

    @override
    async def apply(self, arguments: CloseBucket, step: int, vnode: VnodeId) -> Outcome:
        return Outcome(found=await self._places.at(vnode).close_bucket(Bucket(arguments.bucket)))

    @override
    async def settle(self, arguments: CloseBucket, found: Mapping[VnodeId, Sequence[ObjectId]]) -> None:
        await self._home.finish_close(Bucket(arguments.bucket), found)


class BucketCloser:
    """Begins the close of the buckets of one home that are due."""

    def __init__(self, vnode: Vnode, home: ObjectHome, operations: OperationDriver) -> None:
        self._vnode = vnode
        self._home = home
        self._operations = operations

    async def close_due(self) -> bool:
        """Begin to close what is due; a bucket whose close is under way already is left alone."""
        for bucket in await self._home.due_buckets():
            operation_id = _OPERATION_IDS | bucket
            if not self._operations.is_running(operation_id) and await self._home.begin_close(bucket):
                await self._vnode.run(partial(self._begin, bucket, operation_id))
        return False

    async def _begin(self, bucket: Bucket, operation_id: int, tx: Transaction) -> None:
        await self._operations.begin(tx, CloseBucket(bucket), operation_id)
