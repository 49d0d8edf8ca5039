"""Long polls on ranges: who waits for what, and what wakes them.

A waiter registers before it reads, so nothing can slip between. An idle waiter costs its entry and nothing
else: there is no timer and no polling here; a time limit is its owner's business.
"""

import asyncio
from collections.abc import Iterable, Mapping

from floe.model.coordinates import RangeView
from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset, RangeId

_OK = ErrorCode.NONE


class Waiter:
    """One wait over ranges of any number of vnodes; `woken` holds the ranges that have something to say."""

    __slots__ = ("_future", "positions", "woken")

    def __init__(self, positions: Mapping[RangeId, Offset]) -> None:
        self.positions = positions
        self.woken: set[RangeId] = set()
        self._future: asyncio.Future[None] | None = None

    def wake(self, range_id: RangeId) -> None:
        self.woken.add(range_id)
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def future(self) -> asyncio.Future[None]:
        """Done as soon as a range has woken this waiter; made on demand, for one owner."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
            if self.woken:
                self._future.set_result(None)
        return self._future


class Waiters:
    """The waiters of one vnode's ranges."""

    def __init__(self) -> None:
        self._by_range: dict[RangeId, dict[Waiter, None]] = {}  # those of a range are woken first come first

    def __len__(self) -> int:
        return len(self._by_range)

    def add(self, waiter: Waiter, range_ids: Iterable[RangeId]) -> None:
        for range_id in range_ids:
            waiting = self._by_range.get(range_id)
            if waiting is None:
                self._by_range[range_id] = {waiter: None}
            else:
                waiting[waiter] = None

    def remove(self, waiter: Waiter, range_ids: Iterable[RangeId]) -> None:
        for range_id in range_ids:
            waiting = self._by_range.get(range_id)
            if waiting is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._by_range[range_id]

    def told(self, range_id: RangeId, view: RangeView) -> None:
        """Wake those for whom this view is news."""
        waiting = self._by_range.get(range_id)
        if waiting is not None:
            for waiter in waiting:
                if is_news(view, waiter.positions[range_id]):
                    waiter.wake(range_id)

    def wake_all(self) -> None:
        for range_id, waiting in self._by_range.items():
            for waiter in waiting:
                waiter.wake(range_id)


def is_news(view: RangeView, position: Offset) -> bool:
    """Whether a reader at this position would get records or an error."""
    return view.log_end > position or view.log_start > position or view.error is not _OK
