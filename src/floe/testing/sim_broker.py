"""Builds the real broker for each incarnation, on simulated media that outlive it."""

from random import Random

from floe.config.settings import Settings
from floe.metadata.store.local import LocalStore
from floe.metadata.store.memory import CommitFault, MemoryDisk, MemoryStore
from floe.metadata.store.port import Store, Write
from floe.model.ids import VnodeId
from floe.observability.metrics import Metrics
from floe.server.broker import Broker
from floe.server.parts import Parts
from floe.storage.objects.files import FileObjects
from floe.storage.objects.instrumented import InstrumentedObjects
from floe.storage.objects.port import Objects
from floe.storage.objects.retrying import RetryingObjects
from floe.testing.sim_disk import SimDisk
from floe.testing.sim_files import Gate, GatedDisk
from floe.testing.sim_loop import TIME_AT_START, SimLoop
from floe.testing.sim_objects import SimObjects, SimObjectServer
from floe.testing.sim_options import SimOptions
from floe.testing.sim_process import SimProcess
from floe.testing.sim_store import GatedStore, KeyValueDisk
from floe.testing.sim_trace import Trace

UNHEALTHY_SECONDS_MAX = 3.0  # until the orchestrator restarts it
EPOCH_MS = 1_760_000_000_000  # wall clock at the start of every world


class SimClock:
    """Virtual time; the wall clock of an incarnation may be off by `offset_ms`."""

    def __init__(self, loop: SimLoop, offset_ms: int = 0) -> None:
        self._loop = loop
        self._offset_ms = offset_ms

    def now_ms(self) -> int:
        return EPOCH_MS + int((self._loop.time() - TIME_AT_START) * 1000) + self._offset_ms

    def monotonic(self) -> float:
        return self._loop.time()


class BrokerBuilder:
    """Owns what is durable: objects, disk, metadata."""

    def __init__(
        self, loop: SimLoop, rng: Random, trace: Trace, options: SimOptions, address: tuple[str, int]
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._trace = trace
        self._options = options
        self._settings = _settings(options, address)
        self._memory_disk = MemoryDisk(options.vnodes)
        self._key_values = KeyValueDisk(rng, trace)
        self._gate: Gate | None = None
        self.disk = SimDisk(rng)
        self.object_server = SimObjectServer(loop, rng, trace, SimClock(loop), options.object_faults)
        self.is_healed = False

    def build(self, process: SimProcess) -> Broker:
        """Runs as code of the process."""
        jump = 0 if self.is_healed else self._options.clock_jump_ms
        clock = SimClock(self._loop, self._rng.randint(-jump, jump))
        rng = Random(self._rng.getrandbits(64))  # noqa: S311
        metrics = Metrics()
        objects = InstrumentedObjects(self._objects(process), clock=clock, metrics=metrics)
        parts = Parts(
            clock=clock,
            random=rng,
            objects=RetryingObjects(objects, clock=clock, random=rng, metrics=metrics),
            store=GatedStore(self._store(process), process, self._trace),
            metrics=metrics,
        )
        return Broker(self._settings, parts)

    def heal(self) -> None:
        """No faults from here on, except deaths."""
        self.is_healed = True
        if self._gate is not None:
            self._gate.error_chance = 0.0

    def object_keys(self) -> frozenset[str]:
        """What the object store holds now."""
        if self._options.objects == "server":
            return self.object_server.keys()
        return frozenset(self.disk._names)

    def _objects(self, process: SimProcess) -> Objects:
        if self._options.objects == "server":
            return SimObjects(self.object_server, process)
        process.when_killed(self.disk.crash)
        chance = 0.0 if self.is_healed else self._options.disk_error_chance
        self._gate = Gate(process, self._rng, self._trace, chance)
        return FileObjects(GatedDisk(self.disk, self._gate))

    def _store(self, process: SimProcess) -> Store:
        if self._options.store == "local":
            kv = self._key_values.open(process, fails=self._sync_fails, failed=self._is_unhealthy)
            return LocalStore(kv, self._options.vnodes)
        store = MemoryStore(
            disk=self._memory_disk,
            random=Random(self._rng.getrandbits(64)),  # noqa: S311
            delay_seconds_max=0.02 if self._options.disk_slow else 0.002,
        )
        store.faults = self._commit_fault
        return store

    def _sync_fails(self) -> bool:
        chance = 0.0 if self.is_healed else self._options.sync_fault_chance
        return chance > 0 and self._rng.random() < chance

    def _is_unhealthy(self, process: SimProcess) -> None:
        """A broker that lost its metadata store says so in /healthz, and is restarted by whoever looks."""
        seconds = self._rng.uniform(0, UNHEALTHY_SECONDS_MAX)
        self._loop.kernel_later(seconds, process.kill, "unhealthy")

    def _commit_fault(self, vnode: VnodeId, _writes: "list[Write] | object") -> CommitFault | None:
        if self.is_healed or self._rng.random() >= self._options.commit_fault_chance:
            return None
        fault = self._rng.choice(list(CommitFault))
        self._trace.add(f"store commit of {vnode} {fault.value}")
        return fault


def _settings(options: SimOptions, address: tuple[str, int]) -> Settings:
    values: dict[str, object] = {
        "listeners": f"{address[0]}:{address[1]}",
        "http.listen": "off",
        "native.listen": "off",
        "metadata.store": "memory",
        "auto.create.topics.enable": False,
    }
    if options.objects == "server":  # as a cloud store is tuned by default
        values |= {
            "produce.commit.min.interval.ms": 100,
            "produce.uploads.eager": 4,
            "produce.uploads.max": 16,
        }
    return Settings.of(values)
