"""The background jobs of a vnode: retention, expiry of producers, close of buckets, delivery of releases."""

from collections.abc import Sequence

from floe.metadata.maintenance import Job
from floe.metadata.ring import Ring
from floe.metadata.vnode_host import VnodeHost
from floe.model.ids import ObjectId, VnodeId
from floe.observability.metrics import Metrics

RELEASES_PER_PASS = 512
RELEASE_SECONDS = 1.0
CLOSE_SECONDS = 5.0
EXPIRY_SECONDS = 30.0


class Upkeep:
    """What the jobs do, over the hosts of all vnodes."""

    def __init__(
        self, ring: Ring, hosts: Sequence[VnodeHost], metrics: Metrics, *, retention_interval_ms: int
    ) -> None:
        self._ring = ring
        self._hosts = hosts
        self._metrics = metrics
        self._retention_seconds = retention_interval_ms / 1000
        self._lag_ms = 0
        self._cursors: dict[VnodeId, ObjectId] = {}

    def jobs(self) -> list[Job[VnodeHost]]:
        return [
            Job("retention", self._retention_seconds, self.retain, self._tell_lag),
            Job("releases", RELEASE_SECONDS, self.deliver_releases, self._tell_pending),
            Job("bucket close", CLOSE_SECONDS, lambda host: host.closer.close_due()),
            Job("producer expiry", EXPIRY_SECONDS, lambda host: host.ranges.expire_producers()),
        ]

    async def retain(self, host: VnodeHost) -> bool:
        outcome = await host.ranges.retention_pass()
        self._lag_ms = max(self._lag_ms, outcome.lag_ms)
        return outcome.has_more

    async def deliver_releases(self, host: VnodeHost) -> bool:
        """Tell homes what a vnode holds no longer, and forget what they have acknowledged.

        A home acknowledges nothing of a bucket that is not closed yet; the cursor passes over such releases
        until the next round, so that they do not hold up those behind them.
        """
        vnode = host.vnode.id
        page = await host.ranges.released_page(self._cursors.get(vnode), RELEASES_PER_PASS)
        by_home: dict[VnodeId, list[ObjectId]] = {}
        for object_id in page:
            by_home.setdefault(self._ring.of_object(object_id), []).append(object_id)
        for home, objects in by_home.items():
            acknowledged = await self._hosts[home].objects.release(objects, vnode)
            if acknowledged:
                await host.ranges.acknowledge_released(acknowledged)
        if len(page) < RELEASES_PER_PASS:
            self._cursors.pop(vnode, None)
            return False
        self._cursors[vnode] = page[-1]
        return True

    def _tell_lag(self) -> None:
        self._metrics.retention_lag_seconds.set(self._lag_ms / 1000)
        self._lag_ms = 0

    def _tell_pending(self) -> None:
        self._metrics.pending_deletes.set(sum(host.objects.pending_deletes for host in self._hosts))
