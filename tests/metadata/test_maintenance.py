"""Background jobs run in bounded passes, outlive what goes wrong and leave vnodes alone that are not led."""

import asyncio
from random import Random

from floe.metadata.maintenance import PASSES_PER_ROUND, Job, Maintenance
from floe.model.errors import Unavailable
from floe.observability.metrics import Metrics
from floe.testing.operation_kit import LoopClock
from floe.testing.sim_loop import SimLoop


def run(work):
    loop = SimLoop(Random(0))
    try:
        return loop.run(work)
    finally:
        loop.close()


def maintenance(jobs, vnodes=("a", "b"), is_led=lambda vnode: True):
    return Maintenance(jobs, vnodes, is_led=is_led, clock=LoopClock(), metrics=Metrics())


def test_idle_job_looks_at_each_vnode_once_in_its_interval():
    looks = []

    async def look(vnode):
        looks.append(vnode)
        return False

    async def main():
        jobs = maintenance([Job("look", 1.0, look)])
        jobs.start()
        await asyncio.sleep(9.5)
        await jobs.close()

    run(main())
    assert looks == ["a", "b"] * 10


def test_busy_vnode_gets_so_many_passes_before_the_next_has_its_turn():
    left = {"a": 100, "b": 3}
    order = []

    async def work(vnode):
        order.append(vnode)
        left[vnode] -= 1
        return left[vnode] > 0

    async def main():
        jobs = maintenance([Job("work", 3600.0, work)])
        jobs.start()
        await asyncio.sleep(1)
        await jobs.close()

    run(main())
    assert left == {"a": 0, "b": 0} or left["b"] < 0
    assert order[:PASSES_PER_ROUND] == ["a"] * PASSES_PER_ROUND
    assert order[PASSES_PER_ROUND] == "b"
    assert order.count("a") == 100


def test_failing_vnode_does_not_keep_others_from_their_passes():
    done = []

    async def work(vnode):
        if vnode == "a":
            raise Unavailable("not now")
        if vnode == "b" and len(done) == 1:
            raise ZeroDivisionError
        if vnode == "c":
            await asyncio.Event().wait()
        done.append(vnode)
        return False

    async def main():
        jobs = maintenance([Job("work", 1.0, work)], vnodes=("a", "b", "c", "d"))
        jobs.start()
        await asyncio.sleep(200)
        await jobs.close()

    run(main())
    assert done[:2] == ["b", "d"]
    assert done.count("d") >= 2


def test_vnode_that_is_not_led_is_left_alone_and_rounds_end_all_the_same():
    looks, rounds = [], []

    async def look(vnode):
        looks.append(vnode)
        return False

    async def main():
        job = Job("look", 1.0, look, lambda: rounds.append(1))
        jobs = maintenance([job], is_led=lambda vnode: vnode == "b")
        assert await jobs.run_round(job) is False

    run(main())
    assert looks == ["b"]
    assert rounds == [1]
