"""Counts and times every call to an object store, by operation and outcome."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

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

if TYPE_CHECKING:
    from collections.abc import Iterator

R = TypeVar("R")


class InstrumentedObjects:
    """Passes everything on; adds metrics only."""

    def __init__(self, inner: Objects, *, clock: Clock, metrics: Metrics) -> None:
        self._inner = inner
        self._clock = clock
        self._metrics = metrics

    async def put(self, key: str, body: Body) -> None:
        await self._measured("put", self._inner.put(key, body))
        self._metrics.object_bytes.labels("put").inc(body_size(body))

    async def get(self, key: str) -> bytes:
        content = await self._measured("get", self._inner.get(key))
        self._metrics.object_bytes.labels("get").inc(len(content))
        return content

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        view = await self._measured("get_range", self._inner.get_range(key, position, size))
        self._metrics.object_bytes.labels("get_range").inc(size)
        return view

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        views = await self._measured("get_ranges", self._inner.get_ranges(key, spans))
        self._metrics.object_bytes.labels("get_ranges").inc(sum(size for _, size in spans))
        return views

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        received = self._metrics.object_bytes.labels("stream")
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

    @contextmanager
    def _measuring(self, op: str) -> "Iterator[None]":
        started = self._clock.monotonic()
        result = "cancelled"
        try:
            yield
            result = "ok"
        except FloeError as error:
            result = _result_of(error)
            raise
        finally:
            self._metrics.object_seconds.labels(op).observe(self._clock.monotonic() - started)
            self._metrics.object_requests.labels(op, result).inc()


class _InstrumentedWriter:
    def __init__(self, objects: InstrumentedObjects, inner: ObjectWriter) -> None:
        self._objects = objects
        self._inner = inner

    async def write(self, data: Buffer) -> None:
        await self._objects._measured("write", self._inner.write(data))
        self._objects._metrics.object_bytes.labels("write").inc(body_size([data]))

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
