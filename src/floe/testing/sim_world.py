"""One simulated world, from one seed: the real broker, its clients, what goes wrong, and the verdict.

Phases: faults for a while; then everything heals and producers finish; the broker is killed once more, so
that nothing is judged from a cache; every partition is read whole; time passes until garbage must be gone;
everything is read again. Then the checker judges the history and the object store.
"""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any, TextIO

from floe.metadata.api import FindRequest
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError
from floe.model.ids import Offset, object_key
from floe.testing.checker import Anomaly, check_history, check_objects
from floe.testing.sim_admin import Churn, SimAdmin
from floe.testing.sim_broker import BrokerBuilder
from floe.testing.sim_client import ClientEnv
from floe.testing.sim_consumer import FinalReader, SimConsumer, SimProber
from floe.testing.sim_history import History, Partition
from floe.testing.sim_host import BrokerHost, CannotStartAgain, Incarnation
from floe.testing.sim_logs import collected_logs
from floe.testing.sim_loop import SimDeadline, SimDeadlock, SimLivelock, SimLoop
from floe.testing.sim_nemesis import Nemesis
from floe.testing.sim_network import SimNetwork
from floe.testing.sim_options import SimOptions, draw_options
from floe.testing.sim_producer import Load, SimProducer
from floe.testing.sim_trace import Trace
from floe.testing.sim_transport import LinkConditions
from floe.wire.kafka.apis import SERVED, ApiKey

HOST, PORT = "127.0.0.1", 9092
QUIET_REQUEST_SECONDS = 40.0  # more than the broker takes to give up on anything
QUIET_SECONDS_MAX = 600.0  # for everything to finish once faults have stopped
GARBAGE_SECONDS_MIN = 15 * 60.0  # buckets are closed and judged, grace periods end
GARBAGE_SECONDS_MAX = 2 * 3600.0  # and at the end of this nothing unreferenced may be left
GARBAGE_SECONDS_STEP = 5 * 60.0
CLIENT_SLOWNESS, NEMESIS_SLOWNESS = 150.0, 8.0  # during a lull
ROWS_BYTES = 1 << 30


@dataclass(slots=True)
class Verdict:
    """What a run showed."""

    seed: int
    options: SimOptions
    digest: str
    events: int
    anomalies: list[Anomaly]
    problems: list[str]
    history: History
    deaths: list[str]
    faults: dict[str, int]
    trace_tail: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.anomalies and not self.problems

    def summary(self) -> str:
        acked = sum(1 for send in self.history.sends if send.ended is not None)
        return (
            f"{len(self.history.sends)} sends ({acked} settled), {len(self.history.polls)} polls, "
            f"{len(self.history.bounds)} bounds, {len(self.history.trims)} trims, {len(self.deaths)} deaths, "
            f"{self.events} events, trace {self.digest[:16]}"
        )


class World:
    """Everything of one run; used once."""

    def __init__(self, seed: int, options: SimOptions | None = None, sink: TextIO | None = None) -> None:
        self.seed = seed
        self.options = options or draw_options(seed)
        self.loop = SimLoop(self.rng("loop"), _slow_disk if self.options.disk_slow else _quick_disk)
        self.trace = Trace(self.loop.time, sink=sink)
        self.links = self.options.links
        self.network = SimNetwork(self.loop, self.rng("network"), self.trace, lambda: self.links)
        self.history = History()
        self.env = ClientEnv(self.loop, self.history, self.trace, HOST, PORT, self.options.request_seconds)
        if ApiKey.DELETE_RECORDS not in SERVED:
            self.env.delete_records = self._delete_records
        self.builder = BrokerBuilder(self.loop, self.rng("broker"), self.trace, self.options, (HOST, PORT))
        self.host = BrokerHost(self.loop, self.rng("host"), self.trace, self.network, self.builder.build)
        self.nemesis = Nemesis(
            self.loop,
            self.rng("nemesis"),
            self.trace,
            self.options,
            self.host,
            self.network,
            self.builder.object_server,
        )
        self.partitions: tuple[Partition, ...] = tuple(
            (name, index) for name, count in self.options.topics for index in range(count)
        )
        self._object_anomalies: list[Anomaly] = []

    def rng(self, name: str) -> Random:
        """A stream of its own for each part, so that a draw more in one does not change the others."""
        return Random(f"{self.seed} {name}")  # noqa: S311

    def run(self) -> Verdict:
        busy = 2 * self.options.seconds + self.options.lull_seconds
        limit = busy + 6 * QUIET_SECONDS_MAX + GARBAGE_SECONDS_MAX
        problems: list[str] = []
        try:
            with collected_logs(self._logged):
                self.loop.run(self._live_while_possible(), seconds=limit)
        except (SimDeadlock, SimDeadline, SimLivelock, CannotStartAgain) as error:
            problems.append(f"no progress: {error}")
        finally:
            self.host.end()
            self.loop.close()
        anomalies = check_history(self.history) + self._object_anomalies
        problems += self.env.problems
        problems += [f"unhandled: {text}" for text in self.loop.unhandled]
        problems += [f"failed stop: {text}" for text in self.host.failed_stops]
        return Verdict(
            self.seed,
            self.options,
            self.trace.digest,
            self.trace.count,
            anomalies,
            problems,
            self.history,
            self.host.deaths,
            self.nemesis.counts,
            list(self.trace.tail),
        )

    def _logged(self, level: str, text: str) -> None:
        self.trace.add(f"log {level} {text}")
        if level in ("error", "exception", "critical"):
            self.env.problem(f"logged: {text}")

    async def _live_while_possible(self) -> None:
        self.host.start()
        life = self.loop.create_task(self._live(), name="life")
        over = self.loop.create_task(self.host.over(), name="over")
        await asyncio.wait({life, over}, return_when=asyncio.FIRST_COMPLETED)
        life.cancel()
        over.cancel()
        await asyncio.wait({life, over})
        for task in (life, over):
            if not task.cancelled():
                task.result()

    async def _live(self) -> None:
        admin = SimAdmin(self.env, "admin", self.rng("admin"))
        for name, count in self.options.topics:
            await admin.create(name, count)
        admin.close()
        await self._faulty_phase()
        await self.host.restart()
        await self._read_everything("final-1")
        await self._await_garbage()
        await self.host.restart()
        await self._read_everything("final-2")
        await self.host.stop()

    async def _faulty_phase(self) -> None:
        clients = self._clients()
        tasks = [self.loop.create_task(client.run(), name=f"client {n}") for n, client in enumerate(clients)]
        self.nemesis.start()
        await asyncio.sleep(self.options.seconds)
        if self.options.lull_seconds:
            await self._lull()
        await self.nemesis.stop()
        self.builder.heal()
        self.links = LinkConditions()
        self.env.request_seconds = QUIET_REQUEST_SECONDS
        for client in clients:
            client.stop()
        done, late = await asyncio.wait(tasks, timeout=QUIET_SECONDS_MAX)
        for task in done:
            task.result()
        for task in late:
            self.env.problem(f"{task.get_name()} has not finished {QUIET_SECONDS_MAX} s after the last fault")
            task.cancel()

    async def _lull(self) -> None:
        """Time in which little happens but what the broker does by itself; then all is busy again."""
        self.trace.add("lull")
        self.env.slowness, self.nemesis.slowness = CLIENT_SLOWNESS, NEMESIS_SLOWNESS
        await asyncio.sleep(self.options.lull_seconds)
        self.env.slowness, self.nemesis.slowness = 1.0, 1.0
        await asyncio.sleep(self.options.seconds / 2)

    def _clients(self) -> "list[SimProducer | SimConsumer | SimProber | Churn]":
        options, env, rng = self.options, self.env, self.rng
        load = Load(
            self.partitions,
            pause=options.pause,
            size_max=options.size_max,
            give_up_chance=options.give_up_chance,
        )
        names = [f"p{n}" for n in range(options.producers)]
        plain = [f"q{n}" for n in range(options.plain_producers)]
        readers = [f"c{n}" for n in range(options.consumers)]
        seek, trim = options.seek_chance, options.trim_chance
        clients: list[SimProducer | SimConsumer | SimProber | Churn] = [
            *(SimProducer(env, name, rng(name), load, idempotent=True) for name in names),
            *(SimProducer(env, name, rng(name), load, idempotent=False) for name in plain),
            *(SimConsumer(env, name, rng(name), self.partitions, seek_chance=seek) for name in readers),
            SimProber(env, "prober", rng("prober"), self.partitions, trim_chance=trim),
        ]
        if options.churn_interval:
            clients.append(Churn(env, rng("churn"), options.churn_interval))
        return clients

    async def _read_everything(self, name: str) -> None:
        await self.host.running()
        reader = FinalReader(self.env, name, self.rng(name))
        for partition in self.partitions:
            try:
                async with asyncio.timeout(QUIET_SECONDS_MAX):
                    await reader.read(partition)
            except TimeoutError:
                self.env.problem(f"{partition} cannot be read {QUIET_SECONDS_MAX} s after the last fault")
        reader.close()

    async def _delete_records(self, topic: str, index: int, before: int) -> bool:
        """Ask the coordinator itself; False when the outcome is unknown."""
        current = await self.host.running()
        work = current.process.start(self.loop, _delete_records(current, topic, index, before), "trim")
        ends: list[asyncio.Future[Any]] = [work, current.died]
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        return work in done and work.result()

    async def _await_garbage(self) -> None:
        """Let time pass until what nothing refers to is gone; judge what is left after long enough."""
        self.trace.add("time passes")
        await asyncio.sleep(GARBAGE_SECONDS_MIN)
        waited = GARBAGE_SECONDS_MIN
        while True:
            self._object_anomalies = await self._judge_objects()
            if not self._object_anomalies or waited >= GARBAGE_SECONDS_MAX:
                return
            await asyncio.sleep(GARBAGE_SECONDS_STEP)
            waited += GARBAGE_SECONDS_STEP

    async def _judge_objects(self) -> list[Anomaly]:
        current = await self.host.running()
        referenced = await current.process.start(self.loop, self._referenced(current), "rows")
        stored = frozenset(key for key in self.builder.object_keys() if "/objects/" in key)
        return check_objects(referenced, stored)

    async def _referenced(self, current: Incarnation) -> dict[str, str]:
        """Every object key that some row names, and which; read from the coordinators themselves."""
        assert current.broker is not None
        metadata = current.broker.metadata
        referenced: dict[str, str] = {}
        for topic in metadata.topics.all():
            for index, range_id in enumerate(topic.ranges):
                offset = Offset(0)
                while True:
                    (view,) = await metadata.find([FindRequest(range_id, offset, ROWS_BYTES)])
                    if offset < view.log_start:
                        offset = view.log_start
                        continue
                    for row in view.rows:
                        if row.object is not None:
                            key = object_key(current.broker.cluster_id, row.object)
                            referenced.setdefault(key, f"{topic.name}-{index} at {row.first}")
                    if not view.rows:
                        break
                    offset = Offset(view.rows[-1].last + 1)
        return referenced


async def _delete_records(current: Incarnation, topic: str, index: int, before: int) -> bool:
    assert current.broker is not None
    metadata = current.broker.metadata
    found = metadata.topics.by_name(topic)
    if found is None:
        return False
    try:
        view = await metadata.delete_records(found.ranges[index], Offset(before))
    except FloeError:
        return False
    return view.error is ErrorCode.NONE


def _quick_disk(rng: Random) -> tuple[float, float]:
    return rng.uniform(0.0, 0.001), rng.uniform(0.0, 0.001)


def _slow_disk(rng: Random) -> tuple[float, float]:
    if rng.random() < 0.02:
        return rng.uniform(0.0, 1.0), rng.uniform(0.0, 1.0)
    return rng.uniform(0.0, 0.01), rng.uniform(0.0, 0.01)
