"""Few threads, calls in order, results and errors on the event loop."""

import asyncio
import threading

import pytest

from floe.storage.quick_thread import QuickThread, QuickThreads


async def test_calls_run_in_order_on_one_other_thread():
    thread = QuickThread("test")
    loop = asyncio.get_running_loop()
    ran = []
    await asyncio.gather(*(loop.run_in_executor(thread, ran.append, i) for i in range(50)))
    assert ran == list(range(50))
    names = {await loop.run_in_executor(thread, lambda: threading.current_thread().name) for _ in range(3)}
    assert names == {"test"}
    thread.shutdown()


async def test_error_of_a_call_reaches_its_caller_and_the_next_call_runs():
    thread = QuickThread("test")
    loop = asyncio.get_running_loop()
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(thread, lambda: 1 // 0)
    assert await loop.run_in_executor(thread, lambda: 7) == 7
    thread.shutdown()


async def test_cancelled_caller_leaves_the_thread_working():
    thread = QuickThread("test")
    loop = asyncio.get_running_loop()
    gate = threading.Event()
    call = loop.run_in_executor(thread, gate.wait, 10)
    call.cancel()
    gate.set()
    assert await loop.run_in_executor(thread, lambda: 7) == 7
    thread.shutdown()


def test_shutdown_ends_the_thread_and_may_be_repeated():
    thread = QuickThread("floe-ended")
    thread.shutdown()
    asyncio.run(_one_call(thread))
    thread.shutdown()
    thread.shutdown()
    assert "floe-ended" not in [each.name for each in threading.enumerate()]


def test_answer_to_a_closed_loop_is_dropped():
    thread = QuickThread("test")
    gate = threading.Event()

    async def leave():
        asyncio.get_running_loop().run_in_executor(thread, gate.wait, 10)

    asyncio.run(leave())
    gate.set()
    assert asyncio.run(_one_call(thread)) == 7
    thread.shutdown()


async def _one_call(thread):
    return await asyncio.get_running_loop().run_in_executor(thread, lambda: 7)


async def test_several_threads_overlap_and_start_only_when_needed():
    threads = QuickThreads("floe-several", 3)
    loop = asyncio.get_running_loop()
    for _ in range(5):
        await loop.run_in_executor(threads, lambda: None)
    assert _names_with("floe-several") == ["floe-several-0"]
    meeting = threading.Barrier(3)
    await asyncio.gather(*(loop.run_in_executor(threads, meeting.wait, 10) for _ in range(3)))
    await asyncio.gather(*(loop.run_in_executor(threads, lambda: None) for _ in range(20)))
    assert len(_names_with("floe-several")) == 3
    threads.shutdown()
    assert _names_with("floe-several") == []


def _names_with(name):
    return sorted(each.name for each in threading.enumerate() if each.name.startswith(name))
