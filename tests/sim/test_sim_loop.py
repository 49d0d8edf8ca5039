"""The virtual-time loop: time jumps, order repeats, dead processes do nothing."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from floe.testing.sim_loop import SimDeadline, SimDeadlock, SimLoop
from floe.testing.sim_process import Killed, SimProcess


@pytest.fixture
def loop():
    sim = SimLoop(random.Random(1))
    yield sim
    sim.close()


def test_sleeping_takes_no_real_time_and_exact_virtual_time(loop):
    async def main():
        start = loop.time()
        await asyncio.sleep(7 * 24 * 3600)
        return loop.time() - start

    assert loop.run(main()) == pytest.approx(7 * 24 * 3600)


def test_timeouts_fire_in_virtual_time(loop):
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.sleep(31)
        return await asyncio.wait_for(asyncio.sleep(1, "done"), 30)

    assert loop.run(main()) == "done"


def test_timers_fire_in_order_of_time(loop):
    async def main():
        fired: list[int] = []
        for delay in (3, 1, 2):
            loop.call_later(delay, fired.append, delay)
        await asyncio.sleep(4)
        return fired

    assert loop.run(main()) == [1, 2, 3]


def test_deadlock_names_the_waiting_tasks(loop):
    async def wait_for_ever():
        await loop.create_future()

    with pytest.raises(SimDeadlock, match=r"the-stuck-one at .*test_sim_loop\.py"):
        loop.run(_named(wait_for_ever(), "the-stuck-one"))


async def _named(work, name):
    await asyncio.create_task(work, name=name)


def test_deadline_is_of_virtual_time(loop):
    async def tick():
        while True:
            await asyncio.sleep(1)

    with pytest.raises(SimDeadline):
        loop.run(tick(), seconds=100)
    assert loop.time() < 1200


def test_executor_work_runs_inline_and_answers_later(loop):
    async def main():
        start = loop.time()
        result = await asyncio.to_thread(sum, [1, 2, 3])
        return result, loop.time() - start

    result, took = loop.run(main())
    assert result == 6
    assert took > 0


def test_executor_hands_over_exceptions(loop):
    async def main():
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)

    loop.run(main())


def test_one_thread_runs_its_work_in_order(loop):
    async def main():
        done: list[int] = []
        with ThreadPoolExecutor(max_workers=1) as one:
            await asyncio.gather(*(loop.run_in_executor(one, done.append, n) for n in range(50)))
        return done

    assert loop.run(main()) == list(range(50))


def test_several_threads_may_overtake_each_other(loop):
    async def main():
        done: list[int] = []
        await asyncio.gather(*(loop.run_in_executor(None, done.append, n) for n in range(50)))
        return done

    done = loop.run(main())
    assert sorted(done) == list(range(50))
    assert done != list(range(50))


def test_sets_of_tasks_iterate_in_order_of_creation(loop):
    async def main():
        tasks = {asyncio.create_task(asyncio.sleep(1, n)) for n in range(5)}
        done, _ = await asyncio.wait(tasks)
        return [task.result() for task in done]

    assert loop.run(main()) == [0, 1, 2, 3, 4]


def test_a_killed_process_takes_no_further_step(loop):
    process = SimProcess("broker-1")
    done: list[str] = []

    async def child():
        await asyncio.sleep(5)
        done.append("child")

    async def body():
        task = asyncio.create_task(child())
        loop.call_later(5, done.append, "timer")
        try:
            await task
        finally:
            done.append("cleanup")

    async def main():
        process.start(loop, body(), "body")
        await asyncio.sleep(1)
        process.kill("test")
        await asyncio.sleep(10)

    loop.run(main())
    assert done == []
    loop.reap(process)
    assert done == ["cleanup"]  # closed where it can reach nothing
    assert loop.unhandled == []


def test_a_process_dies_at_its_nth_step(loop):
    async def main(step):
        process = SimProcess("broker-1")
        process.die_at_step = step
        ticks: list[int] = []

        async def body():
            for n in range(10):
                ticks.append(n)
                await asyncio.sleep(0)

        process.start(loop, body(), "body")
        await asyncio.sleep(1)
        return process.is_alive, len(ticks)

    assert loop.run(main(4)) == (False, 3)
    assert loop.run(main(100)) == (True, 10)


def test_a_process_dies_at_its_nth_port_call(loop):
    process = SimProcess("broker-1")
    process.die_at_call = 3
    calls: list[int] = []

    async def body():
        for n in range(5):
            await process.enter_async(f"call {n}")
            calls.append(n)

    async def main():
        process.start(loop, body(), "body")
        await asyncio.sleep(1)

    loop.run(main())
    assert calls == [0, 1]
    assert "call 2" in process.death_reason
    with pytest.raises(Killed):
        process.enter("anything")
    loop.reap(process)


def test_a_frozen_process_goes_on_where_it_stopped(loop):
    process = SimProcess("broker-1")
    ticks: list[float] = []

    async def body():
        for _ in range(4):
            ticks.append(loop.time() - 1000)
            await asyncio.sleep(1)

    async def main():
        process.start(loop, body(), "body")
        await asyncio.sleep(1.5)
        process.freeze()
        await asyncio.sleep(10)
        loop.thaw(process)
        await asyncio.sleep(10)

    loop.run(main())
    assert ticks == pytest.approx([0, 1, 11.5, 12.5])


def test_executor_work_of_a_dead_process_never_runs(loop):
    process = SimProcess("broker-1")
    done: list[int] = []

    async def body():
        await loop.run_in_executor(None, done.append, 1)

    async def main():
        process.start(loop, body(), "body")
        await asyncio.sleep(0)
        process.kill("test")
        await asyncio.sleep(1)

    loop.run(main())
    assert done == []
    loop.reap(process)


def test_errors_that_nobody_caught_are_noted(loop):
    async def main():
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    loop.run(main())
    assert len(loop.unhandled) == 1
    assert "ZeroDivisionError" in loop.unhandled[0]


def test_async_generators_are_closed(loop):
    closed: list[bool] = []

    async def numbers():
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    async def main():
        async for _ in numbers():
            break
        await asyncio.sleep(1)

    loop.run(main())
    assert closed == [True]
