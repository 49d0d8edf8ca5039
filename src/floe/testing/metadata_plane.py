"""A metadata plane without a router: vnodes with their coordinators, which can fail and crash at any commit.

Ranges and buckets go round the vnodes by number. Everything runs on the simulator's loop, in virtual time.
A call can be made to meet a failing store commit, or a crash after some time; then its outcome is unknown
to the caller, who learns it by asking again, as an engine would.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Protocol, TypeVar

from floe.metadata.coordinators.objects import ObjectHome
from floe.metadata.coordinators.ranges import RangeCoordinator
from floe.metadata.store.local import LocalStore
from floe.metadata.store.memory import CommitFault, MemoryDisk, MemoryStore
from floe.metadata.store.port import Store
from floe.metadata.vnode import Vnode
from floe.model.errors import FloeError
from floe.model.ids import VnodeId
from floe.observability.metrics import Metrics
from floe.storage.kv.rocks import RocksKeyValue
from floe.testing.shard import ManualClock
from floe.testing.sim_loop import SimLoop

T = TypeVar("T")
VNODE_COUNT = 3
ATTEMPTS_MAX = 20
WATCH_SECONDS = 0.0004
Trouble = CommitFault | float | None  # a failing store commit, or a crash after so many seconds


class Medium(Protocol):
    """Where the vnodes' state survives a crash."""

    def open(self) -> Store: ...

    async def crash(self) -> None:
        """Lose what is not durable."""
        ...

    def fail_next(self, fault: CommitFault) -> None:
        """Let the next commit fail, where the medium can."""
        ...

    def all_keys(self) -> list[tuple[int, bytes]]:
        """Every durable key with its vnode."""
        ...


class MemoryMedium:
    """Vnodes become durable in random order."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._disk = MemoryDisk(VNODE_COUNT)
        self._store: MemoryStore | None = None

    def open(self) -> Store:
        self._store = MemoryStore(disk=self._disk, random=self._random)
        return self._store

    async def crash(self) -> None:
        assert self._store is not None
        self._disk = self._store.crash()

    def fail_next(self, fault: CommitFault) -> None:
        store = self._store
        assert store is not None

        def once(vnode: VnodeId, writes: object) -> CommitFault:
            store.faults = None
            return fault

        store.faults = once

    def all_keys(self) -> list[tuple[int, bytes]]:
        return [
            (i, key) for i, kv in enumerate(self._disk.vnodes) for key, _ in kv.scan(b"", b"\xff", 1 << 20)
        ]


class RocksMedium:
    """RocksDB in a folder. What was written survives here, so a crash loses memory alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kv: RocksKeyValue | None = None
        self._store: LocalStore | None = None

    def open(self) -> Store:
        self._kv = RocksKeyValue(self._folder, cache_bytes=1 << 20)
        self._store = LocalStore(self._kv, VNODE_COUNT)
        return self._store

    async def crash(self) -> None:
        assert self._store is not None
        await self._store.close()

    def fail_next(self, fault: CommitFault) -> None:
        """RocksDB does not fail on demand."""

    def all_keys(self) -> list[tuple[int, bytes]]:
        assert self._kv is not None
        pairs = self._kv.scan(b"", b"\xff\xff", 1 << 20)
        return [(int.from_bytes(key[:2], "big"), key[2:]) for key, _ in pairs]


class Place:
    """One vnode with its coordinators."""

    def __init__(self, store: Store, vnode_id: VnodeId, clock: ManualClock) -> None:
        self.vnode = Vnode(store, vnode_id)
        self.ranges = RangeCoordinator(self.vnode, clock=clock, metrics=Metrics())
        self.home = ObjectHome(self.vnode, clock=clock)


class MetadataPlane:
    """All vnodes of one broker, over its crashes."""

    def __init__(self, medium: Medium, random: Random) -> None:
        self.clock = ManualClock()
        self.medium = medium
        self.loop = SimLoop(random)
        self.crashes = 0
        self._followers: list[asyncio.Task[None]] = []
        self.loop.run(self._open())

    async def _open(self) -> None:
        store = self.medium.open()
        self.places = [Place(store, VnodeId(i), self.clock) for i in range(VNODE_COUNT)]
        self._followers.append(asyncio.get_running_loop().create_task(self._follow(store, self.places)))
        await self._led()

    async def _follow(self, store: Store, places: list[Place]) -> None:
        async for change in store.lead():
            places[change.vnode].vnode.led(change.term)

    async def _led(self) -> None:
        for _ in range(1000):
            if all(place.vnode.term is not None for place in self.places):
                return
            await asyncio.sleep(0.001)
        raise AssertionError("a vnode is not led again")

    def of_range(self, range_id: int) -> Place:
        return self.places[range_id % VNODE_COUNT]

    def home_of(self, bucket: int) -> ObjectHome:
        return self.places[bucket % VNODE_COUNT].home

    def attempt(
        self, call: Callable[[], Awaitable[T]], trouble: Trouble, *, watch: Callable[[], None] | None = None
    ) -> list[T]:
        """Make a call in trouble; its answer, or nothing when the outcome is unknown. `watch` looks on."""
        if isinstance(trouble, CommitFault):
            self.medium.fail_next(trouble)
        crash_after = trouble if isinstance(trouble, float) else math.inf
        return self.loop.run(self._attempt(call, crash_after, watch or _ignore))

    def settle(self, call: Callable[[], Awaitable[T]], trouble: Trouble = None) -> T:
        """Make an idempotent call until it is answered; only the first attempt is in trouble."""
        for _ in range(ATTEMPTS_MAX):
            for answer in self.attempt(call, trouble):
                return answer
            trouble = None
        raise AssertionError("a call is never answered")

    def crash(self) -> None:
        self.loop.run(self._crash())

    def close(self) -> None:
        self.loop.run(self.medium.crash())
        self.loop.run(self._stop_following())
        self.loop.close()

    async def _attempt(
        self, call: Callable[[], Awaitable[T]], crash_after: float, watch: Callable[[], None]
    ) -> list[T]:
        task = asyncio.ensure_future(call())
        crash_at = self.loop.time() + crash_after
        while not task.done() and self.loop.time() < crash_at:
            await asyncio.wait([task], timeout=min(WATCH_SECONDS, crash_at - self.loop.time()))
            watch()
        if not task.done():
            await self._crash()
            task.cancel()
            await asyncio.wait([task])
        await self._led()
        if task.cancelled() or isinstance(task.exception(), FloeError):
            return []
        return [task.result()]

    async def _crash(self) -> None:
        self.crashes += 1
        await self.medium.crash()
        await self._stop_following()
        for place in self.places:
            place.vnode.led(None)
        await self._open()

    async def _stop_following(self) -> None:
        for follower in self._followers:
            follower.cancel()
        await asyncio.wait(self._followers)
        self._followers.clear()


def _ignore() -> None:
    """Nobody looks on."""
