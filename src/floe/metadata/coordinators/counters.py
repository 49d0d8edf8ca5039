"""Cluster-wide counters: values never given twice, in blocks from vnode 0.

A block is durable before any of its values is used, and belongs to the process that leased it whatever
happens to the vnode's leadership, so values are given from memory without asking. What is left of a block at
a restart, or after an unknown outcome, is never used.
"""

import asyncio
from functools import partial

from floe.metadata import keys
from floe.metadata.vnode import Transaction, Vnode
from floe.model.ids import ProducerId

FIRST_RANGE_ID = 8  # 0 is nobody's, and blocks begin at a border of neighbours that share a vnode
FIRST_PRODUCER_ID = 1 << 40
RANGE_BLOCK = 1024
PRODUCER_BLOCK = 1000


class Counter:
    """One counter."""

    def __init__(self, vnode: Vnode, name: str, *, first: int, block: int) -> None:
        self._vnode = vnode
        self._key = keys.COUNTER + name.encode()
        self._first = first
        self._block = block
        self._next = self._end = first
        self._lease = asyncio.Lock()

    async def take(self, count: int = 1) -> int:
        """The first of `count` consecutive values that nobody else gets."""
        assert count > 0
        async with self._lease:
            if self._end - self._next < count:
                size = -(-count // self._block) * self._block
                self._next = await self._vnode.run(partial(self._take_block, size))
                self._end = self._next + size
            value = self._next
            self._next += count
            return value

    async def _take_block(self, size: int, tx: Transaction) -> int:
        stored = await tx.get(self._key)
        start = keys.read_u64(stored, 0) if stored else self._first
        tx.put(self._key, keys.u64(start + size))
        return start


class Counters:
    """The counters of the cluster; `vnode` is vnode 0."""

    def __init__(self, vnode: Vnode) -> None:
        self._ranges = Counter(vnode, "range", first=FIRST_RANGE_ID, block=RANGE_BLOCK)
        self._producers = Counter(vnode, "producer", first=FIRST_PRODUCER_ID, block=PRODUCER_BLOCK)

    async def take_range_ids(self, count: int) -> range:
        first = await self._ranges.take(count)
        return range(first, first + count)

    async def take_producer_id(self) -> ProducerId:
        return ProducerId(await self._producers.take())
