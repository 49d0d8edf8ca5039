"""The store for tests and simulation: vnodes become durable one by one, in any order, and can fail.

With a `random.Random` every commit takes time before it becomes durable and again before it is acknowledged,
drawn per commit, so the vnodes' parts of one change become durable in random order and a crash finds some of
them durable, some not, and some durable without anybody knowing. Commits of one vnode keep their order.

The durable state is a `MemoryDisk`, which outlives the store: a new store on the same disk is the next
incarnation, with higher terms; the earlier one is fenced by them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from enum import Enum
from random import Random

from floe.metadata.store.leadership import LeadershipFeed
from floe.metadata.store.port import Leadership, Write
from floe.model.error_codes import ErrorCode
from floe.model.errors import Fenced, Rejected, Unavailable
from floe.model.ids import Term, VnodeId
from floe.storage.kv.memory import MemoryKeyValue

VNODE_COUNT = 16
DELAY_SECONDS_MAX = 0.002


class CommitFault(Enum):
    """How a commit fails. After each of them the vnode gets a new term."""

    LOST = "lost"  # not durable, and the caller cannot know
    APPLIED = "applied"  # durable, and the caller cannot know
    FENCED = "fenced"  # not durable: somebody else led the vnode meanwhile


FaultSource = Callable[[VnodeId, Sequence[Write]], CommitFault | None]


class MemoryDisk:
    """What survives a crash: each vnode's pairs and the newest term handed out for it."""

    def __init__(self, vnode_count: int = VNODE_COUNT) -> None:
        self.vnodes = [MemoryKeyValue() for _ in range(vnode_count)]
        self.terms = [0] * vnode_count


class MemoryStore:
    """The port on a `MemoryDisk`. `faults`, when set, is asked before each commit takes effect."""

    def __init__(
        self,
        vnode_count: int = VNODE_COUNT,
        *,
        random: Random | None = None,
        disk: MemoryDisk | None = None,
        delay_seconds_max: float = DELAY_SECONDS_MAX,
    ) -> None:
        self.disk = disk or MemoryDisk(vnode_count)
        self.faults: FaultSource | None = None
        self._random = random
        self._delay_seconds_max = delay_seconds_max
        self._is_open = True
        self._queues = [asyncio.Lock() for _ in self.disk.vnodes]
        self._feed = LeadershipFeed()
        for vnode in range(self.vnode_count):
            self._take(VnodeId(vnode))

    @property
    def vnode_count(self) -> int:
        return len(self.disk.vnodes)

    def lead(self) -> AsyncIterator[Leadership]:
        return self._feed.follow()

    async def commit(self, vnode: VnodeId, term: Term, writes: Sequence[Write]) -> None:
        self._check(vnode, term)
        async with self._queues[vnode]:
            await self._pause()
            self._check(vnode, term)
            fault = self.faults(vnode, writes) if self.faults else None
            if fault in (None, CommitFault.APPLIED):
                self.disk.vnodes[vnode].write(writes)
                self.disk.vnodes[vnode].sync()
            if fault is not None:
                self._take(vnode)
                raise _failure(fault, vnode)
            await self._pause()
        if not self._is_open:
            raise Unavailable(f"the store is closed. vnode={vnode}")

    async def get(self, vnode: VnodeId, term: Term, key: bytes) -> bytes | None:
        self._check(vnode, term)
        return self.disk.vnodes[vnode].get(key)

    async def scan(
        self, vnode: VnodeId, term: Term, start: bytes, end: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        self._check(vnode, term)
        return self.disk.vnodes[vnode].scan(start, end, limit)

    async def floor(self, vnode: VnodeId, term: Term, key: bytes, low: bytes) -> tuple[bytes, bytes] | None:
        self._check(vnode, term)
        return self.disk.vnodes[vnode].floor(key, low)

    async def close(self) -> None:
        for vnode in range(self.vnode_count):
            self._feed.tell(VnodeId(vnode), None)
        self.crash()

    def crash(self) -> MemoryDisk:
        """Lose what is not durable; returns the disk for the next incarnation."""
        self._is_open = False
        self._feed.close()
        return self.disk

    def depose(self, vnode: VnodeId) -> None:
        """As if another broker had led the vnode for a moment: commits under way are fenced."""
        self._take(vnode)

    def _take(self, vnode: VnodeId) -> None:
        self.disk.terms[vnode] += 1
        self._feed.tell(vnode, Term(self.disk.terms[vnode]))

    def _check(self, vnode: VnodeId, term: Term) -> None:
        if not 0 <= vnode < self.vnode_count:
            raise Rejected(ErrorCode.INVALID_REQUEST, f"there is no such vnode. vnode={vnode}")
        if not self._is_open or term != self.disk.terms[vnode]:
            raise Fenced(f"the term is over. vnode={vnode} term={term}")

    async def _pause(self) -> None:
        delay = self._random.uniform(0, self._delay_seconds_max) if self._random else 0
        await asyncio.sleep(delay)


def _failure(fault: CommitFault, vnode: VnodeId) -> Fenced | Unavailable:
    if fault is CommitFault.FENCED:
        return Fenced(f"somebody else leads the vnode. vnode={vnode}")
    return Unavailable(f"no answer to the commit. vnode={vnode}")
