"""The store of a lone broker: all vnodes in one key-value map, one sync per group commit.

Commits that arrive in one turn of the event loop, of whatever vnodes, gather in a group. The group is written
to the map at once and synced in a thread; when the sync has returned, all its commits are acknowledged. What
arrives meanwhile gathers in the next group, which begins after the callers of the first have run, so that
their next commits are in it. The map shows a group from its write on, before it is durable.

A failed write or sync leaves the map in an unknown state that only a new opening can settle (the kernel
reports a failed sync once and then forgets), so the store fences itself for good: every vnode is lost, and
the broker must be restarted. Terms come from a counter that is raised durably at each opening.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress

from floe.metadata.store.leadership import LeadershipFeed
from floe.metadata.store.port import Leadership, Write
from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Fenced, Rejected, Unavailable
from floe.model.ids import Term, VnodeId
from floe.observability.crash_points import crash_point
from floe.observability.metrics import Metrics
from floe.storage.kv.port import KeyValue
from floe.storage.quick_thread import QuickThread

VNODE_COUNT = 16
VNODES_MAX = 0xFFFF
_PREFIX_BYTES = 2  # the vnode, before every key
_OWN = b"\xff\xff"  # the store's own facts, after every vnode
_COUNT_KEY = _OWN + b"vnode count"
_TERM_KEY = _OWN + b"term"


class _Group:
    """The commits that share one sync."""

    __slots__ = ("waiters", "writes")

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.waiters: list[asyncio.Future[None]] = []


class LocalStore:
    """The port over one key-value map, which it owns: `close` closes it."""

    def __init__(
        self,
        kv: KeyValue,
        vnode_count: int = VNODE_COUNT,
        *,
        executor: Executor | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        assert 0 < vnode_count < VNODES_MAX
        self._kv = kv
        self._prefixes = [vnode.to_bytes(_PREFIX_BYTES, "big") for vnode in range(vnode_count)]
        self._own_executor = None if executor else QuickThread("floe-metadata-sync")
        self._executor = executor or self._own_executor
        self._group_writes = metrics.group_commit_writes if metrics else None
        self._gathering: _Group | None = None
        self._syncing: _Group | None = None
        self._feed = LeadershipFeed()
        self._term: Term | None = _open(kv, vnode_count)
        self._tell_all()

    @property
    def vnode_count(self) -> int:
        return len(self._prefixes)

    def lead(self) -> AsyncIterator[Leadership]:
        return self._feed.follow()

    async def commit(self, vnode: VnodeId, term: Term, writes: Sequence[Write]) -> None:
        prefix = self._prefix(vnode, term)
        loop = asyncio.get_running_loop()
        group = self._gathering
        if group is None:
            group = self._gathering = _Group()
            if self._syncing is None:
                loop.call_soon(self._begin)
        group.writes.extend([(prefix + key, value) for key, value in writes])
        waiter: asyncio.Future[None] = loop.create_future()
        group.waiters.append(waiter)
        await waiter

    async def get(self, vnode: VnodeId, term: Term, key: bytes) -> bytes | None:
        return self._kv.get(self._prefix(vnode, term) + key)

    async def scan(
        self, vnode: VnodeId, term: Term, start: bytes, end: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        prefix = self._prefix(vnode, term)
        pairs = self._kv.scan(prefix + start, prefix + end, limit)
        return [(key[_PREFIX_BYTES:], value) for key, value in pairs]

    async def floor(self, vnode: VnodeId, term: Term, key: bytes, low: bytes) -> tuple[bytes, bytes] | None:
        prefix = self._prefix(vnode, term)
        pair = self._kv.floor(prefix + key, prefix + low)
        return None if pair is None else (pair[0][_PREFIX_BYTES:], pair[1])

    async def close(self) -> None:
        """Wait for the commits under way, then close the map; harmless when repeated."""
        while (group := self._gathering or self._syncing) is not None:
            with suppress(Unavailable):
                await self._joined(group)
        self._end("the metadata store is closed")
        if self._own_executor is not None:
            self._own_executor.shutdown()
        self._kv.close()

    def _prefix(self, vnode: VnodeId, term: Term) -> bytes:
        """The vnode's key prefix, once it is proved that this store leads it with this term."""
        if not 0 <= vnode < len(self._prefixes):
            raise Rejected(ErrorCode.INVALID_REQUEST, f"there is no such vnode. vnode={vnode}")
        if term != self._term:
            raise Fenced(f"the term is over. vnode={vnode} term={term}")
        return self._prefixes[vnode]

    def _begin(self) -> None:
        """Write the group that has gathered and start its sync."""
        group, self._gathering = self._gathering, None
        if group is None or self._term is None:
            return
        self._syncing = group
        if self._group_writes is not None:
            self._group_writes.observe(len(group.writes))
        try:
            self._kv.write(group.writes)
        except Exception as error:  # noqa: BLE001 - whatever it is, callers must not wait for ever
            self._fail(error)
            return
        crash_point("mid_group_commit")
        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._executor, self._kv.sync).add_done_callback(self._synced)

    def _synced(self, sync: asyncio.Future[None]) -> None:
        error = sync.exception()
        if error is not None:
            self._fail(error)
            return
        group, self._syncing = self._syncing, None
        assert group is not None
        for waiter in group.waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self._gathering is not None:
            asyncio.get_running_loop().call_soon(self._begin)

    def _joined(self, group: _Group) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group.waiters.append(waiter)
        return waiter

    def _fail(self, error: BaseException) -> None:
        self._end(f"the metadata store failed and must be opened again: {error}")

    def _end(self, reason: str) -> None:
        groups, self._syncing, self._gathering = (self._syncing, self._gathering), None, None
        if self._term is not None:
            self._term = None
            self._tell_all()
            self._feed.close()
        for group in groups:
            for waiter in group.waiters if group else ():
                if not waiter.done():
                    waiter.set_exception(Unavailable(reason))

    def _tell_all(self) -> None:
        for vnode in range(self.vnode_count):
            self._feed.tell(VnodeId(vnode), self._term)


def _open(kv: KeyValue, vnode_count: int) -> Term:
    """Check that the map was born with as many vnodes, and take the next term, durably."""
    born_with = kv.get(_COUNT_KEY)
    if born_with is not None and _read_int(born_with) != vnode_count:
        raise Rejected(
            ErrorCode.INVALID_CONFIG,
            f"the metadata store was created with {_read_int(born_with)} vnodes and cannot be opened with "
            f"{vnode_count}",
        )
    term = _read_int(kv.get(_TERM_KEY) or bytes(8)) + 1
    kv.write([(_COUNT_KEY, vnode_count.to_bytes(8, "big")), (_TERM_KEY, term.to_bytes(8, "big"))])
    kv.sync()
    return Term(term)


def _read_int(value: bytes) -> int:
    if len(value) != 8:
        raise Corrupt(f"the metadata store's own facts are damaged. size={len(value)}")
    return int.from_bytes(value, "big")
