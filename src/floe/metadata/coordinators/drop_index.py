"""The index of when a range can next have something to drop, ordered by time.

A range's record says where its entry is, so an entry that the record does not name is stale.
"""

import struct

from floe.machines.retention import NEVER
from floe.metadata.coordinators.due_queue import DueQueue
from floe.metadata.keys import DROP
from floe.metadata.vnode import Transaction, Vnode
from floe.model.ids import RangeId

_KEY = struct.Struct(">cQQ")


class DropIndex:
    """The entries of one vnode's ranges."""

    def __init__(self, vnode: Vnode) -> None:
        self._queue = DueQueue(vnode, DROP)

    async def due(self, tx: Transaction, now_ms: int, limit: int) -> list[tuple[int, RangeId]]:
        """Up to `limit` times and ranges that can have something to drop now, earliest first."""
        return [_read_key(key) for key in await self._queue.due(tx, now_ms, limit)]

    def move(self, tx: Transaction, range_id: RangeId, before: int, after: int) -> None:
        """Move a range's entry from one time to another; either may be `NEVER`."""
        if before == after:
            return
        if before != NEVER:
            tx.delete(_KEY.pack(DROP, before, range_id))
        if after != NEVER:
            self._queue.put(tx, _KEY.pack(DROP, after, range_id))


def _read_key(key: bytes) -> tuple[int, RangeId]:
    _, time_ms, range_id = _KEY.unpack(key)
    return time_ms, RangeId(range_id)
