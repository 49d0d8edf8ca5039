"""The home of objects: leases of ids by bucket, the close of a bucket, holders, and delete work.

Life of a bucket at its home: ids are leased while it is open. When it is older than `close_after_ms` beyond
its end it is due: `begin_close` stops the leases; then every vnode raises its mark and says what it holds
(`RangeCoordinator. close_bucket`); then `finish_close` judges every issued id: held by some vnode, it gets
a holder row; held by nobody, it is delete work, whether it was ever uploaded or not. A closed bucket has no
record, and the vnode's own mark keeps its ids from being leased again.

A release takes a holder away. One that arrives before the bucket is closed is not acknowledged, since the
close might be about to write the holder it takes away; it is sent again. All steps may be repeated, in
whole or in part.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from floe.metadata.codecs.object_homes import (
    BucketRecord,
    bucket_key,
    decode_bucket,
    decode_holders,
    encode_bucket,
    encode_holders,
    holder_key,
    read_bucket_key,
)
from floe.metadata.coordinators.closed_buckets import read_mark
from floe.metadata.coordinators.delete_work import LEASE_MS, RETRY_MS, DeleteWork
from floe.metadata.keys import BUCKET, after
from floe.metadata.vnode import Transaction, Vnode
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import BUCKET_MS, Bucket, ObjectId, VnodeId, bucket_of, object_id
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.observability.clock import Clock

LEASE_IDS_MAX = 4096
CLOSE_PAGE = 512
DUE_BUCKETS_MAX = 64

# An object is uploaded and committed, or given up, well within this time after its bucket's end: brokers
# stop using a bucket's ids when the next one begins, and an upload with its commit is bounded by a minute.
# A commit that is later all the same is refused.
CLOSE_AFTER_MS = 120_000
GRACE_MS = 60_000
# An orphan may be an upload that the store is still working on when its broker has given up.
ORPHAN_GRACE_MS = BUCKET_MS


class ObjectHome:
    """The objects of the buckets whose home one vnode is."""

    def __init__(
        self,
        vnode: Vnode,
        *,
        clock: Clock,
        close_after_ms: int = CLOSE_AFTER_MS,
        grace_ms: int = GRACE_MS,
        orphan_grace_ms: int = ORPHAN_GRACE_MS,
        lease_ms: int = LEASE_MS,
        retry_ms: int = RETRY_MS,
    ) -> None:
        self._vnode = vnode
        self._clock = clock
        self._close_after_ms = close_after_ms
        self._grace_ms = grace_ms
        self._orphan_grace_ms = orphan_grace_ms
        self._work = DeleteWork(vnode, clock, lease_ms=lease_ms, retry_ms=retry_ms)

    @property
    def pending_deletes(self) -> int:
        """Objects that wait for deletion, as far as known in memory: for the metric."""
        return self._work.pending

    async def lease_object_ids(self, bucket: Bucket, count: int) -> list[ObjectId]:
        """Ids never leased before. Raises `Unavailable` when the bucket is closed: ask for a later one."""
        if not 0 < count <= LEASE_IDS_MAX:
            raise Rejected(ErrorCode.INVALID_REQUEST, f"bad number of object ids. count={count}")
        return await self._vnode.run(partial(self._lease, bucket, count))

    async def due_buckets(self) -> list[Bucket]:
        """Buckets to be closed now, oldest first, those whose close was begun included."""
        pairs = await self._vnode.scan_durable(BUCKET, after(BUCKET), DUE_BUCKETS_MAX)
        buckets = [read_bucket_key(key) for key, _ in pairs]
        latest_end = self._clock.now_ms() - self._close_after_ms
        return [bucket for bucket in buckets if (bucket + 1) * BUCKET_MS <= latest_end]

    async def begin_close(self, bucket: Bucket) -> bool:
        """Stop leasing ids of a bucket; False when it is closed already, or never had any."""
        return await self._vnode.run(partial(self._begin_close, bucket))

    async def finish_close(self, bucket: Bucket, held: Mapping[VnodeId, Sequence[ObjectId]]) -> None:
        """Judge every id of a closing bucket by what every vnode, asked since `begin_close`, holds.

        A vnode that is missing here is taken to hold nothing, so all must have answered.
        """
        holders: dict[ObjectId, list[VnodeId]] = {}
        for vnode, objects in held.items():
            for held_id in objects:
                holders.setdefault(held_id, []).append(vnode)
        while await self._vnode.run(partial(self._close_page, bucket, holders)):
            pass

    async def release(self, objects: Sequence[ObjectId], from_vnode: VnodeId) -> list[ObjectId]:
        """Take a vnode away as holder of objects; returns those that need not be sent again."""
        return await self._vnode.run(partial(self._release, objects, from_vnode))

    async def claim_work(self, worker: str, kinds: Sequence[WorkKind], limit: int) -> list[WorkItem]:
        """Lease items to a worker; the token, not the worker's name, is what a finish is checked by."""
        return await self._work.claim(limit) if WorkKind.DELETE in kinds and limit > 0 else []

    async def finish_work(self, item: WorkItem, result: WorkResult) -> bool:
        """Take a result; False, with no effect, when the item has been leased to somebody else since."""
        return await self._work.finish(item, result)

    async def _lease(self, bucket: Bucket, count: int, tx: Transaction) -> list[ObjectId]:
        record = await self._bucket(tx, bucket) or BucketRecord()
        if record.is_closing or bucket <= await read_mark(tx):
            raise Unavailable(f"the bucket is closed. bucket={bucket}")
        first = record.issued
        tx.put(bucket_key(bucket), encode_bucket(record._replace(issued=first + count)))
        return [object_id(bucket, first + i) for i in range(count)]

    async def _begin_close(self, bucket: Bucket, tx: Transaction) -> bool:
        record = await self._bucket(tx, bucket)
        if record is None:
            return False
        if not record.is_closing:
            tx.put(bucket_key(bucket), encode_bucket(record._replace(is_closing=True)))
        return True

    async def _close_page(
        self, bucket: Bucket, holders: Mapping[ObjectId, Sequence[VnodeId]], tx: Transaction
    ) -> bool:
        """Judge the next ids; whether there are more."""
        record = await self._bucket(tx, bucket)
        if record is None:
            return False
        assert record.is_closing
        end = min(record.settled + CLOSE_PAGE, record.issued)
        orphans = []
        for sequence in range(record.settled, end):
            held_id = object_id(bucket, sequence)
            if held_id in holders:
                tx.put(holder_key(held_id), encode_holders(holders[held_id]))
            else:
                orphans.append(held_id)
        await self._work.add(tx, orphans, self._clock.now_ms() + self._orphan_grace_ms)
        if end == record.issued:
            tx.delete(bucket_key(bucket))
            return False
        tx.put(bucket_key(bucket), encode_bucket(record._replace(settled=end)))
        return True

    async def _release(
        self, objects: Sequence[ObjectId], from_vnode: VnodeId, tx: Transaction
    ) -> list[ObjectId]:
        acknowledged, unheld = [], []
        is_closed: dict[Bucket, bool] = {}
        for released in objects:
            bucket = bucket_of(released)
            if bucket not in is_closed:
                is_closed[bucket] = await self._bucket(tx, bucket) is None
            if not is_closed[bucket]:
                continue
            acknowledged.append(released)
            value = await tx.get(holder_key(released))
            if value is None:
                continue
            holders = decode_holders(value) - {from_vnode}
            if holders:
                tx.put(holder_key(released), encode_holders(sorted(holders)))
            else:
                tx.delete(holder_key(released))
                unheld.append(released)
        await self._work.add(tx, unheld, self._clock.now_ms() + self._grace_ms)
        return acknowledged

    async def _bucket(self, tx: Transaction, bucket: Bucket) -> BucketRecord | None:
        value = await tx.get(bucket_key(bucket))
        return None if value is None else decode_bucket(value)
