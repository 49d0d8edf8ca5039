"""Repeats calls that found the store unavailable: full jitter, a bound on attempts and a deadline.

All calls of the port are idempotent but `put`, whose outcome is unknown after `Unavailable`. A repeated put
that then meets `AlreadyExists` most likely meets its own earlier attempt: that is settled by HEAD (the length
must be the same) and, for objects small enough to be names others may race for, by content. Anything else
under the key is somebody else's object and stays `AlreadyExists`.

The body of a put is read anew in every attempt and its length checked against the first, so that a consumed
or changed body is never stored as if it were the object.

Each attempt has a limit of its own; an attempt that is cut off counts as unavailable. `Denied` is final.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from floe.model.errors import Corrupt, Unavailable
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

# Up to here an object is compared by content when its put met itself or a rival.
_COMPARED_BYTES_MAX = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """Defaults: some 8 attempts within half a minute of trouble, fast at first."""

    attempts_max: int = 10
    attempt_seconds: float = 30.0
    deadline_seconds: float = 60.0
    pause_seconds_first: float = 0.05
    pause_seconds_max: float = 5.0


class RetryingObjects:
    """Keeps the port's contract; raises the last error when attempts or time have run out."""

    def __init__(
        self,
        inner: Objects,
        *,
        clock: Clock,
        random: Random,
        metrics: Metrics | None = None,
        settings: RetrySettings | None = None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._random = random
        self._metrics = metrics
        self._settings = settings or RetrySettings()

    async def put(self, key: str, body: Body) -> None:
        size = body_size(body)
        attempts = _Attempts(self, "put")
        while True:
            if body_size(body) != size:
                raise Corrupt(f"the body changed between attempts. key={key} size={size}")
            try:
                await self._put_once(key, body, size, attempts)
            except Unavailable as error:
                await attempts.pause(error)
                continue
            return

    async def _put_once(self, key: str, body: Body, size: int, attempts: "_Attempts") -> None:
        try:
            await attempts.limited(self._inner.put(key, body))
        except AlreadyExists:
            if not attempts.failed or not await self._is_ours(key, body, size):
                raise

    async def _is_ours(self, key: str, body: Body, size: int) -> bool:
        try:
            if (await self.head(key)).size != size:
                return False
            return size > _COMPARED_BYTES_MAX or await self.get(key) == b"".join(body)
        except ObjectNotFound:
            # Refused without an object: a rival's attempt that failed, or a store that is confused.
            raise Unavailable(f"the store says both that the object exists and not. key={key}") from None

    async def get(self, key: str) -> bytes:
        return await self._repeated("get", lambda: self._inner.get(key))

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        return await self._repeated("get_range", lambda: self._inner.get_range(key, position, size))

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        return await self._repeated("get_ranges", lambda: self._inner.get_ranges(key, spans))

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        """A broken stream goes on where it broke; the limits count anew after every piece."""
        done = 0
        attempts = _Attempts(self, "stream")
        while True:
            pieces = self._inner.stream(key, position + done, size - done, chunk_bytes)
            try:
                while (view := await attempts.limited(anext(pieces, None))) is not None:
                    done += len(view)
                    attempts = _Attempts(self, "stream")
                    yield view
            except Unavailable as error:
                await attempts.pause(error)
                continue
            return

    async def head(self, key: str) -> ObjectInfo:
        return await self._repeated("head", lambda: self._inner.head(key))

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        """Only a call that failed as a whole is repeated; single failures are the caller's business."""
        return await self._repeated("delete", lambda: self._inner.delete(keys))

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """A broken listing goes on after the last key; the limits count anew after every key."""
        attempts = _Attempts(self, "list")
        while True:
            infos = self._inner.list(prefix, start_after)
            try:
                while (info := await attempts.limited(anext(infos, None))) is not None:
                    start_after = info.key
                    attempts = _Attempts(self, "list")
                    yield info
            except Unavailable as error:
                await attempts.pause(error)
                continue
            return

    async def writer(self, key: str) -> ObjectWriter:
        return _RetryingWriter(self, key, await self._repeated("writer", lambda: self._inner.writer(key)))

    async def close(self) -> None:
        await self._inner.close()

    async def _repeated(self, op: str, call: Callable[[], Awaitable[R]]) -> R:
        attempts = _Attempts(self, op)
        while True:
            try:
                return await attempts.limited(call())
            except Unavailable as error:
                await attempts.pause(error)


class _Attempts:
    """The attempts of one call: how many failed, and how long the next must wait."""

    __slots__ = ("_deadline", "_objects", "_op", "failed")

    def __init__(self, objects: RetryingObjects, op: str) -> None:
        self._objects = objects
        self._op = op
        self._deadline = objects._clock.monotonic() + objects._settings.deadline_seconds
        self.failed = 0

    async def limited(self, call: Awaitable[R]) -> R:
        left = self._deadline - self._objects._clock.monotonic()
        try:
            async with asyncio.timeout(min(self._objects._settings.attempt_seconds, max(left, 0.0))):
                return await call
        except TimeoutError:
            raise Unavailable(f"the object store did not answer in time. op={self._op}") from None

    async def pause(self, error: Unavailable) -> None:
        """Wait before the next attempt, or raise `error` when there is none."""
        settings = self._objects._settings
        self.failed += 1
        if isinstance(error, Denied) or self.failed >= settings.attempts_max:
            raise error
        ceiling = min(settings.pause_seconds_max, settings.pause_seconds_first * 2 ** (self.failed - 1))
        seconds = self._objects._random.uniform(0.0, ceiling)
        if self._objects._clock.monotonic() + seconds >= self._deadline:
            raise error
        if self._objects._metrics is not None:
            self._objects._metrics.object_retries.labels(self._op).inc()
        await asyncio.sleep(seconds)


class _RetryingWriter:
    """Writes are not repeated: an adapter repeats a part by itself or fails the upload.

    A commit of unknown outcome is settled by HEAD.
    """

    def __init__(self, objects: RetryingObjects, key: str, inner: ObjectWriter) -> None:
        self._objects = objects
        self._key = key
        self._inner = inner
        self._size = 0

    async def write(self, data: Buffer) -> None:
        await self._inner.write(data)
        self._size += body_size([data])

    async def commit(self) -> None:
        try:
            await self._inner.commit()
        except Unavailable as error:
            try:
                info = await self._objects.head(self._key)
            except ObjectNotFound:
                raise error from None
            if info.size != self._size:
                raise error from None

    async def abort(self) -> None:
        await self._inner.abort()
