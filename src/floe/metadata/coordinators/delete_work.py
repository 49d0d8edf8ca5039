"""Delete work: objects nobody holds wait out a grace period and are leased to workers until they are gone.

Invariants:
- An object is queued once, when its last holder goes or its bucket's close finds none; from then on it is
  waiting or in exactly one item, until a finish with that item's token names it as deleted.
- A token is used for one lease; a finish with any other changes nothing.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from floe.metadata.codecs.delete_work import (
    COUNTERS_KEY,
    LEASES,
    WAITING,
    LeasedItem,
    WorkCounters,
    decode_counters,
    decode_item,
    encode_counters,
    encode_item,
    item_key,
    lease_key,
    read_lease_key,
    read_waiting_key,
    waiting_key,
)
from floe.metadata.coordinators.due_queue import DueQueue
from floe.metadata.vnode import Transaction, Vnode
from floe.model.ids import ObjectId
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.observability.clock import Clock

ITEM_OBJECTS_MAX = 1000
ITEMS_PER_CLAIM_MAX = 16
LEASE_MS = 120_000
RETRY_MS = 10_000


class DeleteWork:
    """The delete work of one home."""

    def __init__(
        self, vnode: Vnode, clock: Clock, *, lease_ms: int = LEASE_MS, retry_ms: int = RETRY_MS
    ) -> None:
        self._vnode = vnode
        self._clock = clock
        self._lease_ms = lease_ms
        self._retry_ms = retry_ms
        self._waiting = DueQueue(vnode, WAITING)
        self._leases = DueQueue(vnode, LEASES)
        self.pending = 0
        """Objects not deleted yet, as far as known in memory: for the metric."""

    async def add(self, tx: Transaction, objects: Sequence[ObjectId], due_ms: int) -> None:
        """Queue objects for deletion, not before `due_ms`."""
        if not objects:
            return
        self._wait(tx, objects, due_ms)
        counters = await self._counters(tx)
        self._count(tx, counters._replace(pending=counters.pending + len(objects)))

    async def claim(self, limit: int) -> list[WorkItem]:
        """Lease up to `limit` items; those whose lease ran out go first."""
        return await self._vnode.run(partial(self._claim, min(limit, ITEMS_PER_CLAIM_MAX)))

    async def finish(self, item: WorkItem, result: WorkResult) -> bool:
        """Take the deleted objects off the list and queue the others again; False when the lease is lost."""
        return await self._vnode.run(partial(self._finish, item, result))

    async def _claim(self, limit: int, tx: Transaction) -> list[WorkItem]:
        now = self._clock.now_ms()
        counters = await self._counters(tx)
        number = counters.next_number
        items: list[WorkItem] = []
        for key in await self._leases.due(tx, now, limit):
            tx.delete(key)
            item_id = read_lease_key(key)
            stored = await tx.get(item_key(item_id))
            assert stored is not None
            items.append(self._lease(tx, item_id, number, decode_item(stored).objects, now))
            number += 1
        if len(items) < limit:
            keys = await self._waiting.due(tx, now, (limit - len(items)) * ITEM_OBJECTS_MAX)
            for key in keys:
                tx.delete(key)
            objects = tuple(read_waiting_key(key) for key in keys)
            for i in range(0, len(objects), ITEM_OBJECTS_MAX):
                items.append(self._lease(tx, number, number, objects[i : i + ITEM_OBJECTS_MAX], now))
                number += 1
        if items:
            self._count(tx, counters._replace(next_number=number))
        return items

    def _lease(
        self, tx: Transaction, item_id: int, token: int, objects: tuple[ObjectId, ...], now: int
    ) -> WorkItem:
        deadline_ms = now + self._lease_ms
        tx.put(item_key(item_id), encode_item(LeasedItem(token, deadline_ms, objects)))
        self._leases.put(tx, lease_key(deadline_ms, item_id))
        return WorkItem(item_id, self._vnode.id, WorkKind.DELETE, token, deadline_ms, objects)

    async def _finish(self, item: WorkItem, result: WorkResult, tx: Transaction) -> bool:
        value = await tx.get(item_key(item.id))
        stored = None if value is None else decode_item(value)
        if stored is None or stored.token != item.token:
            return False
        tx.delete(item_key(item.id))
        tx.delete(lease_key(stored.deadline_ms, item.id))
        done = set(result.done)
        rest = [object_id for object_id in stored.objects if object_id not in done]
        self._wait(tx, rest, self._clock.now_ms() + self._retry_ms)
        counters = await self._counters(tx)
        deleted = len(stored.objects) - len(rest)
        self._count(tx, counters._replace(pending=counters.pending - deleted))
        return True

    def _wait(self, tx: Transaction, objects: Iterable[ObjectId], due_ms: int) -> None:
        for object_id in objects:
            self._waiting.put(tx, waiting_key(due_ms, object_id))

    async def _counters(self, tx: Transaction) -> WorkCounters:
        value = await tx.get(COUNTERS_KEY)
        return WorkCounters() if value is None else decode_counters(value)

    def _count(self, tx: Transaction, counters: WorkCounters) -> None:
        tx.put(COUNTERS_KEY, encode_counters(counters))
        tx.when_durable(partial(self._publish, counters.pending))

    def _publish(self, pending: int) -> None:
        self.pending = pending
