"""One limit for the bytes of all requests that a broker holds, from every connection.

Bytes count from before they are received until their request's work is done. A long request takes its
memory in steps as it arrives, so that announcing one costs a peer what it costs the broker. A connection
that finds no room stops reading and waits here; room is given in order of arrival, so a long request is
not starved by short ones.

When everything held belongs to requests that are still arriving, nothing under way will make room. Then one,
the first in line, may pass the limit until it is complete; so neither requests that stop each other half way
nor peers that fall silent there keep the rest from being served.

Invariants:
- Whoever waits is woken: by room, or when nothing under way would ever make room.
- `held` passes the limit by one request, and by one read of short requests per connection, at most.
- `held` never counts a byte twice, and is 0 when nothing is under way.
"""

import asyncio
from collections.abc import Callable

Granted = Callable[[], None]


class MemoryBudget:
    """Bytes held against one limit; not thread-safe, belongs to one event loop.

    Connections are known by the callback that tells them of room.
    """

    __slots__ = ("_is_waking", "_privileged", "_waiters", "arriving", "has_waiters", "held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0  # added to directly for short requests, which are in memory already
        self.arriving = 0  # the part of `held` that belongs to requests not yet complete
        self.has_waiters = False
        self._waiters: dict[Granted, int] = {}
        self._privileged: Granted | None = None
        self._is_waking = False

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)

    @property
    def is_tight(self) -> bool:
        """Whether less than half is left, so that steps should be small."""
        return self.held * 2 > self.limit

    def try_take(self, size: int, who: Granted) -> bool:
        """Count bytes that are about to arrive, if there is room and nobody waits before."""
        if self._privileged != who and (self._waiters or not self._has_room(size)):
            return False
        self.held += size
        self.arriving += size
        return True

    def wait(self, size: int, granted: Granted) -> None:
        """Call `granted` once `size` bytes have room; they are counted before the call."""
        assert granted not in self._waiters
        self._waiters[granted] = size
        self.has_waiters = True
        if self.held == self.arriving:
            self._wake_soon()

    def complete(self, size: int, who: Granted) -> None:
        """A request has arrived; its bytes stay until they are given back."""
        self.arriving -= size
        self._end_privilege(who)

    def give_back(self, size: int) -> None:
        """The work of a request is done."""
        self.held -= size
        if self.has_waiters:
            self._wake_soon()

    def leave(self, size: int, who: Granted) -> None:
        """A connection is gone with `size` bytes of a request that did not arrive."""
        self.held -= size
        self.arriving -= size
        self._waiters.pop(who, None)
        self._end_privilege(who)
        self._wake_soon()

    def _has_room(self, size: int) -> bool:
        return self.held + size <= self.limit or self.held == 0

    def _end_privilege(self, who: Granted) -> None:
        if self._privileged == who:
            self._privileged = None

    def _wake_soon(self) -> None:
        """Woken connections run handlers; a later turn of the loop keeps them out of the caller's stack."""
        if self._waiters and not self._is_waking:
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        while self._waiters:
            granted = next(iter(self._waiters))
            size = self._waiters[granted]
            if not self._has_room(size):
                if self.held > self.arriving or self._privileged is not None:
                    break
                self._privileged = granted if size else None
            del self._waiters[granted]
            self.held += size
            self.arriving += size
            self.has_waiters = bool(self._waiters)
            granted()
        self.has_waiters = bool(self._waiters)
