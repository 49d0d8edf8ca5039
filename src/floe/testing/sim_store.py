"""The metadata store of one incarnation in the simulator, and what of it survives a kill.

Two kinds: the memory store, whose vnodes become durable one by one in random order; and the local store over
a key-value map that forgets unsynced writes. Both are reached through a gate that counts the calls of the
process and goes dead with it.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

from floe.metadata.store.port import Leadership, Store, Write
from floe.model.errors import Unavailable
from floe.model.ids import Term, VnodeId
from floe.storage.kv.memory import MemoryKeyValue
from floe.storage.kv.port import KeyValue, Pair
from floe.testing.sim_process import SimProcess
from floe.testing.sim_trace import Trace


class GatedStore:
    """Any store, as one process reaches it."""

    def __init__(self, inner: Store, process: SimProcess, trace: Trace) -> None:
        self._inner = inner
        self._process = process
        self._trace = trace

    @property
    def vnode_count(self) -> int:
        return self._inner.vnode_count

    def lead(self) -> AsyncIterator[Leadership]:
        return self._inner.lead()

    async def commit(self, vnode: VnodeId, term: Term, writes: Sequence[Write]) -> None:
        await self._process.enter_async(f"commit {vnode}")
        size = sum(len(key) + len(value or b"") for key, value in writes)
        self._trace.add(f"store {self._process.name} commit {vnode} {len(writes)} writes {size} bytes")
        await self._inner.commit(vnode, term, writes)
        self._trace.add(f"store {self._process.name} committed {vnode}")

    async def get(self, vnode: VnodeId, term: Term, key: bytes) -> bytes | None:
        await self._process.enter_async("get")
        return await self._inner.get(vnode, term, key)

    async def scan(
        self, vnode: VnodeId, term: Term, start: bytes, end: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        await self._process.enter_async("scan")
        return await self._inner.scan(vnode, term, start, end, limit)

    async def floor(self, vnode: VnodeId, term: Term, key: bytes, low: bytes) -> tuple[bytes, bytes] | None:
        await self._process.enter_async("floor")
        return await self._inner.floor(vnode, term, key, low)

    async def close(self) -> None:
        await self._process.enter_async("close")
        await self._inner.close()


class GatedKeyValue:
    """A key-value map, as one process reaches it; its files outlive the process."""

    def __init__(
        self,
        inner: KeyValue,
        process: SimProcess,
        trace: Trace,
        fails: Callable[[], bool],
        failed: Callable[[SimProcess], None],
    ) -> None:
        self._inner = inner
        self._process = process
        self._trace = trace
        self._fails = fails
        self._failed = failed
        self._is_broken = False  # after a failed sync nothing is taken any more

    def get(self, key: bytes) -> bytes | None:
        return self._inner.get(key)

    def scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        return self._inner.scan(start, end, limit)

    def floor(self, key: bytes, low: bytes) -> Pair | None:
        return self._inner.floor(key, low)

    def write(self, writes: Sequence[Write]) -> None:
        self._process.enter("kv write")
        self._check()
        self._trace.add(f"kv {self._process.name} write {len(writes)}")
        self._inner.write(writes)

    def sync(self) -> None:
        self._process.enter("kv sync")
        self._check()
        if self._fails():
            self._trace.add(f"kv {self._process.name} sync fails")
            self._is_broken = True
            self._failed(self._process)
        self._check()
        self._trace.add(f"kv {self._process.name} sync")
        self._inner.sync()

    def close(self) -> None:
        """As closing RocksDB does, this keeps what was written; the map itself serves the next owner."""
        self._process.enter("kv close")
        if not self._is_broken:
            self._inner.sync()

    def _check(self) -> None:
        if self._is_broken:
            raise Unavailable("simulated: the disk has failed a sync")


class KeyValueDisk:
    """The one key-value map of a world, over the crashes of its owners."""

    def __init__(self, rng: Random, trace: Trace) -> None:
        self._rng = rng
        self._trace = trace
        self._map = MemoryKeyValue()

    def open(
        self, process: SimProcess, *, fails: Callable[[], bool], failed: Callable[[SimProcess], None]
    ) -> GatedKeyValue:
        """Nothing unsynced survives the process for sure, and nothing is torn: a prefix stays."""
        owned = self._map

        def crash() -> None:
            keep = self._rng.randint(0, owned.unsynced_writes)
            self._trace.add(f"kv {process.name} crash keeps {keep} of {owned.unsynced_writes}")
            self._map = owned.crash(keep)

        process.when_killed(crash)
        return GatedKeyValue(owned, process, self._trace, fails, failed)
