"""Leadership changes on their way from a store to its one follower."""

import asyncio
from collections.abc import AsyncIterator

from floe.metadata.store.port import Leadership
from floe.model.ids import Term, VnodeId


class LeadershipFeed:
    """Keeps the newest change of each vnode until the follower takes it, so it is bounded by their number."""

    def __init__(self) -> None:
        self._changes: dict[VnodeId, Leadership] = {}
        self._wake = asyncio.Event()
        self._is_closed = False

    def tell(self, vnode: VnodeId, term: Term | None) -> None:
        self._changes.pop(vnode, None)
        self._changes[vnode] = Leadership(vnode, term)
        self._wake.set()

    def close(self) -> None:
        """End the feed once everything told has been taken."""
        self._is_closed = True
        self._wake.set()

    async def follow(self) -> AsyncIterator[Leadership]:
        while True:
            while self._changes:
                yield self._changes.pop(next(iter(self._changes)))
            if self._is_closed:
                return
            self._wake.clear()
            await self._wake.wait()
