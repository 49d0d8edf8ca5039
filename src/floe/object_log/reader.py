"""Reads: from the cache, else by coordinates from the store; budgets and order as Kafka's.

`read_now` answers synchronously when all that is needed is cached and known. `read` tries that first, then
asks the coordinators for rows it does not know, fetches the rows it needs and cuts the answer from those.

Budgets. Requests are served in the order given. Each gets whole batches within its own limit and what is left
of the answer's. The first batch of an answer may break both, if `min_one`; once anything is in the answer, a
request whose next batch does not fit gets none. So no range gets its "at least one batch" at the cost of
another, and a client that rotates its ranges is served fairly.

Coordinates are hints. When an object is not there, what was known of the range is dropped, the coordinator is
asked again, and the read is tried once more.

How much is read that is not needed: the first row of a range is read whole, though the offset may lie within
it; later rows are read only if they fit in the budget behind the guessed rest of the first. What is read in
vain is then at most the size of that first row: 1 MiB, per range that is served.
"""

import asyncio
from collections.abc import Callable, Sequence

from floe.model.coordinates import Row
from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError
from floe.model.ids import Offset
from floe.object_log.cache import CacheManager
from floe.object_log.cached_span import CachedSpan
from floe.object_log.coordinate_cache import CoordinateCache
from floe.object_log.parts import EngineParts
from floe.object_log.purgatory import Outcome, Purgatory
from floe.object_log.read_ahead import FIND_FACTOR, ReadAhead, Step
from floe.object_log.read_plan import ReadPlan
from floe.object_log.reads import ReadRequest, ReadResult, failure
from floe.object_log.span_index import collect
from floe.observability.logs import Sparing, get_log
from floe.storage.objects.port import ObjectNotFound

# What clients take as "look for the leader again and retry", whatever could not be reached.
UNREACHABLE = ErrorCode.KAFKA_STORAGE_ERROR
_NONE = ErrorCode.NONE
_log = get_log("object_log")


class Reader:
    """Reads of one broker. `is_settling` says whether the answer of a commit may be on its way."""

    def __init__(
        self,
        parts: EngineParts,
        *,
        cache: CacheManager,
        coordinates: CoordinateCache,
        purgatory: Purgatory,
        read_ahead: ReadAhead,
        is_settling: Callable[[], bool],
    ) -> None:
        metrics = parts.metrics
        self._metadata = parts.metadata
        self._view_now = parts.metadata.view_now
        self._cache = cache
        self._coordinates = coordinates
        self._purgatory = purgatory
        self._clock = parts.clock
        self._settings = parts.settings
        self._sparing = Sparing()
        self._is_settling = is_settling
        self._ahead = read_ahead
        self._hits = metrics.cache_requests.labels("hot", "hit")
        self._cold_hits = metrics.cache_requests.labels("cold", "hit")
        self._misses = metrics.cache_requests.labels("cold", "miss")

    def read_now(
        self, requests: Sequence[ReadRequest], *, max_bytes: int, min_one: bool = True
    ) -> list[ReadResult] | None:
        """The answer if it takes no waiting: what has a budget is cached, and every offset is in range."""
        results: list[ReadResult] = []
        left = max_bytes
        steps: list[Step] = []
        find_hot = self._cache.find_hot
        for request in requests:
            range_id, offset = request.range, request.offset
            view = self._view_now(range_id)
            if view is None or view.error:
                return None
            log_end = view.log_end
            if offset == log_end:
                results.append(ReadResult(_NONE, view.log_start, log_end, view.last_stable, [], 0, offset))
                continue
            if not view.log_start <= offset < log_end:
                return None
            budget = min(left, request.max_bytes)
            if budget <= 0 and not min_one:
                results.append(ReadResult(_NONE, view.log_start, log_end, view.last_stable, [], 0, offset))
                continue
            taken = collect(find_hot, range_id, offset, log_end, budget, min_one)
            if taken is None:
                taken = collect(self._cache.find, range_id, offset, log_end, budget, min_one)
                if taken is None:
                    return None
                steps.append((range_id, offset, taken[2]))
            pieces, size, next_offset = taken
            if size:
                left -= size
                min_one = False
            results.append(
                ReadResult(
                    _NONE, view.log_start, log_end, view.last_stable, pieces, size, Offset(next_offset)
                )
            )
        if steps:
            self._cold_hits.inc()
            self._ahead.follow(steps)
        elif left < max_bytes:
            self._hits.inc()
        return results

    async def read(
        self, requests: Sequence[ReadRequest], *, max_bytes: int, min_one: bool = True
    ) -> list[ReadResult]:
        """One result per request, in order; never raises for what one range or object does."""
        answer = self.read_now(requests, max_bytes=max_bytes, min_one=min_one)
        if answer is None and self._is_settling():
            # Waiting readers are woken when a commit is durable, a moment before its writer hears of it and
            # puts the batches into the cache. A turn later they are there, and no GET is needed.
            await asyncio.sleep(0)
            answer = self.read_now(requests, max_bytes=max_bytes, min_one=min_one)
        if answer is not None:
            return answer
        self._misses.inc()
        plan = ReadPlan(requests, max_bytes)
        for number, request in enumerate(requests):
            view = self._view_now(request.range)
            if view is not None and not view.error and view.log_start <= request.offset <= view.log_end:
                plan.views[number] = view
        await self._find(plan)
        gone = await self._fetch(plan)
        if gone:
            for number in gone:
                plan.forget(number)
            await self._find(plan)
            for number in await self._fetch(plan):
                plan.errors[number] = UNREACHABLE
        return self._answer(plan, min_one=min_one)

    async def span_of(self, row: Row) -> CachedSpan:
        """A row's batches; raise what kept them from being read."""
        span = self._cache.find(row.range, row.first)
        if span is not None and span.end > row.last:
            return span
        (future,) = self._purgatory.join([row])
        await asyncio.wait([future])
        outcome = future.result()
        if isinstance(outcome, FloeError):
            raise outcome
        return outcome

    async def _find(self, plan: ReadPlan) -> None:
        """Complete the plan."""
        ahead_bytes = FIND_FACTOR * self._settings.read_ahead_bytes
        while questions := plan.round(
            self._coordinates,
            self._cache.find,
            rows_max=self._settings.read_rows_max,
            ahead_bytes=ahead_bytes,
        ):
            try:
                views = await self._metadata.find(list(questions.values()))
            except FloeError as error:
                self._warn("coordinates not found", ranges=len(questions), reason=str(error))
                for number in questions:
                    plan.errors[number] = UNREACHABLE
                continue
            for number, view in zip(questions, views, strict=True):
                plan.answered(number, view)
                self._coordinates.add(view.rows)

    async def _fetch(self, plan: ReadPlan) -> list[int]:
        """Bring the plan's rows into it; returns the requests whose objects are gone."""
        asked: list[tuple[int, Row]] = []
        for number, rows in plan.rows.items():
            offset = plan.requests[number].offset
            for row in rows:
                span = self._cache.find(row.range, max(row.first, offset))
                if span is None:
                    asked.append((number, row))
                else:
                    plan.spans.add(span)
        plan.rows.clear()
        if not asked:
            return []
        futures = self._purgatory.join(row for _, row in asked)
        await asyncio.wait(futures)
        gone: dict[int, None] = {}
        for (number, row), future in zip(asked, futures, strict=True):
            self._take(plan, number, row, future.result(), gone)
        return list(gone)

    def _take(self, plan: ReadPlan, number: int, row: Row, outcome: Outcome, gone: dict[int, None]) -> None:
        if isinstance(outcome, CachedSpan):
            plan.spans.add(outcome)
            return
        is_first = row.first <= plan.requests[number].offset
        if isinstance(outcome, ObjectNotFound):
            self._coordinates.drop(row.range)
            if is_first:
                gone[number] = None
        elif is_first:
            self._warn("read failed", range=row.range, object=row.object, reason=str(outcome))
            is_corrupt = isinstance(outcome, Corrupt)
            plan.errors[number] = ErrorCode.CORRUPT_MESSAGE if is_corrupt else UNREACHABLE

    def _warn(self, event: str, **facts: object) -> None:
        """One store that is down fails every read: a few lines say it as well as thousands."""
        if self._sparing.admits(self._clock.monotonic()):
            _log.warning(event, left_out=self._sparing.left_out(), **facts)

    def _answer(self, plan: ReadPlan, *, min_one: bool) -> list[ReadResult]:
        results = []
        steps: list[Step] = []
        left = plan.max_bytes
        for number, request in enumerate(plan.requests):
            error = plan.errors.get(number)
            if error is not None:
                results.append(failure(error))
                continue
            view = plan.views[number]
            if not view.error:
                view = self._view_now(request.range) or view
            budget = min(request.max_bytes, left)
            taken = None
            if not view.error and (budget > 0 or min_one):
                find = plan.spans.find
                taken = collect(find, request.range, request.offset, view.log_end, budget, min_one)
            pieces, size, next_offset = taken or ([], 0, request.offset)
            if size:
                left -= size
                min_one = False
                if self._cache.find_hot(request.range, request.offset) is None:
                    steps.append((request.range, request.offset, next_offset))
            results.append(
                ReadResult(
                    view.error,
                    view.log_start,
                    view.log_end,
                    view.last_stable,
                    pieces,
                    size,
                    Offset(next_offset),
                )
            )
        self._ahead.follow(steps)
        return results
