"""An asyncio event loop on virtual time: nothing waits, everything happens in one repeatable order.

When no callback is ready, time jumps to the next timer. Work for executors runs inline, on simulated
threads that take time drawn from the seed. Futures and tasks hash by their number of creation, so sets of
them iterate alike in every run. When nothing is left to run, the loop raises `SimDeadlock` and says which
tasks wait and where.
"""

import asyncio
import contextlib
import contextvars
import gc
import heapq
import random
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from typing_extensions import override

from floe.testing.sim_process import PROCESS, Killed, SimProcess
from floe.testing.sim_task import SimFuture, SimHandle, SimTask, SimTimer, number_of

T = TypeVar("T")

TIME_AT_START = 1000.0
STEPS_PER_INSTANT_MAX = 500_000
DEFAULT_EXECUTOR_THREADS = 8
_KERNEL = contextvars.Context()


class SimDeadlock(RuntimeError):
    """Every task waits for something that can never happen."""


class SimLivelock(RuntimeError):
    """Callbacks follow one another without end and without time passing."""


class SimDeadline(RuntimeError):
    """The work was not done at its virtual deadline."""


class Network(Protocol):
    """What `create_server` and `create_connection` reach."""

    async def serve(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> asyncio.AbstractServer: ...

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...


class _Selector:
    """Stands where the base loop has its selector: instead of waiting, it moves the time."""

    def __init__(self, loop: "SimLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        self._loop.pass_time(timeout)
        return []


class _Threads:
    """The threads of one executor, each busy until some moment."""

    def __init__(self, count: int) -> None:
        self.free_at = [0.0] * count

    def book(self, now: float, seconds: float) -> float:
        """Occupy the thread that is free first; returns the moment at which the work starts."""
        index = min(range(len(self.free_at)), key=self.free_at.__getitem__)
        start = max(now, self.free_at[index])
        self.free_at[index] = start + seconds
        return start


def quick_threads(rng: random.Random) -> tuple[float, float]:
    """(seconds before the function takes effect, seconds from there to the answer)."""
    return rng.uniform(0.0, 0.0005), rng.uniform(0.0, 0.0005)


class SimLoop(asyncio.BaseEventLoop):
    """The loop. `executor_time` draws how long a function given to an executor takes."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _closed: bool

    def __init__(
        self,
        rng: random.Random,
        executor_time: Callable[[random.Random], tuple[float, float]] = quick_threads,
    ) -> None:
        self._now = TIME_AT_START
        super().__init__()
        self._selector = _Selector(self)
        self._rng = rng
        self._executor_time = executor_time
        self._threads: dict[tuple[SimProcess | None, object], _Threads] = {}
        self._numbers = 0
        self._steps_at_instant = 0
        self._is_reaping = False
        self._deadline: float | None = None
        self.network: Network | None = None
        self.unhandled: list[str] = []  # errors of live code that nobody caught
        self.set_exception_handler(_note_unhandled)

    @override
    def time(self) -> float:
        return self._now

    def run(self, work: Coroutine[Any, Any, T], *, seconds: float | None = None) -> T:
        """Run to the end; raises `SimDeadline` when that takes more than `seconds` of virtual time."""
        self._deadline = None if seconds is None else self._now + seconds
        was_enabled = gc.isenabled()
        gc.disable()  # collections would run finalizers at moments that depend on the interpreter
        try:
            return self.run_until_complete(work)
        finally:
            if was_enabled:
                gc.enable()

    def pass_time(self, timeout: float | None) -> None:
        """Called between rounds of callbacks; `timeout` is None when nothing at all is left to run."""
        if timeout is None:
            raise SimDeadlock("nothing is left to run\n" + self.waiting_tasks())
        if timeout <= 0:
            self._steps_at_instant += 1
            if self._steps_at_instant > STEPS_PER_INSTANT_MAX:
                raise SimLivelock(f"{self._steps_at_instant} rounds at {self._now:.6f}, next {self._ready!r}")
            return
        self._steps_at_instant = 0
        self._now = max(self._now, self._scheduled[0].when())
        if self._deadline is not None and self._now > self._deadline:
            self._deadline = None
            raise SimDeadline("not done at the deadline\n" + self.waiting_tasks())

    def waiting_tasks(self) -> str:
        """One line per unfinished task of the living: its name and where it waits."""
        lines = []
        for task in sorted(asyncio.all_tasks(self), key=number_of):
            process = task.process if isinstance(task, SimTask) else None
            if process is not None and not process.is_alive:
                continue
            stack = task.get_stack(limit=1)
            where = f"{stack[0].f_code.co_filename}:{stack[0].f_lineno}" if stack else "not started"
            lines.append(f"  {process.name if process else '-'} {task.get_name()} at {where}")
        return "\n".join(lines)

    def reap(self, process: SimProcess) -> None:
        """Close the coroutines of a dead process; their ports are dead, so this reaches nothing."""
        assert not process.is_alive
        self._is_reaping = True
        for task in sorted(process.tasks, key=number_of):
            if isinstance(task, SimTask) and not task.done():
                task.forget()
                with contextlib.suppress(BaseException):  # whatever dead code raises has no meaning
                    task.get_coro().close()
        self._is_reaping = False
        for key in [key for key in self._threads if key[0] is process]:
            del self._threads[key]

    def thaw(self, process: SimProcess) -> None:
        """Let a frozen process go on with what it missed."""
        self._ready.extend(process.thaw())

    def kernel_soon(self, callback: Callable[..., object], *args: object) -> asyncio.Handle:
        """Schedule an event of the outside world: it belongs to no process."""
        return self.call_soon(callback, *args, context=_KERNEL)

    def kernel_at(self, when: float, callback: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        return self.call_at(when, callback, *args, context=_KERNEL)

    def kernel_later(
        self, seconds: float, callback: Callable[..., object], *args: object
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + seconds, callback, *args, context=_KERNEL)

    # What the base class and asyncio ask of a loop.

    @override
    def call_soon(
        self,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        self._check_open()
        handle = SimHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    @override
    def call_soon_threadsafe(
        self,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    @override
    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_open()
        handle = SimTimer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, handle)
        handle.mark_scheduled()
        return handle

    @override
    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self, number=self._next_number())

    @override
    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        self._check_open()
        number = self._next_number()
        return SimTask(
            coro,
            loop=self,
            name=f"task-{number}" if name is None else str(name),
            context=contextvars.copy_context() if context is None else context,
            number=number,
        )

    @override
    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Run `func` inline, in the middle of the time that its simulated thread is busy with it."""
        process = PROCESS.get()
        count: int = DEFAULT_EXECUTOR_THREADS if executor is None else getattr(executor, "_max_workers", 1)
        threads = self._threads.setdefault((process, executor), _Threads(count))
        before, after = self._executor_time(self._rng)
        start = threads.book(self._now, before + after)
        future: asyncio.Future[T] = self.create_future()
        self.call_at(start + before, self._run_on_thread, func, args, start + before + after, future)
        return future

    def _run_on_thread(
        self, func: Callable[..., T], args: tuple[object, ...], done_at: float, future: asyncio.Future[T]
    ) -> None:
        """The function runs even when its caller has stopped waiting, as on a real thread."""
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - a thread hands every error to the one who waits
            self.call_at(done_at, _finish, future, None, error)
        else:
            self.call_at(done_at, _finish, future, result, None)

    @override
    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        **_options: object,
    ) -> asyncio.AbstractServer:
        assert self.network is not None, "this loop has no network"
        return await self.network.serve(protocol_factory, host or "0.0.0.0", port or 0)  # noqa: S104

    @override
    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        **_options: object,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        assert self.network is not None, "this loop has no network"
        return await self.network.connect(protocol_factory, host or "127.0.0.1", port or 0)

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Event loop is closed")

    def _process_events(self, event_list: list[object]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """There is no other thread to wake."""

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        """Generators of the living are closed as asyncio does it; those of the dead are let go."""
        process = PROCESS.get()
        if self._closed or self._is_reaping or (process is not None and not process.is_alive):
            return
        self.call_soon(self.create_task, agen.aclose())


def _finish(future: asyncio.Future[T], result: T, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        future.exception()  # retrieved here, since whoever waits may be cancelled at this very moment


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Errors that nobody caught fail the run, unless they come from code of a dead process."""
    assert isinstance(loop, SimLoop)
    process = PROCESS.get()
    task = context.get("task") or context.get("future")
    if isinstance(task, SimTask | SimFuture):
        process = task.process
    error = context.get("exception")
    if isinstance(error, Killed) or (process is not None and not process.is_alive):
        return
    loop.unhandled.append(_describe(context.get("message", ""), error))


def _describe(message: str, error: BaseException | None) -> str:
    if error is None:
        return message
    return message + "\n" + "".join(traceback.format_exception(error))
