"""A whole engine on memory stores and virtual time, with the faults that tests ask for."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from floe.metadata.api import FindRequest
from floe.metadata.router import Router
from floe.metadata.store.memory import MemoryStore
from floe.model.coordinates import EntryResult, ObjectCommit, RangeView
from floe.model.errors import Unavailable
from floe.model.ids import ObjectId, Offset, RangeId, VnodeId
from floe.model.work import WorkItem, WorkKind
from floe.object_log.engine import EngineSettings, ObjectLog, ReadRequest, ReadResult
from floe.observability.clock import Clock, SystemClock
from floe.observability.metrics import Metrics
from floe.storage.objects.files import FileObjects
from floe.storage.objects.memory import MemoryObjects
from floe.storage.objects.port import Objects
from floe.storage.objects.retrying import RetryingObjects
from floe.storage.os_disk import OsDisk
from floe.testing.faulty_objects import FaultyObjects
from floe.testing.sim_loop import SimLoop
from floe.wire.batch import Batch, check_batches, stored_batches
from floe.wire.records import Record, decode, encode

NOW_MS = 1_700_000_000_000
CLUSTER = "c1"
RANGES = 64
VNODES = 4


class LoopClock:
    """Wall and monotonic time of the loop that runs."""

    def now_ms(self) -> int:
        return NOW_MS + int(asyncio.get_running_loop().time() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Coordinators:
    """The real metadata plane, with counters, and faults on the way to and from it."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.calls: Counter[str] = Counter()
        self.commits: list[tuple[VnodeId, tuple[ObjectId, ...]]] = []  # as they arrive at a vnode
        self.held: dict[VnodeId, asyncio.Event] = {}  # commits of these vnodes wait
        self.commit_faults: dict[VnodeId, deque[str]] = {}  # "before" or "after" the commit took effect

    def __getattr__(self, name: str) -> Any:
        return getattr(self.router, name)

    async def lease_object_ids(self, count: int) -> Sequence[ObjectId]:
        self.calls["lease"] += 1
        return await self.router.lease_object_ids(count)

    async def commit(self, vnode: VnodeId, commits: Sequence[ObjectCommit]) -> list[tuple[EntryResult, ...]]:
        self.calls["commit"] += 1
        if vnode in self.held:
            await self.held[vnode].wait()
        faults = self.commit_faults.get(vnode)
        fault = faults.popleft() if faults else None
        if fault == "before":
            raise Unavailable("injected: not sent")
        self.commits.append((vnode, tuple(commit.object for commit in commits)))
        results = await self.router.commit(vnode, commits)
        if fault == "after":
            raise Unavailable("injected: the answer was lost")
        return results

    async def find(self, requests: Sequence[FindRequest]) -> list[RangeView]:
        self.calls["find"] += 1
        return await self.router.find(requests)

    async def claim_work(self, worker: str, kinds: Sequence[WorkKind], limit: int) -> list[WorkItem]:
        self.calls["claim"] += 1
        return await self.router.claim_work(worker, kinds, limit)


class Rig:
    """One engine and everything around it."""

    def __init__(self, objects: Objects, clock: Clock, settings: EngineSettings, *, seed: int = 0) -> None:
        self.clock = clock
        self.settings = settings
        self.put_seconds = 0.0
        self.inner = objects
        self.objects = FaultyObjects(objects, random=Random(seed))
        self.objects.before = self._slowly
        store = MemoryStore(VNODES, random=Random(seed))
        self.router = Router(store, clock=clock, random=Random(seed), metrics=Metrics())
        self.metadata = Coordinators(self.router)
        self.ranges: list[RangeId] = []

    async def start(self) -> None:
        await self.router.start()
        topic = await self.router.create_topic("t", partitions=RANGES, config={})
        self.ranges = sorted(topic.ranges)
        self.log = self.open(self.settings)
        await self.log.start()

    async def close(self) -> None:
        await self.log.close(drain=False)
        await self.router.close()

    def open(self, settings: EngineSettings) -> ObjectLog:
        """An engine on the same stores, with empty caches."""
        retrying = RetryingObjects(self.objects, clock=self.clock, random=Random(1))
        return ObjectLog(
            objects=retrying,
            metadata=self.metadata,  # type: ignore[arg-type]
            clock=self.clock,
            metrics=Metrics(),
            settings=settings,
            cluster_id=CLUSTER,
        )

    async def _slowly(self, op: str, _key: str) -> None:
        if op == "put" and self.put_seconds:
            await asyncio.sleep(self.put_seconds)

    def ranges_on_different_vnodes(self) -> list[RangeId]:
        by_vnode = {self.metadata.vnode_of_range(range_id): range_id for range_id in reversed(self.ranges)}
        return list(by_vnode.values())

    def batch(self, values: Sequence[bytes | str], **facts: Any) -> Batch:
        """A batch as a front door makes it: a view of the buffer of its request."""
        timestamps = facts.pop("timestamps", None) or [NOW_MS] * len(values)
        records = [
            Record(offset, time, None, value.encode() if isinstance(value, str) else value)
            for offset, (value, time) in enumerate(zip(values, timestamps, strict=True))
        ]
        encoded = bytearray(encode(records, **facts))
        (batch,) = check_batches(memoryview(encoded), batch_size_max=64 << 20)
        return batch

    async def append(self, *entries: tuple[RangeId, Batch]) -> list[EntryResult]:
        return await self.log.append(entries)

    async def read(
        self, range_id: RangeId, offset: int, max_bytes: int = 1 << 20, log: ObjectLog | None = None
    ) -> ReadResult:
        request = ReadRequest(range_id, Offset(offset), max_bytes)
        (result,) = await (log or self.log).read([request], max_bytes=1 << 30)
        return result

    def records(self, result: ReadResult) -> list[tuple[int, bytes | None]]:
        """Offsets and values, decoded as a client does it: from the headers in the bytes."""
        joined = memoryview(b"".join(result.pieces))
        assert len(joined) == result.size
        return [
            (record.offset, record.value) for batch in stored_batches(joined) for record in decode(batch.view)
        ]

    async def read_all(
        self, range_id: RangeId, log: ObjectLog | None = None
    ) -> list[tuple[int, bytes | None]]:
        found: list[tuple[int, bytes | None]] = []
        while True:
            offset = found[-1][0] + 1 if found else 0
            result = await self.read(range_id, offset, log=log)
            assert not result.error
            if not result.size:
                return found
            found += self.records(result)


Scenario = Callable[[Rig], Coroutine[Any, Any, None]]


@pytest.fixture
def run() -> Callable[..., None]:
    """Runs a scenario with a rig, in virtual time; nothing may be left behind or unhandled."""

    def run_scenario(
        scenario: Scenario,
        *,
        settings: EngineSettings | None = None,
        seed: int = 0,
        put_seconds: float = 0.0,
        seconds: float = 3600.0,
    ) -> None:
        loop = SimLoop(Random(seed))

        async def whole() -> None:
            clock = LoopClock()
            rig = Rig(MemoryObjects(clock), clock, settings or EngineSettings(), seed=seed)
            rig.put_seconds = put_seconds
            await rig.start()
            await scenario(rig)
            await rig.close()
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert not left

        try:
            loop.run(whole(), seconds=seconds)
            assert not loop.unhandled
        finally:
            loop.close()

    return run_scenario


@pytest.fixture
async def rig_on_files(tmp_path: Path) -> AsyncIterator[Rig]:
    """A rig on the durable folder store, with real threads and the machine's clock."""
    rig = Rig(FileObjects(OsDisk(tmp_path)), SystemClock(), EngineSettings.for_files())
    await rig.start()
    yield rig
    await rig.close()
    await rig.inner.close()
