"""An object store that lives as long as its process; for tests, simulation and `memory://`."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Sequence

from floe.observability.clock import Clock, SystemClock
from floe.storage.objects.keys import check_key, check_span, check_spans
from floe.storage.objects.port import AlreadyExists, Body, Buffer, ObjectInfo, ObjectNotFound, ObjectWriter


class MemoryObjects:
    """Every object is one immutable `bytes`; nothing awaits, so every call is atomic."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._objects: dict[str, tuple[bytes, int]] = {}  # key -> content, modified_ms
        self._keys: list[str] = []

    async def put(self, key: str, body: Body) -> None:
        check_key(key)
        if key in self._objects:
            raise AlreadyExists(f"object exists. key={key}")
        self._objects[key] = (b"".join(body), self._clock.now_ms())
        insort(self._keys, key)

    async def get(self, key: str) -> bytes:
        return self._find(key)[0]

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        return (await self.get_ranges(key, [(position, size)]))[0]

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        for position, size in spans:
            check_span(position, size)
        content = self._find(key)[0]
        check_spans(key, spans, len(content))
        view = memoryview(content)
        return [view[position : position + size] for position, size in spans]

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        view = await self.get_range(key, position, size)
        for start in range(0, size, chunk_bytes):
            yield view[start : start + chunk_bytes]

    async def head(self, key: str) -> ObjectInfo:
        content, modified_ms = self._find(key)
        return ObjectInfo(key, len(content), modified_ms)

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        for key in keys:
            if self._objects.pop(check_key(key), None) is not None:
                del self._keys[bisect_left(self._keys, key)]
        return {}

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        after = start_after
        while True:
            # The store may change while the caller holds the iterator, so the place is found anew each time.
            index = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
            if index >= len(self._keys) or not self._keys[index].startswith(prefix):
                return
            after = self._keys[index]
            content, modified_ms = self._objects[after]
            yield ObjectInfo(after, len(content), modified_ms)

    async def writer(self, key: str) -> ObjectWriter:
        check_key(key)
        if key in self._objects:
            raise AlreadyExists(f"object exists. key={key}")
        return _MemoryWriter(self, key)

    async def close(self) -> None:
        """The objects stay: a test may open the same store again."""

    def _find(self, key: str) -> tuple[bytes, int]:
        try:
            return self._objects[check_key(key)]
        except KeyError:
            raise ObjectNotFound(f"no such object. key={key}") from None


class _MemoryWriter:
    def __init__(self, objects: MemoryObjects, key: str) -> None:
        self._objects = objects
        self._key = key
        self._pieces: list[bytes] = []
        self._is_ended = False

    async def write(self, data: Buffer) -> None:
        if self._is_ended:
            raise ValueError("the writer has ended")
        self._pieces.append(bytes(data))

    async def commit(self) -> None:
        if self._is_ended:
            raise ValueError("the writer has ended")
        self._is_ended = True
        await self._objects.put(self._key, self._pieces)

    async def abort(self) -> None:
        self._is_ended = True
        self._pieces.clear()
