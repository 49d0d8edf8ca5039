"""Everything a vnode's leader does for the ranges it owns; the façade the router and operations call.

Each method is one transaction or a bounded number of them, idempotent where it changes anything, and
answers durable facts. Methods of background work do at most so much and say whether there is more.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from floe.machines.range_record import RangeRecord
from floe.machines.retention import RangeLimits
from floe.metadata.api import FindRequest
from floe.metadata.coordinators.closed_buckets import ClosedBuckets
from floe.metadata.coordinators.commit import Committer, Results
from floe.metadata.coordinators.finding import Finder
from floe.metadata.coordinators.producers import EXPIRY_MS, Producers
from floe.metadata.coordinators.range_cache import RangeCache
from floe.metadata.coordinators.waiters import Waiter, Waiters
from floe.metadata.vnode import Transaction, Vnode
from floe.model.coordinates import ObjectCommit, RangeView
from floe.model.ids import RangeId, TopicId
from floe.model.topic import RangeState
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics

__all__ = ["RangeCoordinator", "RangeLimits", "RangeSpec", "Waiter"]


class RangeSpec(NamedTuple):
    """A range to be created."""

    range_id: RangeId
    topic_id: TopicId
    limits: RangeLimits = RangeLimits()


class RangeCoordinator:
    """The ranges of one vnode."""

    def __init__(
        self, vnode: Vnode, *, clock: Clock, metrics: Metrics, producer_expiry_ms: int = EXPIRY_MS
    ) -> None:
        self._vnode = vnode
        self._clock = clock
        self._waiters = Waiters()
        self._ranges = RangeCache(vnode, self._waiters)
        self._producers = Producers(vnode, expiry_ms=producer_expiry_ms)
        self._closed = ClosedBuckets(vnode)
        self._committer = Committer(vnode, self._ranges, self._producers, self._closed, clock)
        self._finder = Finder(vnode, self._ranges)
        self._commit_seconds = metrics.coordinator_seconds.labels("commit")
        self.view_now = self._ranges.view_now
        """The durable view of a range without rows, or None when it is not in memory."""

    async def create_ranges(self, items: Sequence[RangeSpec]) -> None:
        """Create ranges from offset 0; one that is there already is left as it is."""
        await self._vnode.run(partial(self._create, items))

    async def commit(self, commits: Sequence[ObjectCommit]) -> list[Results]:
        """Commit this vnode's parts of objects, in order; see `metadata.api.Metadata.commit`."""
        started = self._clock.monotonic()
        results = await self._committer.commit(commits)
        self._commit_seconds.observe(self._clock.monotonic() - started)
        return results

    async def find(self, requests: Iterable[FindRequest]) -> list[RangeView]:
        """One view per request, now."""
        return [await self._finder.find(request) for request in requests]

    async def find_timestamp(self, range_id: RangeId, timestamp: int) -> RangeView:
        return await self._finder.find_timestamp(range_id, timestamp)

    async def find_max_timestamp(self, range_id: RangeId) -> RangeView:
        return await self._finder.find_max_timestamp(range_id)

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
            else:
                self._waiters.told(range_id, view)
        return unknown

    async def load(self, range_ids: Sequence[RangeId]) -> None:
        """Bring ranges into memory, which wakes those who wait for what they hold."""
        for range_id in range_ids:
            await self._ranges.view(range_id)

    def unregister(self, waiter: Waiter, range_ids: Iterable[RangeId]) -> None:
        self._waiters.remove(waiter, range_ids)

    async def _create(self, items: Sequence[RangeSpec], tx: Transaction) -> None:
        created: dict[RangeId, RangeRecord] = {}
        for range_id, topic_id, limits in items:
            if await self._ranges.load(tx, range_id) is None:
                created[range_id] = RangeRecord(topic_id, RangeState.ACTIVE, limits)
        if created:
            self._ranges.save(tx, created)
