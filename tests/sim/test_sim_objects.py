"""The simulated object store: what its faults mean, and what outlives a killed client."""

import asyncio
import random

import pytest

from floe.model.errors import Unavailable
from floe.storage.objects.port import AlreadyExists, ObjectNotFound
from floe.testing.sim_loop import SimLoop
from floe.testing.sim_objects import ObjectFaults, SimObjects, SimObjectServer
from floe.testing.sim_process import SimProcess
from floe.testing.sim_trace import Trace


class LoopClock:
    def __init__(self, loop):
        self.loop = loop

    def now_ms(self):
        return int(self.loop.time() * 1000)

    def monotonic(self):
        return self.loop.time()


class World:
    def __init__(self, seed=1, **faults):
        self.loop = SimLoop(random.Random(seed))
        self.trace = Trace(self.loop.time)
        rng = random.Random(seed)
        self.server = SimObjectServer(
            self.loop, rng, self.trace, LoopClock(self.loop), ObjectFaults(**faults)
        )

    def client(self):
        process = SimProcess("broker-1")
        return process, SimObjects(self.server, process)

    def run(self, work):
        try:
            return self.loop.run(work, seconds=3600)
        finally:
            self.loop.close()


def test_objects_are_kept_and_read_back():
    world = World()

    async def main():
        _, objects = world.client()
        await objects.put("a/1", [b"he", memoryview(b"llo")])
        with pytest.raises(AlreadyExists):
            await objects.put("a/1", [b"other"])
        spans = await objects.get_ranges("a/1", [(1, 2), (0, 5)])
        keys = [info.key async for info in objects.list("a/")]
        assert [bytes(span) for span in spans] == [b"el", b"hello"]
        assert await objects.delete(["a/1", "a/2"]) == {}
        with pytest.raises(ObjectNotFound):
            await objects.get("a/1")
        return keys

    assert world.run(main()) == ["a/1"]


@pytest.mark.parametrize(("fault", "is_there"), [("lost", False), ("ambiguous", True)])
def test_a_failed_put_may_have_worked(fault, is_there):
    world = World(**{fault: 1.0})

    async def main():
        _, objects = world.client()
        with pytest.raises(Unavailable):
            await objects.put("a", [b"x"])
        return world.server.keys()

    assert world.run(main()) == (frozenset({"a"}) if is_there else frozenset())


def test_a_late_put_arrives_after_its_sender_gave_up():
    world = World(late=1.0)

    async def main():
        _, objects = world.client()
        with pytest.raises(Unavailable):
            await objects.put("a", [b"x"])
        at_the_answer = world.server.keys()
        await asyncio.sleep(10)
        return at_the_answer, world.server.keys()

    assert world.run(main()) == (frozenset(), frozenset({"a"}))


def test_deletes_fail_in_part():
    world = World(delete_fails=0.5)

    async def main():
        _, objects = world.client()
        keys = [f"k{n:02}" for n in range(40)]
        for key in keys:
            await objects.put(key, [b"x"])
        failed = await objects.delete(keys)
        left = world.server.keys()
        return set(failed), set(left)

    failed, left = world.run(main())
    assert 0 < len(failed) < 40
    assert left < failed  # some of the failed are gone all the same


def test_requests_of_a_killed_process_may_still_arrive():
    outcomes = set()
    for seed in range(20):
        world = World(seed)

        async def main(world=world):
            process, objects = world.client()
            process.start(world.loop, objects.put("a", [b"x"]), "put")
            await asyncio.sleep(0)
            process.kill("test")
            await asyncio.sleep(10)
            world.loop.reap(process)
            return bool(world.server.keys())

        outcomes.add(world.run(main()))
    assert outcomes == {True, False}


def test_a_dead_process_sends_nothing():
    world = World()

    async def main():
        process, objects = world.client()
        process.kill("test")
        task = asyncio.create_task(objects.put("a", [b"x"]))
        await asyncio.sleep(10)
        task.cancel()
        return world.server.keys()

    assert world.run(main()) == frozenset()


def test_a_body_that_changes_under_way_is_found_out():
    world = World()

    async def main():
        _, objects = world.client()
        body = bytearray(b"before")
        put = asyncio.create_task(objects.put("a", [body]))
        await asyncio.sleep(0)
        body[:] = b"after!"
        await put
        return await objects.get("a")

    assert world.run(main()) == b"after!"
