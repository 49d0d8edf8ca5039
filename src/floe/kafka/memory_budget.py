"""One limit for the bytes of all requests that a broker holds, from every connection.

A request's bytes count from before they are received until its work is done. A connection that finds no
room stops reading and waits here; room is given in order of arrival, so a large request is not starved by
small ones. Small requests that one read has brought are counted without asking, so `held` may pass the
limit by one read of each connection.

Invariants:
- Whoever waits is woken: by room, or by nobody holding anything (a request larger than the limit passes
  alone).
- `held` never counts a byte twice, and is 0 when nothing is under way.
"""

import asyncio
from collections.abc import Callable


class MemoryBudget:
    """Bytes held against one limit; not thread-safe, belongs to one event loop."""

    __slots__ = ("_is_waking", "_waiters", "has_waiters", "held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0  # added to directly for bytes that are in memory already
        self.has_waiters = False
        self._waiters: dict[Callable[[], None], int] = {}
        self._is_waking = False

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)

    def try_take(self, size: int) -> bool:
        """Count bytes that are about to be received, if there is room and nobody waits before."""
        if self._waiters or not self._has_room(size):
            return False
        self.held += size
        return True

    def give_back(self, size: int) -> None:
        self.held -= size
        if self.has_waiters:
            self._wake_soon()

    def wait(self, size: int, granted: Callable[[], None]) -> None:
        """Call `granted` once `size` bytes have room; they are counted before the call."""
        assert granted not in self._waiters
        self._waiters[granted] = size
        self.has_waiters = True

    def leave(self, granted: Callable[[], None]) -> None:
        """Wait no longer; harmless for one that does not wait."""
        if self._waiters.pop(granted, None) is not None:
            self._wake_soon()

    def _has_room(self, size: int) -> bool:
        return self.held + size <= self.limit or self.held == 0

    def _wake_soon(self) -> None:
        """Woken connections run handlers; a later turn of the loop keeps them out of the caller's stack."""
        if not self._is_waking:
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        while self._waiters:
            granted = next(iter(self._waiters))
            size = self._waiters[granted]
            if not self._has_room(size):
                return
            del self._waiters[granted]
            self.has_waiters = bool(self._waiters)
            self.held += size
            granted()
        self.has_waiters = False
