"""Metadata at 10^4, 10^6 and 10^7 coordinates: commits a second and the latency of find, on RocksDB, synced.

One database grows through real commits. At each size, callers commit at the same time as brokers would, and
then 10,000 finds ask for random offsets over the whole log, one after the other. The rows of the larger
sizes do not fit into the block cache; a find must cost about the same everywhere.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import save
from floe.metadata.api import FindRequest
from floe.metadata.router import Router
from floe.metadata.store.local import LocalStore
from floe.model.coordinates import BatchEntry, ObjectCommit
from floe.model.ids import ObjectId, Offset, RangeId, VnodeId
from floe.observability.clock import SystemClock
from floe.observability.metrics import Metrics
from floe.storage.kv.rocks import CACHE_BYTES_DEFAULT, RocksKeyValue

SIZES = (10**4, 10**6, 10**7)
PARTITIONS = 64
ROW_BYTES = 128 << 10
RECORDS_PER_ROW = 128
ENTRIES_PER_COMMIT = 8
OBJECTS_PER_CALL = 32  # while filling
CALLERS = 64
TIMED_COMMITS = 10_000
TIMED_FINDS = 10_000
FIND_BYTES = 1 << 20
SETTLE_SECONDS = 30.0  # filling is far faster than any broker writes; its compactions must not be timed


class Plane:
    """The metadata plane over one database, filled by commits."""

    def __init__(self, folder: str) -> None:
        self.random = Random(1)
        self.store = LocalStore(RocksKeyValue(Path(folder) / "kv"))
        self.router = Router(self.store, clock=SystemClock(), random=Random(2), metrics=Metrics())
        self.coordinates = 0
        self._ids: list[ObjectId] = []
        self._leasing = asyncio.Lock()
        self._turn = 0

    async def open(self) -> None:
        await self.router.start()
        topic = await self.router.create_topic("t", partitions=PARTITIONS, config={"retention.ms": "-1"})
        self.ranges = topic.ranges
        by_vnode: dict[VnodeId, list[RangeId]] = {}
        for range_id in self.ranges:
            by_vnode.setdefault(self.router.vnode_of_range(range_id), []).append(range_id)
        self.groups = [
            (vnode, own[i : i + ENTRIES_PER_COMMIT])
            for vnode, own in by_vnode.items()
            for i in range(0, len(own), ENTRIES_PER_COMMIT)
        ]

    async def close(self) -> None:
        await self.router.close()
        await self.store.close()

    async def commit(self, object_count: int) -> None:
        """One call for some ranges of one vnode; every entry becomes a row."""
        self._turn += 1
        vnode, ranges = self.groups[self._turn % len(self.groups)]
        commits = [ObjectCommit(await self._new_id(), _entries(ranges)) for _ in range(object_count)]
        results = await self.router.commit(vnode, commits)
        assert not any(result.error for object_results in results for result in object_results)
        self.coordinates += object_count * len(ranges)

    async def fill(self, size: int) -> None:
        while self.coordinates < size:
            await asyncio.gather(*(self.commit(OBJECTS_PER_CALL) for _ in self.groups))

    async def time_commits(self) -> float:
        """Commits of one object a second, by callers that wait for their answers."""

        async def caller() -> None:
            for _ in range(TIMED_COMMITS // CALLERS):
                await self.commit(1)

        started = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        return TIMED_COMMITS / (time.perf_counter() - started)

    async def time_finds(self) -> list[float]:
        """Seconds of each find of a random offset."""
        ends = [
            view.log_end
            for view in await self.router.find([FindRequest(r, Offset(0), 0) for r in self.ranges])
        ]
        seconds = []
        for _ in range(TIMED_FINDS):
            index = self.random.randrange(len(self.ranges))
            offset = Offset(self.random.randrange(ends[index]))
            request = [FindRequest(self.ranges[index], offset, FIND_BYTES)]
            started = time.perf_counter()
            (view,) = await self.router.find(request)
            seconds.append(time.perf_counter() - started)
            assert view.rows[0].first <= offset <= view.rows[0].last
        return seconds

    async def _new_id(self) -> ObjectId:
        async with self._leasing:
            if not self._ids:
                self._ids = list(await self.router.lease_object_ids(4096))
            return self._ids.pop()


def _entries(ranges: Sequence[RangeId]) -> tuple[BatchEntry, ...]:
    now = time.time_ns() // 1_000_000
    return tuple(
        BatchEntry(range_id, i * ROW_BYTES, ROW_BYTES, RECORDS_PER_ROW, now)
        for i, range_id in enumerate(ranges)
    )


async def _measure(sizes: Sequence[int]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        plane = Plane(folder)
        await plane.open()
        gc.collect()
        gc.freeze()
        for size in sizes:
            started = time.perf_counter()
            await plane.fill(size)
            filled = time.perf_counter() - started
            await asyncio.sleep(SETTLE_SECONDS)
            commits = await plane.time_commits()
            seconds = sorted(await plane.time_finds())
            row: dict[str, object] = {
                "coordinates": size,
                "commits per second": round(commits),
                "find median us": round(seconds[len(seconds) // 2] * 1e6, 1),
                "find p99 us": round(seconds[len(seconds) * 99 // 100] * 1e6, 1),
                "filled in s": round(filled, 1),
            }
            print(row, flush=True)
            rows.append(row)
        await plane.close()
    return rows


def run_metadata(sizes: Sequence[int] = SIZES) -> None:
    """Measure all sizes and write the result file."""
    rows = asyncio.run(_measure(sizes))
    settings: dict[str, object] = {
        "store": "RocksDB, every group commit synced",
        "block cache MiB": CACHE_BYTES_DEFAULT >> 20,
        "ranges": PARTITIONS,
        "entries per commit": f"up to {ENTRIES_PER_COMMIT}, each of another range",
        "callers": CALLERS,
        "pause after filling s": SETTLE_SECONDS,
        "find": f"random offset, {FIND_BYTES >> 20} MiB of rows of {ROW_BYTES >> 10} KiB",
    }
    save("metadata", command="benchmarks/metadata.py", settings=settings, rows=rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    run_metadata(parser.parse_args().sizes)
