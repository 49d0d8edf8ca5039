"""A simulated process: everything that one incarnation of a broker does, and the power to end it.

Membership travels in the context: a callback or task created by code of a process belongs to it. A kill is
a `kill -9`: from that moment no callback of the process runs, no port of it has any effect, and its
coroutines are closed (which runs their `finally` blocks) only where they can reach nothing.

A process dies at a moment of virtual time, at its n-th step (any await), or at its n-th port call.
"""

import asyncio
import contextvars
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Killed(BaseException):
    """Raised into code of a dead process by synchronous ports; nobody may rely on catching it."""


class SimProcess:
    """One incarnation; `steps` and `calls` count what it has done so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.steps = 0
        self.calls = 0
        self.die_at_step: int | None = None
        self.die_at_call: int | None = None
        self.death_reason = ""
        self.is_frozen = False
        self._held: list[asyncio.Handle] = []  # steps that came up while frozen
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()  # filled in by the loop
        self._on_death: list[Callable[[], None]] = []

    def start(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], name: str
    ) -> asyncio.Task[T]:
        """Run a coroutine as code of this process."""
        return loop.create_task(work, name=name, context=self.context())

    def context(self) -> contextvars.Context:
        """A fresh context whose callbacks belong to this process."""
        context = contextvars.Context()
        context.run(PROCESS.set, self)
        return context

    def when_killed(self, hook: Callable[[], None]) -> None:
        """Called once, at the moment of death; cuts a port off or decides what survives."""
        self._on_death.append(hook)

    def kill(self, reason: str) -> None:
        """End the process now; harmless when it is dead already."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.death_reason = reason
        hooks, self._on_death = self._on_death, []
        for hook in hooks:
            hook()

    def freeze(self) -> None:
        """As SIGSTOP: no step is taken until `thaw`; the world goes on."""
        self.is_frozen = True

    def thaw(self) -> list[asyncio.Handle]:
        """Let the process go on; returns the steps that it missed, in order."""
        self.is_frozen = False
        held, self._held = self._held, []
        return held

    def may_step(self, step: asyncio.Handle) -> bool:
        """Count one step of the event loop; False when the process is dead, dies here, or is frozen."""
        if not self.is_alive:
            return False
        if self.is_frozen:
            self._held.append(step)
            return False
        self.steps += 1
        if self.steps == self.die_at_step:
            self.kill(f"at step {self.steps}")
            return False
        return True

    def enter(self, call: str) -> None:
        """Count one port call; raises `Killed` when the process is dead, or dies here."""
        if not self.is_alive:
            raise Killed(self.name)
        self.calls += 1
        if self.calls == self.die_at_call:
            self.kill(f"at port call {self.calls}: {call}")
            raise Killed(self.name)

    async def enter_async(self, call: str) -> None:
        """As `enter`, for asynchronous ports: a dead process waits here until it is reaped."""
        try:
            self.enter(call)
        except Killed:
            await asyncio.get_running_loop().create_future()


PROCESS: contextvars.ContextVar[SimProcess | None] = contextvars.ContextVar("floe_sim_process", default=None)
