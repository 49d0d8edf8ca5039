"""A queue of keys ordered by time, in a vnode's store.

Keys are a prefix, eight bytes of time and whatever tells them apart. Keys come and go at the front all day,
and an ordered store passes over deleted keys one by one; so a scan begins where the first key can be at
all. That place is only a hint in memory: it is lowered by every put, raised by scans, and forgotten on a
reset.
"""

from functools import partial

from floe.metadata.keys import u64
from floe.metadata.vnode import Transaction, Vnode


class DueQueue:
    """The keys under one prefix."""

    def __init__(self, vnode: Vnode, prefix: bytes) -> None:
        self._prefix = prefix
        self._low = prefix
        vnode.on_reset(self._forget)

    async def due(self, tx: Transaction, now_ms: int, limit: int) -> list[bytes]:
        """Up to `limit` keys whose time has come, earliest first."""
        end = self._prefix + u64(max(now_ms, 0) + 1)
        pairs = await tx.scan(self._low, end, limit) if self._low < end else []
        tx.when_decided(partial(self._raise, pairs[0][0] if pairs else max(end, self._low)))
        return [key for key, _ in pairs]

    def put(self, tx: Transaction, key: bytes) -> None:
        tx.put(key, b"")
        tx.when_decided(partial(self._lower, key))

    def _raise(self, key: bytes) -> None:
        self._low = max(self._low, key)

    def _lower(self, key: bytes) -> None:
        if key < self._low:
            self._low = key

    def _forget(self) -> None:
        self._low = self._prefix
