"""Following the store's word on who leads what: each new term begins with taking the vnode over.

Taking over is what must be done before a vnode's coordinators are complete: publish the topics, go on with
the operations found in the store. Clients may be served by the vnode meanwhile.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from floe.metadata.store.port import Leadership, Store
from floe.metadata.vnode import Vnode
from floe.model.errors import Fenced, Unavailable
from floe.model.ids import Term, VnodeId
from floe.observability.logs import get_log

_log = get_log("metadata")
RETRY_SECONDS = 0.5


class Led(Protocol):
    """What is led: a vnode with its coordinators."""

    @property
    def vnode(self) -> Vnode: ...

    def stop(self) -> None:
        """Stop acting: leadership is lost, or begins anew."""
        ...

    async def take_over(self) -> None:
        """Begin to act as leader; may be repeated."""
        ...


class LeadershipFollower:
    """One task follows the store; one short task per vnode and term takes over."""

    def __init__(self, store: Store, parts: Sequence[Led]) -> None:
        self._store = store
        self._parts = parts
        self._follower: asyncio.Task[None] | None = None
        self._takers: dict[VnodeId, asyncio.Task[None]] = {}
        self._missing = {part.vnode.id for part in parts}
        self._all_taken: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Return when every vnode has been taken over."""
        loop = asyncio.get_running_loop()
        self._all_taken = loop.create_future()
        self._follower = loop.create_task(self._follow())
        await self._all_taken

    async def close(self) -> None:
        tasks = [task for task in (self._follower, *self._takers.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self) -> None:
        async for told in self._store.lead():
            self._led(told)
        _log.info("the metadata store leads nothing any more")
        self._fail_start(Unavailable("the metadata store was closed before it led"))

    def _led(self, told: Leadership) -> None:
        part = self._parts[told.vnode]
        taker = self._takers.pop(told.vnode, None)
        if taker is not None:
            taker.cancel()
        part.stop()
        part.vnode.led(told.term)
        if told.term is None:
            _log.warning("lost a vnode", vnode=told.vnode)
            return
        task = asyncio.get_running_loop().create_task(self._take_over(part, told.term))
        self._takers[told.vnode] = task

    async def _take_over(self, part: Led, term: Term) -> None:
        """Take over, again and again while the term lasts; a task boundary."""
        while part.vnode.term == term:
            try:
                await part.take_over()
            except (Unavailable, Fenced) as error:
                _log.warning("could not take over a vnode", vnode=part.vnode.id, reason=str(error))
            except Exception as error:  # noqa: BLE001 - the start fails, or the vnode is tried again
                _log.exception("failed to take over a vnode", vnode=part.vnode.id)
                self._fail_start(error)
            else:
                self._taken(part.vnode.id)
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _fail_start(self, error: Exception) -> None:
        if self._all_taken is not None and not self._all_taken.done():
            self._all_taken.set_exception(error)

    def _taken(self, vnode: VnodeId) -> None:
        self._missing.discard(vnode)
        if not self._missing and self._all_taken is not None and not self._all_taken.done():
            self._all_taken.set_result(None)
