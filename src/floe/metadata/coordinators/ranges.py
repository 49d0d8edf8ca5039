"""Everything a vnode's leader does for the ranges it owns; the façade the router and operations call.

Each method is one transaction or a bounded number of them, idempotent where it changes anything, and
answers durable facts. Methods of background work do at most so much and say whether there is more.
"""

from collections.abc import Iterable, Sequence

from floe.machines.retention import RangeLimits
from floe.metadata.api import FindRequest
from floe.metadata.coordinators.closed_buckets import NONE_CLOSED, ClosedBuckets
from floe.metadata.coordinators.commit import Committer, Results
from floe.metadata.coordinators.drop_index import DropIndex
from floe.metadata.coordinators.finding import Finder
from floe.metadata.coordinators.held_objects import HeldObjects
from floe.metadata.coordinators.producers import EXPIRY_MS, Producers
from floe.metadata.coordinators.range_cache import RangeCache
from floe.metadata.coordinators.range_life import RangeLife, RangeSpec
from floe.metadata.coordinators.retention import Retention
from floe.metadata.coordinators.waiters import Waiter, Waiters, is_news
from floe.metadata.vnode import Vnode
from floe.model.coordinates import ObjectCommit, RangeView
from floe.model.ids import Bucket, RangeId
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics

__all__ = ["RangeCoordinator", "RangeLimits", "RangeSpec", "Waiter"]

PRODUCERS_PER_PASS = 256


class RangeCoordinator:
    """The ranges of one vnode."""

    def __init__(
        self, vnode: Vnode, *, clock: Clock, metrics: Metrics, producer_expiry_ms: int = EXPIRY_MS
    ) -> None:
        self._clock = clock
        self._waiters = Waiters()
        self._commit_seconds = metrics.coordinator_seconds.labels("commit")
        ranges = self._ranges = RangeCache(vnode, self._waiters)
        producers = self._producers = Producers(vnode, expiry_ms=producer_expiry_ms)
        closed, drops = ClosedBuckets(vnode), DropIndex(vnode)
        self._closed = closed
        held = HeldObjects(vnode, closed)
        self._committer = Committer(vnode, ranges, producers, closed, drops, clock)
        self._finder = Finder(vnode, ranges)
        life = RangeLife(vnode, ranges, producers, held, drops, clock)
        retention = Retention(vnode, ranges, held, drops, clock)

        # The durable view of a range without rows, or None when it is not in memory.
        self.view_now = ranges.view_now
        # Steps of topic operations.
        self.create_ranges = life.create
        self.configure_ranges = life.configure
        self.mark_deleting = life.mark_deleting
        self.drop_rows = life.drop
        # The front of ranges.
        self.delete_records = retention.delete_records
        self.retention_pass = retention.run_pass
        # Objects' life, as far as it is this vnode's.
        self.close_bucket = held.close
        self.released_page = held.released
        self.acknowledge_released = held.acknowledge_released
        # Lookups by time.
        self.find_timestamp = self._finder.find_timestamp
        self.find_max_timestamp = self._finder.find_max_timestamp

    @property
    def closed_bucket(self) -> Bucket:
        """The greatest bucket closed here, as far as is known in memory.

        Ids of it and of older ones are of no use any more, so whoever leases ids leaves them out, also when
        the wall clock has gone back.
        """
        mark = self._closed.decided
        return NONE_CLOSED if mark is None else mark

    async def commit(self, commits: Sequence[ObjectCommit]) -> list[Results]:
        """Commit this vnode's parts of objects, in order; see `metadata.api.Metadata.commit`."""
        started = self._clock.monotonic()
        results = await self._committer.commit(commits)
        self._commit_seconds.observe(self._clock.monotonic() - started)
        return results

    async def find(self, requests: Iterable[FindRequest]) -> list[RangeView]:
        """One view per request, now."""
        return [await self._finder.find(request) for request in requests]

    def register(self, waiter: Waiter, range_ids: Sequence[RangeId]) -> list[RangeId]:
        """Let a waiter be woken by these ranges, at once if there is news; returns what to pass to `load`.

        The caller awaits `load` of what is returned, since news of ranges that are not in memory is not
        known, and calls `unregister` whatever happens.
        """
        self._waiters.add(waiter, range_ids)
        unknown = []
        for range_id in range_ids:
            view = self._ranges.view_now(range_id)
            if view is None:
                unknown.append(range_id)
            elif is_news(view, waiter.positions[range_id]):
                waiter.wake(range_id)
        return unknown

    async def load(self, range_ids: Sequence[RangeId]) -> None:
        """Bring ranges into memory, which wakes those who wait for what they hold."""
        for range_id in range_ids:
            await self._ranges.view(range_id)

    def unregister(self, waiter: Waiter, range_ids: Iterable[RangeId]) -> None:
        self._waiters.remove(waiter, range_ids)

    async def expire_producers(self, limit: int = PRODUCERS_PER_PASS) -> bool:
        """Forget producers that were not seen for long; whether there may be more."""
        return await self._producers.expire(self._clock.now_ms(), limit)
