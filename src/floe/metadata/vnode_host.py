"""Everything this broker runs for one vnode while it leads it."""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from floe.metadata.bucket_operation import BucketCloser, CloseBucketKind
from floe.metadata.codecs.operations import AddPartitions, AlterConfig, CloseBucket, CreateTopic, DeleteTopic
from floe.metadata.coordinators.delete_work import LEASE_MS, RETRY_MS
from floe.metadata.coordinators.objects import CLOSE_AFTER_MS, GRACE_MS, ORPHAN_GRACE_MS, ObjectHome
from floe.metadata.coordinators.producers import EXPIRY_MS
from floe.metadata.coordinators.ranges import RangeCoordinator
from floe.metadata.coordinators.topics import TopicCoordinator, TopicRecords
from floe.metadata.directory import Directory
from floe.metadata.operations import OperationDriver, OperationKind
from floe.metadata.range_places import RangePlaces
from floe.metadata.topic_operations import (
    AddPartitionsKind,
    AlterConfigKind,
    CreateTopicKind,
    DeleteTopicKind,
)
from floe.metadata.vnode import Vnode
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics

# As Kafka: records that are old when they are written are readable for a while.
RETENTION_INTERVAL_MS = 5 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Times of objects' and producers' lives; see the coordinators that keep them."""

    close_after_ms: int = CLOSE_AFTER_MS
    grace_ms: int = GRACE_MS
    orphan_grace_ms: int = ORPHAN_GRACE_MS
    lease_ms: int = LEASE_MS
    retry_ms: int = RETRY_MS
    producer_expiry_ms: int = EXPIRY_MS
    retention_interval_ms: int = RETENTION_INTERVAL_MS


class VnodeHost:
    """A vnode and its coordinators."""

    def __init__(
        self, vnode: Vnode, directory: Directory, *, clock: Clock, metrics: Metrics, timing: Timing
    ) -> None:
        self.vnode = vnode
        self.ranges = RangeCoordinator(
            vnode, clock=clock, metrics=metrics, producer_expiry_ms=timing.producer_expiry_ms
        )
        self.objects = ObjectHome(
            vnode,
            clock=clock,
            close_after_ms=timing.close_after_ms,
            grace_ms=timing.grace_ms,
            orphan_grace_ms=timing.orphan_grace_ms,
            lease_ms=timing.lease_ms,
            retry_ms=timing.retry_ms,
        )
        self._records = TopicRecords(vnode, directory)

    def connect(self, places: RangePlaces, *, random: Random, room: asyncio.Semaphore) -> None:
        """Add what acts on other vnodes."""
        records = self._records
        kinds: dict[type, OperationKind[Any]] = {
            CreateTopic: CreateTopicKind(records, places),
            AddPartitions: AddPartitionsKind(records, places),
            AlterConfig: AlterConfigKind(records, places),
            DeleteTopic: DeleteTopicKind(records, places),
            CloseBucket: CloseBucketKind(self.objects, places),
        }
        self.operations = OperationDriver(self.vnode, kinds, random=random, room=room)
        self.topics = TopicCoordinator(self.vnode, records, self.operations)
        self.closer = BucketCloser(self.vnode, self.objects, self.operations)

    def stop(self) -> None:
        self.operations.stop()

    async def take_over(self) -> None:
        await self._records.load()
        await self.operations.resume()
