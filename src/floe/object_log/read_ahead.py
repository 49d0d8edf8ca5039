"""Reads ahead of readers that are far behind and read in sequence.

A reader is known by where it will go on: a read that starts where an earlier one ended is its next step. What
is read ahead goes to the cold pool like everything that such readers read. All of it together must fit in
half of that pool, or it would be pushed out before it is wanted; so each reader's share shrinks with their
number, down to none.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from floe.metadata.api import FindRequest
from floe.model.coordinates import Row
from floe.model.errors import FloeError
from floe.model.ids import Offset, RangeId
from floe.object_log.cache import CacheManager
from floe.object_log.coordinate_cache import CoordinateCache
from floe.object_log.parts import EngineParts
from floe.object_log.purgatory import Purgatory

READERS_MAX = 4096
FORGOTTEN_SECONDS = 10.0
FIND_FACTOR = 4  # coordinates are asked for so many times further ahead than bytes

Step = tuple[RangeId, int, int]  # range, first offset read, offset after the last


class Readers:
    """Positions of readers far behind, the most recently seen last."""

    def __init__(self, *, bytes_per_reader: int, bytes_in_all: int) -> None:
        self._bytes_per_reader = bytes_per_reader
        self._bytes_in_all = bytes_in_all
        self._seen: OrderedDict[tuple[RangeId, int], float] = OrderedDict()  # where next -> when

    def step(self, range_id: RangeId, offset: int, next_offset: int, now: float) -> int:
        """A reader got [offset, next_offset); returns how many bytes to read ahead of it."""
        seen = self._seen
        is_sequential = seen.pop((range_id, offset), None) is not None
        seen[range_id, next_offset] = now
        while len(seen) > READERS_MAX or next(iter(seen.values())) < now - FORGOTTEN_SECONDS:
            seen.popitem(last=False)
        if not is_sequential:
            return 0
        return min(self._bytes_per_reader, self._bytes_in_all // len(seen))


class ReadAhead:
    """Starts GETs that nobody waits for yet, at most `bytes_in_all` of them at a time."""

    def __init__(
        self,
        parts: EngineParts,
        *,
        cache: CacheManager,
        coordinates: CoordinateCache,
        purgatory: Purgatory,
    ) -> None:
        settings = parts.settings
        self._metadata = parts.metadata
        self._cache = cache
        self._coordinates = coordinates
        self._purgatory = purgatory
        self._clock = parts.clock
        self._rows_max = settings.read_rows_max
        self._bytes_in_all = settings.cold_cache_bytes // 2
        self._readers = Readers(bytes_per_reader=settings.read_ahead_bytes, bytes_in_all=self._bytes_in_all)
        self._extending: dict[RangeId, asyncio.Task[None]] = {}

    def follow(self, steps: Iterable[Step]) -> None:
        """Readers far behind took these steps."""
        now = self._clock.monotonic()
        for range_id, offset, next_offset in steps:
            size = self._readers.step(range_id, offset, next_offset, now)
            if size and self._purgatory.ahead_bytes < self._bytes_in_all:
                self._read(range_id, next_offset, size)

    async def close(self) -> None:
        tasks = list(self._extending.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _read(self, range_id: RangeId, offset: int, size: int) -> None:
        view = self._metadata.view_now(range_id)
        if view is None or offset >= view.log_end or self._cache.find_hot(range_id, offset) is not None:
            return
        rows = self._coordinates.rows_from(range_id, offset, max_bytes=size, rows_max=self._rows_max)
        self._start(rows)
        known = sum(row.size for row in rows)
        end = rows[-1].last + 1 if rows else offset
        if 2 * known < size and end < view.log_end and range_id not in self._extending:
            task = asyncio.get_running_loop().create_task(self._extend(range_id, end, size))
            self._extending[range_id] = task

    async def _extend(self, range_id: RangeId, offset: int, size: int) -> None:
        """Learn the rows that follow, and read the first of them."""
        try:
            request = FindRequest(range_id, Offset(offset), FIND_FACTOR * size)
            (view,) = await self._metadata.find([request])
        except FloeError:
            return  # the reader itself will ask, and tell its client if that fails
        finally:
            del self._extending[range_id]
        self._coordinates.add(view.rows)
        self._start(self._coordinates.rows_from(range_id, offset, max_bytes=size, rows_max=self._rows_max))

    def _start(self, rows: Iterable[Row]) -> None:
        missing = [row for row in rows if self._cache.find(row.range, row.first) is None]
        if missing:
            self._purgatory.join(missing, is_ahead=True)
