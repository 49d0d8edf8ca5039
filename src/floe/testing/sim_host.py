"""The machine that runs brokers: starts an incarnation, sees it die, starts the next on what was durable.

What survives a death is decided by hooks that run at that moment: the key-value map and the disk forget what
was not synced, the network cuts the connections, the object server goes on.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from floe.metadata.api import Metadata
from floe.model.errors import FloeError
from floe.server.errors import CannotStart
from floe.testing.sim_loop import SimLoop
from floe.testing.sim_network import SimNetwork
from floe.testing.sim_process import Killed, SimProcess
from floe.testing.sim_trace import Trace

FAILED_STARTS_MAX = 40  # one after the other
STOP_SECONDS_MAX = 60.0  # a clean stop that takes longer ends in a kill
DOWN_SECONDS_MEAN = 0.3


class CannotStartAgain(RuntimeError):
    """The broker does not come up any more, however often it is started."""


class RunningBroker(Protocol):
    """The little that the world asks of a broker besides its front door."""

    cluster_id: str

    @property
    def metadata(self) -> Metadata: ...

    async def start(self) -> None: ...

    async def stop(self, *, drain: bool) -> None: ...


@dataclass(slots=True)
class Incarnation:
    """One life of the broker."""

    process: SimProcess
    died: asyncio.Future[None]
    broker: RunningBroker | None = None
    is_up: bool = False


class BrokerHost:
    """Keeps one broker running until it is told to stop doing so."""

    def __init__(
        self,
        loop: SimLoop,
        rng: Random,
        trace: Trace,
        network: SimNetwork,
        build: Callable[[SimProcess], RunningBroker],
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._trace = trace
        self._network = network
        self._build = build  # called as code of the process
        self._count = 0
        self._supervisor: asyncio.Task[None] | None = None
        self.current: Incarnation | None = None
        self.deaths: list[str] = []
        self._failures_in_a_row = 0
        self.failed_stops: list[str] = []

    def start(self) -> None:
        self._supervisor = self._loop.create_task(self._supervise(), name="host")

    async def over(self) -> None:
        """Raise `CannotStartAgain` when that is so; waits until then."""
        assert self._supervisor is not None
        await asyncio.shield(self._supervisor)

    async def stop(self) -> None:
        """End supervision and the broker; nothing restarts it."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
        self.end()

    def end(self) -> None:
        """Kill and reap whatever runs; harmless when repeated, and outside the loop."""
        if self.current is not None:
            self.current.process.kill("the world ends")
            self._loop.reap(self.current.process)

    async def running(self) -> Incarnation:
        """Wait until an incarnation is up."""
        while True:
            current = self.current
            if current is not None and current.is_up and current.process.is_alive:
                return current
            await asyncio.sleep(0.01)

    def kill(self, reason: str) -> None:
        if self.current is not None:
            self.current.process.kill(reason)

    async def restart(self) -> Incarnation:
        """Kill the broker and wait for the next incarnation: nothing cached survives."""
        before = await self.running()
        before.process.kill("restart")
        await asyncio.sleep(0.001)
        return await self.running()

    async def stop_cleanly(self) -> None:
        """As SIGTERM does, then a kill when it takes too long; goes on when the caller is cancelled."""
        await asyncio.wait([self._loop.create_task(self._stop_cleanly(), name="stop cleanly")])

    async def _stop_cleanly(self) -> None:
        current = self.current
        if current is None or current.broker is None or not (current.is_up and current.process.is_alive):
            return
        self._trace.add(f"stop {current.process.name}")
        stop = current.process.start(self._loop, current.broker.stop(drain=True), "stop")
        done, _ = await asyncio.wait(
            {stop, current.died}, timeout=STOP_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
        )
        if stop in done and not isinstance(stop.exception(), Killed | None):
            self.failed_stops.append(f"{current.process.name}: {stop.exception()!r}")
        current.process.kill("clean stop" if stop in done else "stop took too long")

    async def _supervise(self) -> None:
        while True:
            await self._live_once()
            await asyncio.sleep(self._rng.expovariate(1 / DOWN_SECONDS_MEAN))

    async def _live_once(self) -> None:
        self._count += 1
        process = SimProcess(f"broker-{self._count}")
        self.current = current = Incarnation(process, self._loop.create_future())
        process.when_killed(lambda: self._died(current))
        self._trace.add(f"start {process.name}")
        boot = process.start(self._loop, self._boot(current), "boot")
        await asyncio.wait({boot, current.died}, return_when=asyncio.FIRST_COMPLETED)
        if boot.done():
            self._check_boot(boot, process)
        current.is_up = process.is_alive
        await current.died
        self._loop.reap(process)

    async def _boot(self, current: Incarnation) -> None:
        current.broker = self._build(current.process)
        await current.broker.start()

    def _check_boot(self, boot: asyncio.Task[None], process: SimProcess) -> None:
        """A broker that cannot start exits; the supervisor tries again."""
        error = boot.exception()
        if error is None:
            self._failures_in_a_row = 0
            return
        if not isinstance(error, FloeError | CannotStart):
            raise error
        process.kill(f"failed to start: {error}")
        self._failures_in_a_row += 1
        if self._failures_in_a_row > FAILED_STARTS_MAX:
            raise CannotStartAgain(str(error))

    def _died(self, current: Incarnation) -> None:
        process = current.process
        self._trace.add(f"dead {process.name} after {process.calls} calls, {process.death_reason}")
        self.deaths.append(f"{self._loop.time():.3f} {process.name} {process.death_reason}")
        self._network.kill(process)
        self._loop.kernel_soon(_tell, current.died)


def _tell(died: asyncio.Future[None]) -> None:
    if not died.done():
        died.set_result(None)
