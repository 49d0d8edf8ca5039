"""Futures, tasks and callbacks of the simulator's loop.

Futures and tasks hash by their number of creation, so that sets of them iterate alike in every run.
A callback runs only while the process it belongs to is alive.
"""

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, TypeVar

from typing_extensions import override

from floe.testing.sim_process import PROCESS

T = TypeVar("T")


class SimFuture(asyncio.Future[T]):
    """A future that hashes by its number and knows its process."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self.number = number
        self.process = PROCESS.get()
        super().__init__(loop=loop)

    @override
    def __hash__(self) -> int:
        return self.number


class SimTask(asyncio.Task[T]):
    """A task that hashes by its number and knows its process."""

    def __init__(
        self,
        work: Coroutine[Any, Any, T],
        *,
        loop: asyncio.AbstractEventLoop,
        name: str,
        context: contextvars.Context,
        number: int,
    ) -> None:
        self.number = number
        self.process = context.get(PROCESS)
        if self.process is not None:
            self.process.tasks.add(self)
        super().__init__(work, loop=loop, name=name, context=context)

    @override
    def __hash__(self) -> int:
        return self.number

    def forget(self) -> None:
        """No complaint when this task is dropped unfinished."""
        self._log_destroy_pending = False


class SimHandle(asyncio.Handle):
    """A callback that does not run when its process is dead."""

    __slots__ = ()
    _context: contextvars.Context

    @override
    def _run(self) -> None:
        process = self._context.get(PROCESS)
        if process is None or process.may_step(self):
            super()._run()


class SimTimer(asyncio.TimerHandle):
    """A timer that does not fire when its process is dead."""

    __slots__ = ()
    _context: contextvars.Context
    _scheduled: bool

    def mark_scheduled(self) -> None:
        """The base loop keeps count of cancelled timers by this mark."""
        self._scheduled = True

    @override
    def _run(self) -> None:
        process = self._context.get(PROCESS)
        if process is None or process.may_step(self):
            super()._run()


def number_of(task: asyncio.Task[Any]) -> int:
    """The order in which tasks were created."""
    return task.number if isinstance(task, SimTask) else 0
