"""The nemesis: what goes wrong in a world, when, by the options drawn from the seed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from floe.testing.sim_host import BrokerHost
from floe.testing.sim_loop import SimLoop
from floe.testing.sim_network import SimNetwork
from floe.testing.sim_objects import ObjectFaults, SimObjectServer
from floe.testing.sim_options import SimOptions
from floe.testing.sim_trace import Trace

CALLS_AHEAD_MAX = 60
STEPS_AHEAD_MAX = 400
FREEZE_SECONDS_MAX = 8.0


class Nemesis:
    """Starts one task per kind of fault; `stop` ends them and heals what can be healed."""

    def __init__(
        self,
        loop: SimLoop,
        rng: Random,
        trace: Trace,
        options: SimOptions,
        host: BrokerHost,
        network: SimNetwork,
        objects: SimObjectServer,
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._trace = trace
        self._options = options
        self._host = host
        self._network = network
        self._objects = objects
        self._tasks: list[asyncio.Task[None]] = []
        self.counts: dict[str, int] = {}
        self.slowness = 1.0  # stretches the time between faults

    def start(self) -> None:
        self._network.silence_chance = self._options.silence_chance
        for name, interval, action in (
            ("power cut", self._options.power_cut_interval, self._power_cut),
            ("kill at call", self._options.kill_at_call_interval, self._kill_at_call),
            ("kill at step", self._options.kill_at_step_interval, self._kill_at_step),
            ("reset", self._options.reset_interval, self._reset),
            ("silence", self._options.silence_interval, self._silence),
            ("outage", self._options.outage_interval, self._outage),
            ("clean stop", self._options.clean_stop_interval, self._clean_stop),
            ("freeze", self._options.freeze_interval, self._freeze),
        ):
            if interval:
                work = self._repeat(name, interval, action)
                self._tasks.append(self._loop.create_task(work, name=f"nemesis {name}"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._network.silence_chance = 0.0
        self._objects.faults = ObjectFaults(latency=self._options.object_faults.latency)
        self._trace.add("nemesis stopped")

    async def _repeat(self, name: str, interval: float, action: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(self._rng.expovariate(1 / interval) * self.slowness)
            self._trace.add(f"nemesis {name}")
            self.counts[name] = self.counts.get(name, 0) + 1
            work = action()
            if asyncio.iscoroutine(work):
                await work

    def _power_cut(self) -> None:
        self._host.kill("power cut")

    def _kill_at_call(self) -> None:
        if self._host.current is not None:
            process = self._host.current.process
            process.die_at_call = process.calls + self._rng.randint(1, CALLS_AHEAD_MAX)

    def _kill_at_step(self) -> None:
        if self._host.current is not None:
            process = self._host.current.process
            process.die_at_step = process.steps + self._rng.randint(1, STEPS_AHEAD_MAX)

    async def _clean_stop(self) -> None:
        await self._host.stop_cleanly()

    async def _freeze(self) -> None:
        """As SIGSTOP and, some time later, SIGCONT."""
        if self._host.current is None:
            return
        process = self._host.current.process
        process.freeze()
        try:
            await asyncio.sleep(self._rng.uniform(0.01, FREEZE_SECONDS_MAX))
        finally:
            self._loop.thaw(process)

    def _reset(self) -> None:
        connections = self._network.connections()
        if connections:
            self._network.reset(self._rng.choice(connections))

    def _silence(self) -> None:
        connections = self._network.connections()
        if connections:
            up, down = self._rng.choice([(True, True), (True, False), (False, True)])
            self._network.silence(self._rng.choice(connections), up=up, down=down)

    async def _outage(self) -> None:
        """For some seconds every request to the object store fails, with or without effect."""
        usual = self._objects.faults
        self._objects.faults = replace(usual, lost=0.6, ambiguous=0.4, late=0.0)
        try:
            await asyncio.sleep(self._rng.uniform(0.1, self._options.outage_seconds))
        finally:
            self._objects.faults = usual
