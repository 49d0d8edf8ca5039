"""One vnode at its leader: serial transactions over an overlay, group commit, publication.

Theory of operation. A transaction is an async function that reads and writes through a `Transaction`.
Transactions of a vnode run one after the other. Each decides over the store plus the overlay: the writes of
earlier transactions that are not durable yet. When a body returns, its writes join the overlay and the next
body may start; its own caller waits until the writes are durable. Writes that gather while a store commit is
under way share the next one. Results and publications are released in transaction order, after durability.

The overlay is the list of groups that are not durable, oldest first. A group joins it when its first
transaction is decided and leaves it when its store commit has returned, so the overlay can neither miss a
write that the store does not show yet nor keep one that it does.

Reads outside transactions (`get_durable`, `scan_durable`, `floor_durable`) go straight to the store and tell
only what has been published. The store may show a commit under way; since this vnode is the only writer, that
is the oldest group. A read whose answer depends on a key of that group is done again as a transaction, which
is answered when the group is durable and published. All other reads wait for nothing.

When a store commit fails, the outcome of everything undurable is unknown or void: the overlay is dropped,
every caller waiting on it gets `Unavailable`, the listeners forget what they decided, and the vnode refuses
work until the store gives it a new term.

Invariants:
- Nothing is answered or published before it is durable. A transaction that only read is answered when
  everything it may have seen is durable.
- A body that raises leaves no trace. One that was running while leadership changed has no effect either, and
  the listeners are told to forget once more when it has ended, before the next one starts.
- A body never awaits another vnode: two such bodies could wait for each other.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from floe.metadata.store.port import KEY_BYTES_MAX, Store
from floe.model.errors import Fenced, FloeError, Unavailable
from floe.model.ids import Term, VnodeId

T = TypeVar("T")
Pair = tuple[bytes, bytes]
Writes = dict[bytes, bytes | None]
Action = Callable[[], None]

GROUP_WRITES_MAX = 20_000  # bounds one store commit; what is beyond waits for the next
GROUPS_MAX = 4  # bounds the overlay; beyond it a transaction waits for room


class _Group:
    """Transactions whose writes share one store commit; closed when that commit begins."""

    __slots__ = ("_sorted", "actions", "is_closed", "waiters", "writes")

    def __init__(self) -> None:
        self.writes: Writes = {}
        self.actions: list[Action] = []
        self.waiters: list[asyncio.Future[None]] = []
        self.is_closed = False
        self._sorted: list[bytes] | None = None

    def touches(self, low: bytes, high: bytes) -> bool:
        """Whether a closed group writes a key with low <= key < high."""
        if self._sorted is None:
            self._sorted = sorted(self.writes)
        index = bisect_left(self._sorted, low)
        return index < len(self._sorted) and self._sorted[index] < high


class Transaction:
    """The reads and writes of one body; reads see the body's own writes and everything decided before."""

    __slots__ = ("_decided", "_durable", "_groups", "_vnode", "_writes")

    def __init__(self, vnode: "Vnode", groups: deque[_Group]) -> None:
        self._vnode = vnode
        self._groups = groups
        self._writes: Writes = {}
        self._decided: list[Action] = []
        self._durable: list[Action] = []

    async def get(self, key: bytes) -> bytes | None:
        if key in self._writes:
            return self._writes[key]
        for group in reversed(self._groups):
            if key in group.writes:
                return group.writes[key]
        return await self._vnode._get(key)

    async def scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        """At most `limit` live pairs with start <= key < end, in order."""
        changed = self._changed(start, end)
        # At most len(changed) stored pairs are hidden, so a page that much longer cannot run short.
        page = limit + len(changed)
        stored = await self._vnode._scan(start, end, page)
        if not changed:
            return stored
        merged = {key: value for key, value in stored if key not in changed}
        # A page that was full says nothing of keys past its end.
        last = stored[-1][0] if len(stored) == page else end
        merged.update((k, v) for k, v in changed.items() if v is not None and k <= last)
        return [(key, merged[key]) for key in sorted(merged)[:limit]]

    async def floor(self, key: bytes, low: bytes) -> Pair | None:
        """The live pair with the greatest key that is <= `key` and >= `low`."""
        changed = self._changed(low, key + b"\0")
        stored = await self._vnode._floor(key, low)
        while stored is not None and stored[0] in changed:
            probe = _before(stored[0])
            stored = await self._vnode._floor(probe, low) if probe >= low else None
        best = max((k for k, v in changed.items() if v is not None), default=None)
        if best is None or (stored is not None and stored[0] > best):
            return stored
        value = changed[best]
        assert value is not None
        return best, value

    def put(self, key: bytes, value: bytes) -> None:
        assert 0 < len(key) <= KEY_BYTES_MAX
        self._writes[key] = value

    def delete(self, key: bytes) -> None:
        self._writes[key] = None

    def when_decided(self, action: Action) -> None:
        """Run `action` as soon as the body has returned: for caches of decided state."""
        self._decided.append(action)

    def when_durable(self, action: Action) -> None:
        """Run `action` once the writes are durable, in transaction order: for publication."""
        self._durable.append(action)

    def _changed(self, start: bytes, end: bytes) -> Writes:
        """What the store does not show yet of these keys; costs in proportion to the overlay."""
        changed: Writes = {}
        for group in self._groups:
            changed.update((k, v) for k, v in group.writes.items() if start <= k < end)
        changed.update((k, v) for k, v in self._writes.items() if start <= k < end)
        return changed


class Vnode:
    """The only writer of one vnode while `term` holds."""

    def __init__(self, store: Store, vnode_id: VnodeId) -> None:
        self.id = vnode_id
        self._store = store
        self._term: Term | None = None
        self._turn = asyncio.Lock()
        self._groups: deque[_Group] = deque()
        self._flusher: asyncio.Task[None] | None = None
        self._reset_listeners: list[Action] = []

    @property
    def term(self) -> Term | None:
        """The term this broker leads with, or None."""
        return self._term

    def on_reset(self, listener: Action) -> None:
        """Call `listener` whenever decided but undurable state must be forgotten; it may be called twice."""
        self._reset_listeners.append(listener)

    def led(self, term: Term | None) -> None:
        """Take or lose leadership; either way nothing decided before counts any more."""
        self._term = term
        self._drop(f"leadership changed. vnode={self.id}")

    async def run(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run one transaction and return its result when it is durable.

        Raises what the body raises, with no effect; raises `Unavailable` when the outcome is unknown, which
        an idempotent caller settles by asking again.
        """
        async with self._turn:
            while len(self._groups) >= GROUPS_MAX:
                await self._joined(self._groups[0])
            term = self._leading_term()
            transaction = Transaction(self, self._groups)
            try:
                result = await body(transaction)
            except BaseException as error:
                if term == self._term:
                    raise
                deposed = self._deposed()
                if not isinstance(error, Exception):
                    raise
                # Whatever it says, it was decided over an overlay that vanished under it.
                raise deposed from error
            if term != self._term:
                raise self._deposed()
            durable = self._accept(transaction)
        if durable is not None:
            await durable
        return result

    async def get_durable(self, key: bytes) -> bytes | None:
        """For use outside transactions only, as the two below."""
        term = self._leading_term()
        value = await self._get(key)
        if self._is_telling_too_much(term, key, key + b"\0"):
            return await self.run(lambda tx: tx.get(key))
        return value

    async def scan_durable(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        term = self._leading_term()
        pairs = await self._scan(start, end, limit)
        # Keys past the end of a full page have no part in the answer.
        reach = pairs[-1][0] + b"\0" if pairs and len(pairs) == limit else end
        if self._is_telling_too_much(term, start, reach):
            return await self.run(lambda tx: tx.scan(start, end, limit))
        return pairs

    async def floor_durable(self, key: bytes, low: bytes) -> Pair | None:
        term = self._leading_term()
        pair = await self._floor(key, low)
        # Keys below the one found have no part in the answer.
        if self._is_telling_too_much(term, pair[0] if pair else low, key + b"\0"):
            return await self.run(lambda tx: tx.floor(key, low))
        return pair

    async def close(self) -> None:
        """Wait for what is decided to become durable; whatever comes later is refused."""
        while self._flusher is not None:
            await asyncio.wait([self._flusher])
        self.led(None)

    async def _get(self, key: bytes) -> bytes | None:
        term = self._leading_term()
        try:
            return await self._store.get(self.id, term, key)
        except Fenced as error:
            raise self._fenced(term) from error

    async def _scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        term = self._leading_term()
        try:
            return await self._store.scan(self.id, term, start, end, limit)
        except Fenced as error:
            raise self._fenced(term) from error

    async def _floor(self, key: bytes, low: bytes) -> Pair | None:
        term = self._leading_term()
        try:
            return await self._store.floor(self.id, term, key, low)
        except Fenced as error:
            raise self._fenced(term) from error

    def _fenced(self, term: Term) -> Unavailable:
        """The store says that a term is over, maybe before `led` does."""
        if term == self._term:
            self.led(None)
        return Unavailable(f"leadership changed. vnode={self.id}")

    def _is_telling_too_much(self, term: Term, low: bytes, high: bytes) -> bool:
        """Whether a read of these keys that has just ended may show what is not published.

        A group that was dropped meanwhile may be shown, too; then the term is over.
        """
        if term != self._term:
            raise Unavailable(f"leadership changed. vnode={self.id}")
        groups = self._groups
        return bool(groups) and groups[0].is_closed and groups[0].touches(low, high)

    def _leading_term(self) -> Term:
        if self._term is None:
            raise Unavailable(f"this broker does not lead the vnode. vnode={self.id}")
        return self._term

    def _deposed(self) -> Unavailable:
        """The end of a body during which leadership changed: what it cached meanwhile must go, too."""
        self._forget()
        return Unavailable(f"leadership changed. vnode={self.id}")

    def _accept(self, transaction: Transaction) -> asyncio.Future[None] | None:
        """Add a decided transaction to the overlay; returns what its caller waits for, if anything."""
        try:
            for action in transaction._decided:
                action()
        except BaseException:
            self._forget()
            raise
        writes, actions = transaction._writes, transaction._durable
        if not self._groups and not writes:
            _run_all(actions)
            return None
        group = self._open_group() if writes else self._groups[-1]
        group.writes.update(writes)
        group.actions.extend(actions)
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())
        return self._joined(group)

    def _open_group(self) -> _Group:
        """The group that still gathers."""
        groups = self._groups
        if not groups or groups[-1].is_closed or len(groups[-1].writes) >= GROUP_WRITES_MAX:
            groups.append(_Group())
        return groups[-1]

    def _joined(self, group: _Group) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group.waiters.append(waiter)
        return waiter

    async def _flush(self) -> None:
        """Commit group after group until none is left."""
        try:
            while self._groups:
                group, term = self._groups[0], self._leading_term()
                group.is_closed = True
                failure = await self._commit(group, term)
                if not self._groups or self._groups[0] is not group:
                    continue  # Dropped while under way: its outcome interests nobody.
                if failure is None:
                    self._groups.popleft()
                    _publish(group)
                else:
                    self._term = None
                    self._drop(f"commit failed: {failure}. vnode={self.id}")
        finally:
            self._flusher = None

    async def _commit(self, group: _Group, term: Term) -> Exception | None:
        """Commit one group; a task boundary, so that a store's bug cannot leave callers waiting for ever."""
        try:
            await self._store.commit(self.id, term, list(group.writes.items()))
        except FloeError as error:
            return error
        except Exception as error:  # noqa: BLE001
            _report("a store raised an unexpected error", error)
            return error
        return None

    def _drop(self, reason: str) -> None:
        dropped = list(self._groups)
        self._groups.clear()
        self._forget()
        for group in dropped:
            for waiter in group.waiters:
                if not waiter.done():
                    waiter.set_exception(Unavailable(reason))

    def _forget(self) -> None:
        _run_all(self._reset_listeners)


def _publish(group: _Group) -> None:
    _run_all(group.actions)
    for waiter in group.waiters:
        if not waiter.done():
            waiter.set_result(None)


def _run_all(actions: Iterable[Action]) -> None:
    """Run each; one that fails is a bug and is reported, but must not keep the others from running."""
    for action in actions:
        try:
            action()
        except Exception as error:  # noqa: BLE001
            _report("a publication or reset failed", error)


def _report(message: str, error: Exception) -> None:
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


def _before(key: bytes) -> bytes:
    """A string that no key fits between and `key`: for stepping down past a changed one."""
    if key[-1] == 0:
        return key[:-1]
    return key[:-1] + bytes((key[-1] - 1,)) + b"\xff" * KEY_BYTES_MAX
