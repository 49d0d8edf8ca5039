"""A simulated object store: a server that outlives every broker, and one client port per incarnation.

A request travels, takes effect at the server, and the answer travels back. Either way may be slow; the
request may be lost, or the answer (an ambiguous PUT), or the request comes after its sender gave up or died.
Bodies are gathered when the request arrives, so a body that changes under way is found out.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, TypeVar

from floe.model.errors import FloeError, Unavailable
from floe.observability.clock import Clock
from floe.storage.objects.memory import MemoryObjects
from floe.storage.objects.port import Body, Buffer, ObjectInfo, ObjectWriter
from floe.testing.sim_loop import SimLoop
from floe.testing.sim_process import SimProcess
from floe.testing.sim_trace import Trace

T = TypeVar("T")
LATE_SECONDS_MAX = 5.0
_LIST_PAGE = 100


@dataclass(frozen=True, slots=True)
class ObjectFaults:
    """How the store behaves; times in seconds, the rest chances per request."""

    latency: tuple[float, float] = (0.001, 0.01)
    slow: float = 0.0
    slow_seconds: float = 3.0
    lost: float = 0.0  # Unavailable, without effect
    ambiguous: float = 0.0  # Unavailable, with effect
    late: float = 0.0  # Unavailable, with an effect some time after the answer
    delete_fails: float = 0.0  # per key


class _Fate(Enum):
    FINE = "fine"
    LOST = "lost"
    AMBIGUOUS = "ambiguous"
    LATE = "late"


class SimObjectServer:
    """What is stored; `faults` may be changed at any time."""

    def __init__(self, loop: SimLoop, rng: Random, trace: Trace, clock: Clock, faults: ObjectFaults) -> None:
        self.loop = loop
        self.rng = rng
        self.trace = trace
        self.faults = faults
        self.memory = MemoryObjects(clock)

    def keys(self) -> frozenset[str]:
        return frozenset(self.memory._objects)

    def fate(self) -> _Fate:
        faults, draw = self.faults, self.rng.random()
        for chance, fate in (
            (faults.lost, _Fate.LOST),
            (faults.ambiguous, _Fate.AMBIGUOUS),
            (faults.late, _Fate.LATE),
        ):
            if draw < chance:
                return fate
            draw -= chance
        return _Fate.FINE

    def delay(self) -> float:
        seconds = self.rng.uniform(*self.faults.latency)
        if self.faults.slow and self.rng.random() < self.faults.slow:
            seconds += self.rng.uniform(0, self.faults.slow_seconds)
        return seconds

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        """Some keys fail; of those, some are gone all the same."""
        failed: dict[str, str] = {}
        for key in keys:
            fails = self.faults.delete_fails > 0 and self.rng.random() < self.faults.delete_fails
            if not fails or self.rng.random() < 0.5:
                await self.memory.delete([key])
            if fails:
                failed[key] = "SlowDown"
        return failed

    async def page(self, prefix: str, start_after: str) -> list[ObjectInfo]:
        infos: list[ObjectInfo] = []
        async for info in self.memory.list(prefix, start_after):
            infos.append(info)
            if len(infos) == _LIST_PAGE:
                break
        return infos


class SimObjects:
    """The port of one incarnation."""

    def __init__(self, server: SimObjectServer, process: SimProcess) -> None:
        self._server = server
        self._process = process
        self._calls = 0

    async def put(self, key: str, body: Body) -> None:
        await self._call(f"put {key}", lambda: self._server.memory.put(key, body))

    async def get(self, key: str) -> bytes:
        return await self._call(f"get {key}", lambda: self._server.memory.get(key))

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        return (await self.get_ranges(key, [(position, size)]))[0]

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        return await self._call(f"get {key} {spans}", lambda: self._server.memory.get_ranges(key, spans))

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        for start in range(position, position + size, chunk_bytes):
            yield await self.get_range(key, start, min(chunk_bytes, position + size - start))

    async def head(self, key: str) -> ObjectInfo:
        return await self._call(f"head {key}", lambda: self._server.memory.head(key))

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        return await self._call(f"delete {' '.join(keys)}", lambda: self._server.delete(keys))

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        after = start_after
        while page := await self._list_page(prefix, after):
            for info in page:
                yield info
            after = page[-1].key

    async def _list_page(self, prefix: str, after: str) -> Sequence[ObjectInfo]:
        return await self._call(f"list {prefix} {after}", lambda: self._server.page(prefix, after))

    async def writer(self, key: str) -> ObjectWriter:
        return _SimWriter(self, key)

    async def close(self) -> None:
        """The server goes on."""

    async def _call(self, what: str, effect: Callable[[], Coroutine[Any, Any, T]]) -> T:
        await self._process.enter_async(what)
        self._calls += 1
        server, loop = self._server, self._server.loop
        name = f"objects {self._process.name}#{self._calls}"
        fate, there, back = server.fate(), server.delay(), server.delay()
        server.trace.add(f"{name} {what}")
        answer: asyncio.Future[T] = loop.create_future()
        if fate is _Fate.LATE:
            loop.kernel_later(there + back, self._answer, name, answer, None, _unavailable(fate))
            there += back + server.rng.uniform(0, LATE_SECONDS_MAX)
        loop.kernel_later(there, self._arrive, name, effect, fate, back, answer)
        return await answer

    def _arrive(
        self,
        name: str,
        effect: Callable[[], Coroutine[Any, Any, T]],
        fate: _Fate,
        back: float,
        answer: asyncio.Future[T],
    ) -> None:
        """A request whose sender died under way may be cut off."""
        server = self._server
        if not self._process.is_alive and server.rng.random() < 0.5:
            server.trace.add(f"{name} cut off")
            return
        result: T | None = None
        error: FloeError | None = None
        if fate is not _Fate.LOST:
            try:
                result = _at_once(effect())
            except FloeError as failure:
                error = failure
        if fate is not _Fate.FINE:
            error = _unavailable(fate)
        if fate is not _Fate.LATE:
            server.loop.kernel_later(back, self._answer, name, answer, result, error)

    def _answer(
        self, name: str, answer: asyncio.Future[T], result: T | None, error: FloeError | None
    ) -> None:
        self._server.trace.add(f"{name} {error.__class__.__name__ if error else 'done'}")
        if answer.done() or not self._process.is_alive:
            return
        if error is not None:
            answer.set_exception(error)
            answer.exception()  # retrieved here, since the asker may be cancelled at this very moment
        else:
            answer.set_result(result)  # type: ignore[arg-type]


class _SimWriter:
    """Gathers pieces and puts them at commit."""

    def __init__(self, objects: SimObjects, key: str) -> None:
        self._objects = objects
        self._key = key
        self._pieces: list[bytes] = []

    async def write(self, data: Buffer) -> None:
        self._pieces.append(bytes(data))

    async def commit(self) -> None:
        await self._objects.put(self._key, self._pieces)

    async def abort(self) -> None:
        self._pieces.clear()


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("the memory store never waits")


def _unavailable(fate: _Fate) -> Unavailable:
    return Unavailable(f"simulated object store: {fate.value}")
