"""The metadata plane as one broker sees it: every call goes to the vnodes that own what it names.

All vnodes are led by this process, so the router answers locally. It splits calls by vnode, checks that what
is asked of a vnode lies in its arc, and puts answers together in the order asked. A vnode that this broker
does not lead at the moment spoils only its own part of a `find`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from floe.metadata.api import FindRequest
from floe.metadata.cluster_birth import ClusterBirth, ClusterIdentity
from floe.metadata.coordinators.counters import Counters
from floe.metadata.coordinators.ranges import RangeCoordinator, Waiter
from floe.metadata.directory import Directory
from floe.metadata.maintenance import Maintenance
from floe.metadata.operations import OPERATIONS_AT_ONCE
from floe.metadata.range_places import RangePlaces
from floe.metadata.ring import Ring
from floe.metadata.store.port import Store
from floe.metadata.take_over import LeadershipFollower
from floe.metadata.topic_changes import TopicChanges, TopicHome
from floe.metadata.upkeep import Upkeep
from floe.metadata.vnode import Vnode
from floe.metadata.vnode_host import Timing, VnodeHost
from floe.model.coordinates import EntryResult, ObjectCommit, RangeView
from floe.model.error_codes import ErrorCode
from floe.model.errors import Fenced, Rejected, Unavailable
from floe.model.ids import Bucket, ObjectId, Offset, ProducerId, RangeId, TopicId, VnodeId, bucket_at
from floe.model.topic import Topic
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.storage.objects.port import Objects

OWNERS_CACHED_MAX = 200_000
_NOT_LED = RangeView(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Router:
    """Implements `metadata.api.Metadata`. `start` before anything else; the store belongs to the caller."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        timing: Timing | None = None,
    ) -> None:
        timing = timing or Timing()
        self.ring = Ring.even(store.vnode_count)
        self.topics = Directory()
        self._hosts = [
            VnodeHost(Vnode(store, VnodeId(i)), self.topics, clock=clock, metrics=metrics, timing=timing)
            for i in range(store.vnode_count)
        ]
        self._ranges = [host.ranges for host in self._hosts]
        places = RangePlaces(self.ring, self._ranges)
        room = asyncio.Semaphore(OPERATIONS_AT_ONCE)
        for host in self._hosts:
            host.connect(places, random=random, room=room)
        self._counters = Counters(self._hosts[0].vnode)
        homes = [TopicHome(host.topics, host.operations) for host in self._hosts]
        self._changes = TopicChanges(self.ring, homes, self._counters, self.topics, random=random)
        self._follower = LeadershipFollower(store, self._hosts)
        self._upkeep = Upkeep(
            self.ring, self._hosts, metrics, retention_interval_ms=timing.retention_interval_ms
        )
        self._maintenance = Maintenance(
            self._upkeep.jobs(),
            self._hosts,
            is_led=lambda host: host.vnode.term is not None,
            clock=clock,
            metrics=metrics,
        )
        self._clock = clock
        self._random = random
        self._next_home = 0
        self._owners: dict[RangeId, VnodeId] = {}

    @property
    def is_leading(self) -> bool:
        """Whether this broker leads every vnode now."""
        return all(host.vnode.term is not None for host in self._hosts)

    async def start(self) -> None:
        """Return when every vnode is led, its topics are shown and its operations go on."""
        await self._follower.start()
        self._maintenance.start()

    async def join_cluster(self, objects: Objects) -> ClusterIdentity:
        """The cluster that this metadata and these objects belong to, born now if both are new."""
        birth = ClusterBirth(
            self._hosts[0].vnode,
            objects,
            clock=self._clock,
            random=self._random,
            vnode_count=len(self._hosts),
        )
        return await birth.join()

    async def close(self) -> None:
        """Stop everything in the background and wait for what is decided to become durable."""
        await self._maintenance.close()
        await self._follower.close()
        await asyncio.gather(*(host.operations.close() for host in self._hosts))
        await asyncio.gather(*(host.vnode.close() for host in self._hosts))

    def vnode_of_range(self, range_id: RangeId) -> VnodeId:
        owner = self._owners.get(range_id)
        if owner is None:
            if len(self._owners) >= OWNERS_CACHED_MAX:
                self._owners.clear()
            owner = self._owners[range_id] = self.ring.of_range(range_id)
        return owner

    async def create_topic(
        self, name: str, *, partitions: int, config: Mapping[str, str], validate_only: bool = False
    ) -> Topic:
        return await self._changes.create(
            name, partitions=partitions, config=config, validate_only=validate_only
        )

    async def delete_topic(self, topic_id: TopicId) -> None:
        await self._changes.delete(topic_id)

    async def add_partitions(self, name: str, *, total: int, validate_only: bool = False) -> Topic:
        return await self._changes.add_partitions(name, total=total, validate_only=validate_only)

    async def alter_config(
        self, name: str, *, changes: Mapping[str, str | None], validate_only: bool = False
    ) -> Topic:
        return await self._changes.alter_config(name, changes=changes, validate_only=validate_only)

    async def lease_object_ids(self, count: int) -> Sequence[ObjectId]:
        # A wall clock that had run ahead and was set right must not lead back into buckets closed meanwhile.
        first_open = max(ranges.closed_bucket for ranges in self._ranges) + 1
        bucket = Bucket(max(bucket_at(self._clock.now_ms()), first_open))
        return await self._hosts[self.ring.of_bucket(bucket)].objects.lease_object_ids(bucket, count)

    async def commit(self, vnode: VnodeId, commits: Sequence[ObjectCommit]) -> list[tuple[EntryResult, ...]]:
        owners = self._owners
        for commit in commits:
            for entry in commit.entries:
                if owners.get(entry.range) != vnode:
                    self._check_owner(vnode, entry.range)
        return await self._ranges[vnode].commit(commits)

    async def find(self, requests: Sequence[FindRequest]) -> list[RangeView]:
        parts = self._split([request.range for request in requests])
        if len(parts) == 1:
            return await self._find_at(next(iter(parts)), requests)
        views: dict[int, RangeView] = {}
        for vnode, indexes in parts.items():
            found = await self._find_at(vnode, [requests[index] for index in indexes])
            views.update(zip(indexes, found, strict=True))
        return [views[index] for index in range(len(requests))]

    def view_now(self, range_id: RangeId) -> RangeView | None:
        return self._ranges[self.vnode_of_range(range_id)].view_now(range_id)

    async def wait(self, positions: Mapping[RangeId, Offset], timeout_ms: int) -> set[RangeId]:
        waiter = Waiter(positions)
        ranges = list(positions)
        parts = [
            (self._ranges[vnode], [ranges[index] for index in indexes])
            for vnode, indexes in self._split(ranges).items()
        ]
        try:
            for coordinator, part in parts:
                unknown = coordinator.register(waiter, part)
                if unknown:
                    await _load(coordinator, unknown, waiter)
            if not waiter.woken and timeout_ms > 0:
                await _woken(waiter, timeout_ms)
        finally:
            for coordinator, part in parts:
                coordinator.unregister(waiter, part)
        return waiter.woken

    async def find_timestamp(self, range_id: RangeId, timestamp: int) -> RangeView:
        return await self._ranges_of(range_id).find_timestamp(range_id, timestamp)

    async def find_max_timestamp(self, range_id: RangeId) -> RangeView:
        return await self._ranges_of(range_id).find_max_timestamp(range_id)

    async def delete_records(self, range_id: RangeId, before: Offset) -> RangeView:
        return await self._ranges_of(range_id).delete_records(range_id, before)

    async def next_producer_id(self) -> ProducerId:
        return await self._counters.take_producer_id()

    async def claim_work(self, worker: str, kinds: Sequence[WorkKind], limit: int) -> list[WorkItem]:
        """Claim from the homes in turn, so that none is left out when there is more than the limit."""
        items: list[WorkItem] = []
        for _ in self._hosts:
            if len(items) >= limit:
                break
            self._next_home = (self._next_home + 1) % len(self._hosts)
            home = self._hosts[self._next_home].objects
            items += await home.claim_work(worker, kinds, limit - len(items))
        return items

    async def finish_work(self, item: WorkItem, result: WorkResult) -> None:
        if not 0 <= item.home < len(self._hosts):
            raise Rejected(ErrorCode.INVALID_REQUEST, f"there is no such home. vnode={item.home}")
        await self._hosts[item.home].objects.finish_work(item, result)

    def _ranges_of(self, range_id: RangeId) -> RangeCoordinator:
        return self._ranges[self.vnode_of_range(range_id)]

    def _split(self, ranges: Sequence[RangeId]) -> dict[VnodeId, list[int]]:
        """Indexes of the ranges by owner."""
        parts: dict[VnodeId, list[int]] = {}
        for index, range_id in enumerate(ranges):
            parts.setdefault(self.vnode_of_range(range_id), []).append(index)
        return parts

    def _check_owner(self, vnode: VnodeId, range_id: RangeId) -> None:
        if self.vnode_of_range(range_id) != vnode:
            raise Rejected(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"the range is outside the vnode's arc. range={range_id} vnode={vnode}",
            )

    async def _find_at(self, vnode: VnodeId, requests: Sequence[FindRequest]) -> list[RangeView]:
        try:
            return await self._ranges[vnode].find(requests)
        except (Unavailable, Fenced):
            return [_NOT_LED] * len(requests)


async def _load(coordinator: RangeCoordinator, ranges: Sequence[RangeId], waiter: Waiter) -> None:
    """Bring ranges into memory; those of a vnode that is not led wake the waiter."""
    try:
        await coordinator.load(ranges)
    except (Unavailable, Fenced):
        for range_id in ranges:
            waiter.wake(range_id)


async def _woken(waiter: Waiter, timeout_ms: int) -> None:
    """Wait until a range has something to say, or the time is over."""
    future = waiter.future()
    timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, _expire, future)
    try:
        await future
    finally:
        timer.cancel()


def _expire(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
