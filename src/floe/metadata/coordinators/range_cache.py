"""Range records in memory: what is decided, for the next decision, and what is durable, for everybody else.

Invariants:
- A decided record is what a transaction would read; it is put in when its transaction has been decided, and
  all are forgotten on a reset.
- A published view is durable, and views of one range are published in the order of their transactions, so log
  ends never go back.
"""

from collections.abc import Mapping
from functools import partial

from floe.machines.range_record import RangeRecord
from floe.metadata.codecs.range_records import decode_range, encode_range, range_key
from floe.metadata.coordinators.lru import Lru
from floe.metadata.coordinators.waiters import Waiters
from floe.metadata.vnode import Transaction, Vnode
from floe.model.coordinates import RangeView
from floe.model.error_codes import ErrorCode
from floe.model.ids import RangeId
from floe.model.topic import RangeState

_OK = ErrorCode.NONE
_DELETING = RangeState.DELETING
RANGES_CACHED_MAX = 8192  # per vnode

UNKNOWN_RANGE = RangeView(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class RangeCache:
    """The records of one vnode's ranges."""

    def __init__(self, vnode: Vnode, waiters: Waiters, *, capacity: int = RANGES_CACHED_MAX) -> None:
        self._vnode = vnode
        self._waiters = waiters
        self._decided: Lru[RangeId, RangeRecord] = Lru(capacity)
        self._views: Lru[RangeId, RangeView] = Lru(capacity)
        self.decided = self._decided.get
        self.view_now = self._views.get
        vnode.on_reset(self._forget)

    async def load(self, tx: Transaction, range_id: RangeId) -> RangeRecord | None:
        """The record as decided before this transaction."""
        record = self._decided.get(range_id)
        if record is None:
            value = await tx.get(range_key(range_id))
            if value is None:
                return None
            record = decode_range(value)
            tx.when_decided(partial(self._decided.put, range_id, record))
        return record

    def save(self, tx: Transaction, changed: Mapping[RangeId, RangeRecord]) -> None:
        """Write records, once per transaction and range."""
        for range_id, record in changed.items():
            tx.put(range_key(range_id), encode_range(record))
        tx.when_decided(partial(self._decide, changed))
        tx.when_durable(partial(self._publish, changed))

    def remove(self, tx: Transaction, range_id: RangeId) -> None:
        """Delete a record and forget the range."""
        tx.delete(range_key(range_id))
        tx.when_decided(partial(self._decided.remove, range_id))
        tx.when_durable(partial(self._unpublish, range_id))

    async def view(self, range_id: RangeId) -> RangeView:
        """The durable view, read if need be."""
        view = self._views.get(range_id)
        if view is None:
            view = await self._vnode.run(partial(self._read_view, range_id))
        return view

    async def _read_view(self, range_id: RangeId, tx: Transaction) -> RangeView:
        # The transaction is answered when all it may have seen is durable, and published in its turn.
        record = await self.load(tx, range_id)
        if record is None:
            tx.when_durable(partial(self._unpublish, range_id))
            return UNKNOWN_RANGE
        tx.when_durable(partial(self._publish, {range_id: record}))
        return view_of(record)

    def _decide(self, changed: Mapping[RangeId, RangeRecord]) -> None:
        for range_id, record in changed.items():
            self._decided.put(range_id, record)

    def _publish(self, changed: Mapping[RangeId, RangeRecord]) -> None:
        for range_id, record in changed.items():
            view = view_of(record)
            self._views.put(range_id, view)
            self._waiters.told(range_id, view)

    def _unpublish(self, range_id: RangeId) -> None:
        self._views.remove(range_id)
        self._waiters.told(range_id, UNKNOWN_RANGE)

    def _forget(self) -> None:
        self._decided.clear()
        self._views.clear()
        self._waiters.wake_all()


def view_of(record: RangeRecord) -> RangeView:
    """What everybody may know of a range, without rows."""
    if record.state is _DELETING:
        return UNKNOWN_RANGE
    end = record.log_end
    return RangeView(_OK, record.log_start, end, end)
