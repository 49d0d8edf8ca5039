"""An executor of one thread whose answers take the short way back to the event loop.

`ThreadPoolExecutor` builds a future with a lock and a condition per call and copies it into one of asyncio's;
that doubles the time of the hop (measured: 150 us instead of 90 us on uvloop, idle). Here `submit` must be
called on the event loop and returns the loop's own future, which `run_in_executor` hands on as it is. Going
through `run_in_executor` keeps the caller's code the same on a simulated loop, where no thread is started.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

from typing_extensions import override

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class QuickThread(Executor):
    """Runs calls one after the other, in the order of `submit`; the thread starts with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: Thread | None = None

    @override
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        assert not kwargs
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._thread is None:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((loop, future, fn, args))
        return future

    @override
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread after the calls submitted so far; harmless when repeated."""
        if self._thread is None:
            return
        self._jobs.put(None)
        if wait:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, fn, args = job
            result, error = None, None
            try:
                result = fn(*args)
            except BaseException as raised:  # noqa: BLE001 - handed to the caller
                error = raised
            with suppress(RuntimeError):  # A closed loop has nobody left to tell.
                loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
