"""The vnode's closed-bucket mark: commits that bring in objects of these buckets are refused.

Invariant: the mark never goes back, and once raised the set of a closed bucket's objects held here only
shrinks.
"""

from functools import partial

from floe.metadata.keys import MARK, read_u64, u64
from floe.metadata.vnode import Transaction, Vnode
from floe.model.ids import Bucket

NONE_CLOSED = Bucket(-1)


async def read_mark(tx: Transaction) -> Bucket:
    """The greatest closed bucket, from the store."""
    value = await tx.get(MARK)
    return NONE_CLOSED if value is None else Bucket(read_u64(value, 0))


class ClosedBuckets:
    """The mark of one vnode."""

    def __init__(self, vnode: Vnode) -> None:
        self._decided: Bucket | None = None
        vnode.on_reset(self._forget)

    @property
    def decided(self) -> Bucket | None:
        """The mark if it is known without reading."""
        return self._decided

    async def load(self, tx: Transaction) -> Bucket:
        """The greatest closed bucket, as decided before this transaction."""
        if self._decided is not None:
            return self._decided
        mark = await read_mark(tx)
        tx.when_decided(partial(self._set, mark))
        return mark

    async def raise_to(self, tx: Transaction, bucket: Bucket) -> None:
        if await self.load(tx) < bucket:
            tx.put(MARK, u64(bucket))
            tx.when_decided(partial(self._set, bucket))

    def _set(self, mark: Bucket) -> None:
        self._decided = mark

    def _forget(self) -> None:
        self._decided = None
