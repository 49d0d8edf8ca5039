"""Producer states of a vnode's ranges: loaded, kept, written, expired.

A state's place in the expiry index is set when the state comes about and looked at again only when that
time has come: a state used since then moves on, so a busy producer costs one index entry a day.
"""

from collections.abc import Mapping
from functools import partial

from floe.machines.producer_state import ProducerState
from floe.metadata.codecs.producer_states import (
    decode_producer,
    encode_producer,
    expiry_key,
    producer_key,
    read_expiry_key,
)
from floe.metadata.coordinators.due_queue import DueQueue
from floe.metadata.coordinators.lru import Lru
from floe.metadata.keys import PRODUCER_EXPIRY
from floe.metadata.vnode import Transaction, Vnode
from floe.model.ids import ProducerId, RangeId

PRODUCERS_CACHED_MAX = 16_384  # per vnode
EXPIRY_MS = 24 * 60 * 60 * 1000

ProducerKey = tuple[RangeId, int]


class Producers:
    """The producer states of one vnode."""

    def __init__(
        self, vnode: Vnode, *, expiry_ms: int = EXPIRY_MS, capacity: int = PRODUCERS_CACHED_MAX
    ) -> None:
        self._vnode = vnode
        self._expiries = DueQueue(vnode, PRODUCER_EXPIRY)
        self._expiry_ms = expiry_ms
        self._decided: Lru[ProducerKey, ProducerState] = Lru(capacity)
        self.decided = self._decided.get
        vnode.on_reset(self._decided.clear)

    async def load(self, tx: Transaction, range_id: RangeId, producer_id: int) -> ProducerState | None:
        """The state as decided before this transaction."""
        state = self._decided.get((range_id, producer_id))
        if state is None:
            value = await tx.get(producer_key(range_id, producer_id))
            state = None if value is None else decode_producer(value)
        return state

    def save(
        self, tx: Transaction, changed: Mapping[ProducerKey, ProducerState], created: list[ProducerKey]
    ) -> None:
        """Write states; `created` are those that had none before."""
        for key, state in changed.items():
            tx.put(producer_key(*key), encode_producer(state))
        for key in created:
            self._expiries.put(tx, expiry_key(changed[key].last_used_ms + self._expiry_ms, *key))
        tx.when_decided(partial(self._decide, changed))

    async def expire(self, now_ms: int, limit: int) -> bool:
        """Look at up to `limit` states whose time has come; whether there may be more."""
        return await self._vnode.run(partial(self._expire, now_ms, limit))

    async def _expire(self, now_ms: int, limit: int, tx: Transaction) -> bool:
        due = await self._expiries.due(tx, now_ms, limit)
        for key in due:
            tx.delete(key)
            _, range_id, producer_id = read_expiry_key(key)
            state = await self.load(tx, range_id, producer_id)
            if state is None:
                continue
            expires_at = state.last_used_ms + self._expiry_ms
            if expires_at > now_ms:
                self._expiries.put(tx, expiry_key(expires_at, range_id, producer_id))
            else:
                self.remove(tx, range_id, producer_id)
        return len(due) == limit

    def remove(self, tx: Transaction, range_id: RangeId, producer_id: ProducerId) -> None:
        """Forget one producer of a range."""
        tx.delete(producer_key(range_id, producer_id))
        tx.when_decided(partial(self._decided.remove, (range_id, producer_id)))

    def _decide(self, changed: Mapping[ProducerKey, ProducerState]) -> None:
        for key, state in changed.items():
            self._decided.put(key, state)
