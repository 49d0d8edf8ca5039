"""Counts and times every call to an object store, by operation and outcome."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TypeVar

from prometheus_client import Counter

from floe.model.errors import Corrupt, FloeError
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.storage.objects.keys import body_size
from floe.storage.objects.port import (
    AlreadyExists,
    Body,
    Buffer,
    Denied,
    ObjectInfo,
    ObjectNotFound,
    Objects,
    ObjectWriter,
)

R = TypeVar("R")


class InstrumentedObjects:
    """Passes everything on; adds metrics only."""

    def __init__(self, inner: Objects, *, clock: Clock, metrics: Metrics) -> None:
        self._inner = inner
        self._clock = clock
        self._metrics = metrics
        self._ops: dict[str, _OpMetrics] = {}

    async def put(self, key: str, body: Body) -> None:
        await self._measured("put", self._inner.put(key, body))
        self._of("put").bytes.inc(body_size(body))

    async def get(self, key: str) -> bytes:
        content = await self._measured("get", self._inner.get(key))
        self._of("get").bytes.inc(len(content))
        return content

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        view = await self._measured("get_range", self._inner.get_range(key, position, size))
        self._of("get_range").bytes.inc(size)
        return view

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        views = await self._measured("get_ranges", self._inner.get_ranges(key, spans))
        self._of("get_ranges").bytes.inc(sum(size for _, size in spans))
        return views

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        received = self._of("stream").bytes
        with self._measuring("stream"):
            async for view in self._inner.stream(key, position, size, chunk_bytes):
                received.inc(len(view))
                yield view

    async def head(self, key: str) -> ObjectInfo:
        return await self._measured("head", self._inner.head(key))

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        return await self._measured("delete", self._inner.delete(keys))

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        with self._measuring("list"):
            async for info in self._inner.list(prefix, start_after):
                yield info

    async def writer(self, key: str) -> ObjectWriter:
        return _InstrumentedWriter(self, await self._measured("writer", self._inner.writer(key)))

    async def close(self) -> None:
        await self._inner.close()

    async def _measured(self, op: str, call: Awaitable[R]) -> R:
        with self._measuring(op):
            return await call

    def _measuring(self, op: str) -> "_Measurement":
        return _Measurement(self._clock, self._of(op))

    def _of(self, op: str) -> "_OpMetrics":
        found = self._ops.get(op)
        if found is None:
            found = self._ops[op] = _OpMetrics(self._metrics, op)
        return found


class _OpMetrics:
    """The metrics of one operation; looking them up by label for every call would cost more than counting."""

    __slots__ = ("_metrics", "_op", "_results", "bytes", "seconds")

    def __init__(self, metrics: Metrics, op: str) -> None:
        self._metrics = metrics
        self._op = op
        self._results: dict[str, Counter] = {}
        self.bytes = metrics.object_bytes.labels(op)
        self.seconds = metrics.object_seconds.labels(op)

    def count(self, result: str) -> None:
        counter = self._results.get(result)
        if counter is None:
            counter = self._results[result] = self._metrics.object_requests.labels(self._op, result)
        counter.inc()


class _Measurement:
    """A context that times what runs in it and counts how it ended."""

    __slots__ = ("_clock", "_op", "_started")

    def __init__(self, clock: Clock, op: _OpMetrics) -> None:
        self._clock = clock
        self._op = op
        self._started = clock.monotonic()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._op.seconds.observe(self._clock.monotonic() - self._started)
        if error is None:
            self._op.count("ok")
        else:
            self._op.count(_result_of(error) if isinstance(error, FloeError) else "cancelled")


class _InstrumentedWriter:
    def __init__(self, objects: InstrumentedObjects, inner: ObjectWriter) -> None:
        self._objects = objects
        self._inner = inner

    async def write(self, data: Buffer) -> None:
        await self._objects._measured("write", self._inner.write(data))
        self._objects._of("write").bytes.inc(body_size([data]))

    async def commit(self) -> None:
        await self._objects._measured("commit", self._inner.commit())

    async def abort(self) -> None:
        await self._objects._measured("abort", self._inner.abort())


def _result_of(error: FloeError) -> str:
    match error:
        case ObjectNotFound():
            return "not_found"
        case AlreadyExists():
            return "exists"
        case Corrupt():
            return "corrupt"
        case Denied():
            return "denied"
        case _:
            return "unavailable"
