"""Object ids, leased in blocks ahead of need, so that the home of the bucket is not on the produce path.

An id belongs to a time bucket and must be committed before the bucket closes. Ids are therefore used only
until shortly after their bucket's end; what is left of a block is then dropped. Every issued id that no
object came to use is looked for in the store when its bucket closes, so blocks follow the rate of use:
a refill that comes soon after the last one is twice as large, a late one half.

Nothing here runs unless ids are taken: an idle broker leases none.
"""

import asyncio
from collections import deque

from floe.metadata.api import Metadata
from floe.model.errors import FloeError, Unavailable
from floe.model.ids import ObjectId, bucket_at, bucket_of
from floe.observability.clock import Clock
from floe.observability.logs import get_log

BLOCK_MIN = 8
BLOCK_MAX = 1024
SOON_SECONDS = 10.0
LATE_SECONDS = 60.0
BACKOFF_MIN_SECONDS = 0.01
BACKOFF_MAX_SECONDS = 1.0

_log = get_log("object_log")


class ObjectIds:
    """The ids that this broker may use now."""

    def __init__(self, *, metadata: Metadata, clock: Clock, grace_ms: int) -> None:
        self._metadata = metadata
        self._clock = clock
        self._grace_ms = grace_ms
        self._ids: deque[ObjectId] = deque()
        self._block = BLOCK_MIN
        self._leased_at = float("-inf")
        self._lease: asyncio.Task[None] | None = None

    def take_now(self) -> ObjectId | None:
        """An id at no wait, or None; asks for more when few are left."""
        ids = self._ids
        now_ms = self._clock.now_ms()
        oldest = bucket_at(now_ms - self._grace_ms)
        while ids and bucket_of(ids[0]) < oldest:
            ids.popleft()
        taken = ids.popleft() if ids else None
        if len(ids) <= self._block // 2 or bucket_of(ids[-1]) < bucket_at(now_ms):
            self._refill()
        return taken

    async def take(self, deadline: float) -> ObjectId:
        """An id, waiting for a lease if need be; raise `Unavailable` at the deadline."""
        delay = BACKOFF_MIN_SECONDS
        while True:
            taken = self.take_now()
            if taken is not None:
                return taken
            if self._lease is not None:
                await asyncio.wait([self._lease])
            if not self._ids:
                if self._clock.monotonic() + delay > deadline:
                    raise Unavailable("no object id could be leased in time")
                await asyncio.sleep(delay)
                delay = min(2 * delay, BACKOFF_MAX_SECONDS)

    async def close(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
            await asyncio.wait([self._lease])

    def _refill(self) -> None:
        if self._lease is None:
            self._lease = asyncio.get_running_loop().create_task(self._lease_block())

    async def _lease_block(self) -> None:
        now = self._clock.monotonic()
        if now - self._leased_at < SOON_SECONDS:
            self._block = min(2 * self._block, BLOCK_MAX)
        elif now - self._leased_at > LATE_SECONDS:
            self._block = max(self._block // 2, BLOCK_MIN)
        try:
            self._ids.extend(await self._metadata.lease_object_ids(self._block))
            self._leased_at = now
        except FloeError as error:
            _log.warning("object ids not leased", reason=str(error))
        finally:
            self._lease = None
