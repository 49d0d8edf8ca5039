"""The Cache Manager: bounded, circular, looked up by range and offset.

Two pools. The hot pool takes what this broker writes, at once and with real offsets, and what it reads near
the tail. The cold pool takes what readers far behind read; it cannot push anything out of the hot pool. Each
pool is a ring: what came in first goes out first, span by span, when the pool is over its bound.

What is near the tail? The hot pool holds the newest data there is, as far back as it reaches. So a row
belongs there if it is newer than what the pool has let go; a row older than that is far behind, be it only
seconds old.

Invariants:
- A span is in a pool's index exactly as long as it is in the pool's ring.
- A pool's bytes are within its bound after every call, except for one span larger than the bound.
- Cached bytes never change, so a reader may hold pieces longer than the cache does.
"""

from collections import deque
from enum import IntEnum
from functools import partial

from floe.model.ids import RangeId
from floe.object_log.cached_span import CachedSpan
from floe.object_log.span_index import SpanIndex
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics


class Pool(IntEnum):
    HOT = 0
    COLD = 1


class _Ring:
    """One pool."""

    __slots__ = ("_arrivals", "_limit", "_spans", "bytes", "find", "index", "reach_ms")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spans: deque[CachedSpan] = deque()
        self._arrivals: deque[int] = deque()  # when each came in
        self.reach_ms = 0  # what came in up to this time has gone out
        self.bytes = 0
        self.index = SpanIndex()
        self.find = self.index.find

    def add(self, span: CachedSpan, now_ms: int) -> None:
        if not self.index.add(span):
            return
        self._spans.append(span)
        self._arrivals.append(now_ms)
        self.bytes += span.cost
        while self.bytes > self._limit and len(self._spans) > 1:
            self.reach_ms = self._arrivals.popleft()
            oldest = self._spans.popleft()
            self.bytes -= oldest.cost
            self.index.remove(oldest)


class CacheManager:
    """Both pools. A look-up tries the hot one first."""

    def __init__(self, *, hot_bytes: int, cold_bytes: int, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._rings = (_Ring(hot_bytes), _Ring(cold_bytes))
        self.find_hot = self._rings[Pool.HOT].find
        self.find_cold = self._rings[Pool.COLD].find
        for pool in Pool:
            metrics.cache_bytes.labels(pool.name.lower()).set_function(partial(self.bytes_of, pool))

    def bytes_of(self, pool: Pool) -> int:
        """The memory that a pool keeps."""
        return self._rings[pool].bytes

    def add(self, span: CachedSpan, pool: Pool) -> None:
        """Take a span in; one that begins at the same offset stays instead."""
        self._rings[pool].add(span, self._clock.now_ms())

    @property
    def hot_reach_ms(self) -> int:
        """The time from which on the hot pool holds everything that it was given."""
        return self._rings[Pool.HOT].reach_ms

    def find(self, range_id: RangeId, offset: int) -> CachedSpan | None:
        """The span that holds an offset, from either pool."""
        return self.find_hot(range_id, offset) or self.find_cold(range_id, offset)
