"""Tries an operation with a failure at each of its store commits in turn, and lets it come to its end.

A trial runs the action on a router over a memory store. At one commit, counted from the start of the action,
the process dies before or after the commit took effect, or the commit fails with any of the store's faults
while the process lives on. A process that died is followed by a new one on the durable state. Then the trial
waits until no operation is left and hands the outcome to the test's check, together with what the action's
caller was told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from random import Random
from typing import Any, NamedTuple

from floe.metadata import keys
from floe.metadata.router import Router
from floe.metadata.store.memory import CommitFault, MemoryDisk, MemoryStore
from floe.metadata.store.port import Write
from floe.metadata.vnode_host import Timing
from floe.model.errors import FloeError, Unavailable
from floe.model.ids import VnodeId
from floe.observability.metrics import Metrics
from floe.testing.sim_loop import SimLoop

VNODES = 4
START_MS = 1_700_000_000_000


class Crash(Enum):
    """The process dies."""

    BEFORE = "crash before"
    AFTER = "crash after"


Failure = Crash | CommitFault
FAILURES: tuple[Failure, ...] = (*Crash, *CommitFault)
Act = Callable[[Router], Awaitable[Any]]


class LoopClock:
    """Time as the running loop sees it; `advance_ms` is added to the wall clock."""

    def __init__(self) -> None:
        self.advance_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.advance_ms + int(asyncio.get_running_loop().time() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Ended(NamedTuple):
    """How a trial ended: the router that lives, the durable state, and what the caller was told."""

    router: Router
    disk: MemoryDisk
    result: Any
    error: FloeError | None
    was_hit: bool  # whether the action had as many commits


class Trial:
    """One action, failing at its commit number `at`."""

    def __init__(self, at: int, failure: Failure, timing: Timing | None = None) -> None:
        self._at = at
        self._failure = failure
        self._timing = timing
        self._count = -1  # not counting yet
        self.clock = LoopClock()

    def run(self, prepare: Act, act: Act, check: Callable[[Ended], Awaitable[None]]) -> bool:
        """Run on virtual time; whether the action had as many commits."""
        seed = Random(self._at)  # noqa: S311 - not for secrets
        loop = SimLoop(seed)
        try:
            return loop.run(self._run(prepare, act, check), seconds=1000)
        finally:
            loop.close()

    async def _run(self, prepare: Act, act: Act, check: Callable[[Ended], Awaitable[None]]) -> bool:
        store = MemoryStore(VNODES)
        router = await self._opened(store)
        await prepare(router)
        self._count = 0
        store.faults = lambda vnode, writes: self._fault(store, vnode, writes)
        result, error = None, None
        try:
            async with asyncio.timeout(20):
                result = await act(router)
        except FloeError as raised:
            error = raised
        except TimeoutError:
            error = Unavailable("the caller has given up")
        was_hit = self._count > self._at
        store.faults = None
        if was_hit and isinstance(self._failure, Crash):
            await router.close()
            store = MemoryStore(disk=store.crash())
            router = await self._opened(store)
        await _no_operations(store.disk)
        await check(Ended(router, store.disk, result, error, was_hit))
        await router.close()
        await store.close()
        return was_hit

    async def _opened(self, store: MemoryStore) -> Router:
        random = Random(7)  # noqa: S311 - not for secrets
        router = Router(
            store, clock=self.clock, random=random, metrics=Metrics(), timing=self._timing or Timing()
        )
        await router.start()
        return router

    def _fault(self, store: MemoryStore, _vnode: VnodeId, _writes: Sequence[Write]) -> CommitFault | None:
        index, self._count = self._count, self._count + 1
        if index != self._at:
            return None
        match self._failure:
            case Crash.BEFORE:
                store.crash()
                return CommitFault.LOST
            case Crash.AFTER:
                asyncio.get_running_loop().call_soon(store.crash)
                return CommitFault.APPLIED
            case CommitFault() as fault:
                return fault


def rows_of(disk: MemoryDisk, prefix: bytes) -> dict[bytes, bytes]:
    """All pairs of one kind, of every vnode."""
    return {
        key: value
        for vnode in disk.vnodes
        for key, value in vnode.scan(prefix, keys.after(prefix), 1_000_000)
    }


async def _no_operations(disk: MemoryDisk) -> None:
    """Wait until no operation is stored; the loop's deadline bounds the wait."""
    while rows_of(disk, keys.OPERATION):  # noqa: ASYNC110 - it polls a disk
        await asyncio.sleep(0.05)


def try_everywhere(
    failure: Failure,
    *,
    prepare: Act,
    act: Act,
    check: Callable[[Ended], Awaitable[None]],
    timing: Timing | None = None,
    commits_max: int = 200,
) -> int:
    """Fail at each commit of the action; returns how many it has."""
    for at in range(commits_max):
        if not Trial(at, failure, timing).run(prepare, act, check):
            return at
    raise AssertionError("the action does not end")
