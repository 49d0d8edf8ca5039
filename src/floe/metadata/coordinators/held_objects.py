"""The objects a vnode has rows of: live rows, release, and the close of a bucket.

An object's row counts the coordinates rows that lie in it. When the last one goes, the same transaction
queues `released(object)` for the object's home, but only in a closed bucket: in an open one the row stays,
since a repeat of the commit must still find its results, and the close will report the object as not held.

Invariants:
- live rows of an object = coordinates rows of this vnode that name it.
- Once the mark is raised, no object of the bucket comes to be held here.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from floe.metadata.codecs.object_rows import (
    bucket_keys,
    live_rows_of,
    object_key,
    read_object_key,
    released_key,
    with_live_rows,
    without_results,
)
from floe.metadata.coordinators.closed_buckets import ClosedBuckets
from floe.metadata.keys import RELEASED, after
from floe.metadata.vnode import Transaction, Vnode
from floe.model.errors import Internal
from floe.model.ids import Bucket, ObjectId, bucket_of

CLOSE_PAGE = 512


class HeldObjects:
    """The objects of one vnode."""

    def __init__(self, vnode: Vnode, closed: ClosedBuckets) -> None:
        self._vnode = vnode
        self._closed = closed

    async def let_go(self, tx: Transaction, dropped_rows: Mapping[ObjectId, int]) -> None:
        """Take note that rows of these objects are being deleted."""
        mark = await self._closed.load(tx)
        for object_id, count in dropped_rows.items():
            key = object_key(object_id)
            value = await tx.get(key)
            live_rows = -1 if value is None else live_rows_of(value) - count
            if value is None or live_rows < 0:
                raise Internal(f"an object has more rows than it counts. object={object_id}")
            if live_rows or bucket_of(object_id) > mark:
                tx.put(key, with_live_rows(value, live_rows))
            else:
                tx.delete(key)
                tx.put(released_key(object_id), b"")

    async def close(self, bucket: Bucket) -> list[ObjectId]:
        """Refuse commits of this bucket's objects from now on, and say which of them are held; idempotent."""
        await self._vnode.run(partial(self._raise_mark, bucket))
        held: list[ObjectId] = []
        last: ObjectId | None = None
        while True:
            page, last = await self._vnode.run(partial(self._close_page, bucket, last))
            held += page
            if last is None:
                return held

    async def released(self, after_object: ObjectId | None, limit: int) -> list[ObjectId]:
        """Releases not yet acknowledged by their homes, in order, beyond a cursor."""
        start = RELEASED if after_object is None else released_key(ObjectId(after_object + 1))
        pairs = await self._vnode.scan_durable(start, after(RELEASED), limit)
        return [read_object_key(key) for key, _ in pairs]

    async def acknowledge_released(self, objects: Sequence[ObjectId]) -> None:
        """Forget releases that their homes know of."""
        await self._vnode.run(partial(self._acknowledge, objects))

    async def _raise_mark(self, bucket: Bucket, tx: Transaction) -> None:
        await self._closed.raise_to(tx, bucket)

    async def _close_page(
        self, bucket: Bucket, last: ObjectId | None, tx: Transaction
    ) -> tuple[list[ObjectId], ObjectId | None]:
        """Prune a page of object rows; the held ones, and where to go on or None at the end."""
        held = []
        pairs = await tx.scan(*bucket_keys(bucket, last), CLOSE_PAGE)
        for key, value in pairs:
            if not live_rows_of(value):
                tx.delete(key)
                continue
            held.append(read_object_key(key))
            pruned = without_results(value)
            if pruned != value:
                tx.put(key, pruned)
        return held, read_object_key(pairs[-1][0]) if len(pairs) == CLOSE_PAGE else None

    async def _acknowledge(self, objects: Sequence[ObjectId], tx: Transaction) -> None:
        for object_id in objects:
            tx.delete(released_key(object_id))
