"""GETs under way, and the readers that wait for them: several readers of a row share one GET.

Rows that lie next to each other in an object are read together, with small gaps in between if need be, so one
fetch over many ranges that were written together costs few GETs. Rows near the tail and rows far behind have
separate bounds on GETs at a time, so readers that catch up cannot hold back those at the tail.

Waiting readers get values, never exceptions: a span, or why there is none. A reader that goes away takes
nothing from the others: the GET goes on, and what it brings is cached.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from floe.model.coordinates import Row
from floe.model.errors import FloeError, Internal, Unavailable
from floe.model.ids import ObjectId, object_key
from floe.object_log.cache import CacheManager, Pool
from floe.object_log.cached_span import CachedSpan, span_of_bytes
from floe.object_log.parts import EngineParts
from floe.observability.logs import get_log

Outcome = CachedSpan | FloeError
_RowKey = tuple[ObjectId | None, int]
_log = get_log("object_log")


class Purgatory:
    """All GETs of one broker.

    `held_bytes` gives a row's bytes without a GET while this broker still holds the object it wrote.
    """

    def __init__(
        self,
        parts: EngineParts,
        *,
        cache: CacheManager,
        held_bytes: Callable[[Row], memoryview | None],
    ) -> None:
        self._objects = parts.objects
        self._cache = cache
        self._clock = parts.clock
        self._settings = parts.settings
        self._cluster_id = parts.cluster_id
        self._held_bytes = held_bytes
        self._waiting: dict[_RowKey, asyncio.Future[Outcome]] = {}
        self._gets: dict[asyncio.Task[None], None] = {}
        self._slots = {
            Pool.HOT: asyncio.Semaphore(parts.settings.hot_gets_max),
            Pool.COLD: asyncio.Semaphore(parts.settings.cold_gets_max),
        }
        self.ahead_bytes = 0  # of GETs that nobody waits for yet

    def join(self, rows: Iterable[Row], *, is_ahead: bool = False) -> list[asyncio.Future[Outcome]]:
        """A future per row; starts GETs for those that nobody reads yet."""
        futures = []
        starting: list[Row] = []
        for row in rows:
            key = (row.object, row.position)
            future = self._waiting.get(key)
            if future is None:
                future = asyncio.get_running_loop().create_future()
                self._waiting[key] = future
                starting.append(row)
            futures.append(future)
        if starting:
            for group in self._groups(starting):
                self._start(group, is_ahead=is_ahead)
        return futures

    async def close(self) -> None:
        gets = list(self._gets)
        for get in gets:
            get.cancel()
        if gets:
            await asyncio.wait(gets)

    def pool_of(self, row: Row) -> Pool:
        """Where a row belongs: near the tail is what is young, and newer than what the hot pool let go."""
        oldest = max(self._clock.now_ms() - self._settings.hot_age_ms, self._cache.hot_reach_ms + 1)
        return Pool.HOT if row.committed_at >= oldest else Pool.COLD

    def _groups(self, rows: list[Row]) -> Iterable[list[Row]]:
        """Rows that one GET brings: of one object, near each other, within the bounds on size and waste."""
        rows.sort(key=lambda row: (row.object or 0, row.position))
        group = [rows[0]]
        end = rows[0].position + rows[0].size
        gaps = 0
        for row in rows[1:]:
            row_end = row.position + row.size
            gaps += row.position - end
            if (
                row.object != group[0].object
                or gaps > self._settings.get_gap_bytes_max
                or row_end - group[0].position > self._settings.get_bytes_max
            ):
                yield group
                group = []
                gaps = 0
            group.append(row)
            end = row_end
        yield group

    def _start(self, group: list[Row], *, is_ahead: bool) -> None:
        size = group[-1].position + group[-1].size - group[0].position
        if is_ahead:
            self.ahead_bytes += size
        get = asyncio.get_running_loop().create_task(self._get(group, size, is_ahead=is_ahead))
        self._gets[get] = None
        get.add_done_callback(self._gets.pop)

    async def _get(self, group: list[Row], size: int, *, is_ahead: bool) -> None:
        outcomes: Sequence[Outcome] = [Unavailable("the engine stops")] * len(group)
        try:
            outcomes = await self._outcomes(group, size)
        except FloeError as error:
            outcomes = [error] * len(group)
        except Exception:  # noqa: BLE001 - whoever waits for these rows must be answered
            _log.exception("read failed", object=group[0].object, position=group[0].position, size=size)
            outcomes = [Internal("read failed")] * len(group)
        finally:
            if is_ahead:
                self.ahead_bytes -= size
            for row, outcome in zip(group, outcomes, strict=True):
                future = self._waiting.pop((row.object, row.position))
                if not future.done():
                    future.set_result(outcome)

    async def _outcomes(self, group: list[Row], size: int) -> list[Outcome]:
        first = group[0]
        if first.object is None:
            raise Internal(f"marker rows are not served yet. range={first.range} offset={first.first}")
        held = [self._held_bytes(row) for row in group]
        pool = self.pool_of(first)
        if any(data is None for data in held):
            async with self._slots[pool]:
                key = object_key(self._cluster_id, first.object)
                data = await self._objects.get_range(key, first.position, size)
            if len(data) != size:
                raise Unavailable(f"the store gave {len(data)} bytes of {size}. object={first.object}")
            starts = [row.position - first.position for row in group]
            held = [data[start : start + row.size] for start, row in zip(starts, group, strict=True)]
        wanted = sum(row.size for row in group)
        outcomes: list[Outcome] = []
        for row, data_of_row in zip(group, held, strict=True):
            assert data_of_row is not None
            outcomes.append(self._cached(row, data_of_row, row.size * size // wanted, pool))
        return outcomes

    def _cached(self, row: Row, data: memoryview, pinned_size: int, pool: Pool) -> Outcome:
        try:
            span = span_of_bytes(row, data, self._settings.leader_epoch, pinned_size)
        except FloeError as error:
            return error
        self._cache.add(span, pool)
        return span
