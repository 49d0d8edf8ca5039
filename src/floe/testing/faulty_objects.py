"""An object store that fails on purpose: by chance from a seed, or by script.

Every call first asks the script (`fail`), then chance (`rates`), what is to happen:

- BEFORE: `Unavailable`, nothing was done;
- AFTER: the call is done, then `Unavailable`: the put whose outcome is unknown;
- SHORT: a read returns fewer bytes than asked, as a broken proxy does; on other calls the same as BEFORE;
- SLOW: the call waits first (`asyncio.sleep`, so the simulator's clock rules it);
- PARTIAL: a delete leaves some keys and reports them; on other calls the same as BEFORE.

`before` and `after` are hooks for tests that must act at a certain moment; they get operation and key.
"""

import asyncio
import enum
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from floe.model.errors import Unavailable
from floe.storage.objects.port import Body, Buffer, ObjectInfo, Objects, ObjectWriter

R = TypeVar("R")
Hook = Callable[[str, str], Awaitable[None]]


class Fault(enum.Enum):
    BEFORE = "before"
    AFTER = "after"
    SHORT = "short"
    SLOW = "slow"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """Chance of each fault per call, tried in this order; the sum should stay below one."""

    before: float = 0.0
    after: float = 0.0
    short: float = 0.0
    slow: float = 0.0
    partial: float = 0.0
    slow_seconds_max: float = 1.0


@dataclass(slots=True)
class _Script:
    faults: deque[Fault | None] = field(default_factory=deque)


class FaultyObjects:
    """Wraps a store; without rates, script or hooks it changes nothing."""

    def __init__(self, inner: Objects, *, random: Random, rates: FaultRates | None = None) -> None:
        self.inner = inner
        self.rates = rates or FaultRates()
        self.calls: Counter[str] = Counter()
        self.faults: Counter[Fault] = Counter()
        self.before: Hook | None = None
        self.after: Hook | None = None
        self._random = random
        self._scripts: dict[str, _Script] = {}

    def fail(self, op: str, *faults: Fault | None) -> None:
        """The next calls of `op` meet these faults, one each; None lets a call pass untouched."""
        self._scripts.setdefault(op, _Script()).faults.extend(faults)

    async def put(self, key: str, body: Body) -> None:
        await self._call("put", key, lambda: self.inner.put(key, body))

    async def get(self, key: str) -> bytes:
        fault = await self._enter("get", key)
        content = await self._finish("get", key, fault, self.inner.get(key))
        return content[: len(content) // 2] if fault is Fault.SHORT else content

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        fault = await self._enter("get_range", key)
        view = await self._finish("get_range", key, fault, self.inner.get_range(key, position, size))
        return view[: size // 2] if fault is Fault.SHORT else view

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        fault = await self._enter("get_ranges", key)
        views = await self._finish("get_ranges", key, fault, self.inner.get_ranges(key, spans))
        return [*views[:-1], views[-1][: len(views[-1]) // 2]] if fault is Fault.SHORT and views else views

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        """AFTER and SHORT break the stream after its first piece."""
        fault = await self._enter("stream", key)
        async for view in self.inner.stream(key, position, size, chunk_bytes):
            yield view
            if fault in (Fault.AFTER, Fault.SHORT):
                raise Unavailable(f"injected: the stream broke. key={key}")

    async def head(self, key: str) -> ObjectInfo:
        return await self._call("head", key, lambda: self.inner.head(key))

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        fault = await self._enter("delete", keys[0] if keys else "")
        left = [key for key in keys if self._random.random() < 0.5] if fault is Fault.PARTIAL else []
        gone = [key for key in keys if key not in left]
        failures = await self._finish("delete", "", fault, self.inner.delete(gone))
        return {**failures, **dict.fromkeys(left, "injected: throttled")}

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """AFTER and SHORT break the listing after its first key."""
        fault = await self._enter("list", prefix)
        async for info in self.inner.list(prefix, start_after):
            yield info
            if fault in (Fault.AFTER, Fault.SHORT):
                raise Unavailable(f"injected: the listing broke. prefix={prefix}")

    async def writer(self, key: str) -> ObjectWriter:
        return _FaultyWriter(self, key, await self._call("writer", key, lambda: self.inner.writer(key)))

    async def close(self) -> None:
        await self.inner.close()

    async def _call(self, op: str, key: str, call: Callable[[], Awaitable[R]]) -> R:
        fault = await self._enter(op, key)
        if fault in (Fault.SHORT, Fault.PARTIAL):
            raise Unavailable(f"injected: refused. op={op} key={key}")
        return await self._finish(op, key, fault, call())

    async def _enter(self, op: str, key: str) -> Fault | None:
        self.calls[op] += 1
        if self.before is not None:
            await self.before(op, key)
        fault = self._next_fault(op)
        if fault is not None:
            self.faults[fault] += 1
        if fault is Fault.SLOW:
            await asyncio.sleep(self._random.uniform(0.0, self.rates.slow_seconds_max))
        if fault is Fault.BEFORE:
            raise Unavailable(f"injected: refused. op={op} key={key}")
        return fault

    async def _finish(self, op: str, key: str, fault: Fault | None, call: Awaitable[R]) -> R:
        result = await call
        if self.after is not None:
            await self.after(op, key)
        if fault is Fault.AFTER:
            raise Unavailable(f"injected: done, but the answer was lost. op={op} key={key}")
        return result

    def _next_fault(self, op: str) -> Fault | None:
        script = self._scripts.get(op)
        if script is not None and script.faults:
            return script.faults.popleft()
        rates = self.rates
        draw = self._random.random()
        for fault, rate in (
            (Fault.BEFORE, rates.before),
            (Fault.AFTER, rates.after),
            (Fault.SHORT, rates.short),
            (Fault.SLOW, rates.slow),
            (Fault.PARTIAL, rates.partial),
        ):
            if draw < rate:
                return fault
            draw -= rate
        return None


class _FaultyWriter:
    def __init__(self, objects: FaultyObjects, key: str, inner: ObjectWriter) -> None:
        self._objects = objects
        self._key = key
        self._inner = inner

    async def write(self, data: Buffer) -> None:
        await self._objects._call("write", self._key, lambda: self._inner.write(data))

    async def commit(self) -> None:
        await self._objects._call("commit", self._key, self._inner.commit)

    async def abort(self) -> None:
        await self._inner.abort()
