"""A whole metadata plane on a memory store and virtual time."""

import asyncio
from random import Random

import pytest

from floe.metadata.router import Router
from floe.metadata.store.memory import MemoryStore
from floe.metadata.vnode_host import Timing
from floe.model.coordinates import BatchEntry, ObjectCommit
from floe.observability.metrics import Metrics
from floe.testing.operation_kit import LoopClock
from floe.testing.sim_loop import SimLoop

DAY_SECONDS = 86_400


class Plane:
    """A router and what tests do with it."""

    def __init__(self, store):
        self.store = store
        self.clock = LoopClock()
        self.metrics = Metrics()
        timing = Timing(
            close_after_ms=60_000, grace_ms=1_000, orphan_grace_ms=1_000, retention_interval_ms=1_000
        )
        self.router = Router(store, clock=self.clock, random=Random(1), metrics=self.metrics, timing=timing)

    async def __aenter__(self):
        await self.router.start()
        return self

    async def __aexit__(self, *exc):
        await self.router.close()
        await self.store.close()

    async def topic(self, name="orders", partitions=1, **config):
        config = {key.replace("_", "."): value for key, value in config.items()}
        return await self.router.create_topic(name, partitions=partitions, config=config)

    async def write(self, ranges, size=100, objects=1):
        """Commit objects with one record for each range; returns their ids."""
        ids = await self.router.lease_object_ids(objects) if objects else []
        for object_id in ids:
            parts = {}
            for position, range_id in enumerate(ranges):
                now = self.clock.now_ms()
                entry = BatchEntry(range_id, position * size, size, 1, now)
                parts.setdefault(self.router.vnode_of_range(range_id), []).append(entry)
            for vnode, entries in parts.items():
                await self.router.commit(vnode, [ObjectCommit(object_id, tuple(entries))])
        return ids


@pytest.fixture
def on_plane():
    """Run a test's work on a fresh plane and virtual time."""

    def run(work, *, vnodes=16, seed=None, disk=None):
        async def main():
            random = None if seed is None else Random(seed)
            async with Plane(MemoryStore(vnodes, random=random, disk=disk)) as plane:
                await work(plane)
            return plane.store.disk

        loop = SimLoop(Random(seed or 0))
        disk = loop.run(main(), seconds=3 * DAY_SECONDS)
        assert loop.unhandled == []
        leftover = [task for task in asyncio.all_tasks(loop) if not task.done()]
        loop.close()
        assert leftover == []
        return disk

    return run
