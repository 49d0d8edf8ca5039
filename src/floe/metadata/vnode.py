"""One vnode at its leader: serial transactions over an overlay, group commit, publication.

Theory of operation. A transaction is an async function that reads and writes through a `Transaction`.
Transactions of a vnode run one after the other. Each decides over the store plus the overlay: the writes of
earlier transactions that are not durable yet. When a body returns, its writes join the overlay and the next
body may start; its own caller waits until the writes are durable. Writes that gather while a store commit is
under way share the next one. Results and publications are released in transaction order, after durability.

When a store commit fails, the outcome of everything undurable is unknown or void: the overlay is dropped,
every caller waiting on it gets `Unavailable`, the listeners forget what they decided, and the vnode refuses
work until the store gives it a new term.

Invariants:
- Nothing is answered or published before it is durable.
- A body that raises leaves no trace.
- A body never awaits another vnode: two such bodies could wait for each other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from floe.metadata.store.port import Store, Write
from floe.model.errors import FloeError, Unavailable
from floe.model.ids import Term, VnodeId

T = TypeVar("T")
Pair = tuple[bytes, bytes]
GROUP_WRITES_MAX = 20_000  # bounds one store commit; what is beyond waits for the next


class Transaction:
    """The reads and writes of one body; reads see the body's own writes."""

    __slots__ = ("_decided", "_durable", "_vnode", "_writes")

    def __init__(self, vnode: "Vnode") -> None:
        self._vnode = vnode
        self._writes: dict[bytes, bytes | None] = {}
        self._decided: list[Callable[[], None]] = []
        self._durable: list[Callable[[], None]] = []

    async def get(self, key: bytes) -> bytes | None:
        for layer in (self._writes, self._vnode.overlay):
            if key in layer:
                return layer[key]
        return await self._vnode.get_durable(key)

    async def scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        """At most `limit` live pairs with start <= key < end, in order."""
        changed = self._changed(start, end)
        stored = await self._vnode.scan_durable(start, end, limit + len(changed))
        if not changed:
            return stored
        merged = {key: value for key, value in stored if key not in changed}
        merged.update((key, value) for key, value in changed.items() if value is not None)
        # A stored page that was full says nothing of keys past its end.
        is_full = len(stored) == limit + len(changed)
        last = stored[-1][0] if is_full else None
        keys = sorted(key for key in merged if last is None or key <= last)
        return [(key, merged[key]) for key in keys[:limit]]

    async def floor(self, key: bytes, low: bytes) -> Pair | None:
        """The live pair with the greatest key that is <= `key` and >= `low`."""
        changed = self._changed(low, key + b"\0")
        probe = key
        while True:
            stored = await self._vnode.floor_durable(probe, low)
            if stored is None or stored[0] not in changed:
                break
            if stored[0] <= low:
                stored = None
                break
            probe = _before(stored[0])
        best = max((k for k, v in changed.items() if v is not None), default=None)
        if best is None or (stored is not None and stored[0] > best):
            return stored
        value = changed[best]
        assert value is not None
        return best, value

    def put(self, key: bytes, value: bytes) -> None:
        self._writes[key] = value

    def delete(self, key: bytes) -> None:
        self._writes[key] = None

    def when_decided(self, action: Callable[[], None]) -> None:
        """Run `action` as soon as the body has returned: for caches of decided state."""
        self._decided.append(action)

    def when_durable(self, action: Callable[[], None]) -> None:
        """Run `action` once the writes are durable, in transaction order: for publication."""
        self._durable.append(action)

    def _changed(self, start: bytes, end: bytes) -> dict[bytes, bytes | None]:
        changed = {k: v for k, v in self._vnode.overlay.items() if start <= k < end}
        changed.update((k, v) for k, v in self._writes.items() if start <= k < end)
        return changed

    def _close(self) -> tuple[dict[bytes, bytes | None], list[Callable[[], None]]]:
        for action in self._decided:
            action()
        return self._writes, self._durable


class _Group:
    """Transactions whose writes share one store commit."""

    __slots__ = ("actions", "waiters", "writes")

    def __init__(self) -> None:
        self.writes: dict[bytes, bytes | None] = {}
        self.actions: list[Callable[[], None]] = []
        self.waiters: list[asyncio.Future[None]] = []


class Vnode:
    """The only writer of one vnode while `term` holds."""

    def __init__(self, store: Store, vnode_id: VnodeId) -> None:
        self.id = vnode_id
        self.overlay: dict[bytes, bytes | None] = {}
        self._store = store
        self._term: Term | None = None
        self._turn = asyncio.Lock()
        self._groups: list[_Group] = []
        self._flusher: asyncio.Task[None] | None = None
        self._is_committing = False
        self._reset_listeners: list[Callable[[], None]] = []

    @property
    def term(self) -> Term | None:
        """The term this broker leads with, or None."""
        return self._term

    def on_reset(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever decided but undurable state must be forgotten."""
        self._reset_listeners.append(listener)

    def led(self, term: Term | None) -> None:
        """Take or lose leadership; either way nothing decided before counts any more."""
        self._drop(Unavailable(f"leadership changed. vnode={self.id}"))
        self._term = term

    async def run(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run one transaction and return its result when it is durable.

        Raises what the body raises, with no effect; raises `Unavailable` when the outcome is unknown, which
        an idempotent caller settles by asking again.
        """
        async with self._turn:
            term = self._leading_term()
            transaction = Transaction(self)
            result = await body(transaction)
            if term != self._term:
                raise Unavailable(f"leadership changed. vnode={self.id}")
            durable = self._accept(transaction)
        if durable is not None:
            await durable
        return result

    async def get_durable(self, key: bytes) -> bytes | None:
        return await self._store.get(self.id, self._leading_term(), key)

    async def scan_durable(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        return await self._store.scan(self.id, self._leading_term(), start, end, limit)

    async def floor_durable(self, key: bytes, low: bytes) -> Pair | None:
        return await self._store.floor(self.id, self._leading_term(), key, low)

    async def close(self) -> None:
        """Wait for what is under way; nothing may be run afterwards."""
        if self._flusher is not None:
            await asyncio.wait([self._flusher])
        self.led(None)

    def _leading_term(self) -> Term:
        if self._term is None:
            raise Unavailable(f"this broker does not lead the vnode. vnode={self.id}")
        return self._term

    def _accept(self, transaction: Transaction) -> asyncio.Future[None] | None:
        writes, actions = transaction._close()
        if not writes and not actions and not self._groups:
            return None
        group = self._open_group()
        group.writes.update(writes)
        self.overlay.update(writes)
        group.actions.extend(actions)
        durable = asyncio.get_running_loop().create_future()
        group.waiters.append(durable)
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())
        return durable

    def _open_group(self) -> _Group:
        """The group that still gathers: never the first one while its commit is under way."""
        under_way = 1 if self._flusher is not None and self._is_committing else 0
        if len(self._groups) <= under_way or len(self._groups[-1].writes) >= GROUP_WRITES_MAX:
            self._groups.append(_Group())
        return self._groups[-1]

    async def _flush(self) -> None:
        try:
            while self._groups:
                group, term = self._groups[0], self._leading_term()
                self._is_committing = True
                writes: Sequence[Write] = list(group.writes.items())
                if writes:
                    await self._store.commit(self.id, term, writes)
                if term != self._term:
                    return
                self._is_committing = False
                self._groups.pop(0)
                self._publish(group)
        except FloeError as error:
            self._term = None
            self._drop(Unavailable(f"commit failed: {error}. vnode={self.id}"))
        finally:
            self._is_committing = False
            self._flusher = None
            if self._groups:
                self._flusher = asyncio.get_running_loop().create_task(self._flush())

    def _publish(self, group: _Group) -> None:
        for key in group.writes:
            # A later transaction may have changed the key again; its write stays in the overlay.
            if not any(key in later.writes for later in self._groups):
                del self.overlay[key]
        for action in group.actions:
            action()
        for waiter in group.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _drop(self, error: FloeError) -> None:
        groups, self._groups = self._groups, []
        self.overlay.clear()
        for listener in self._reset_listeners:
            listener()
        for group in groups:
            for waiter in group.waiters:
                if not waiter.done():
                    waiter.set_exception(error)


def _before(key: bytes) -> bytes:
    """A key just below `key`, for stepping down past a changed one; keys are shorter than 64 bytes."""
    if key[-1] == 0:
        return key[:-1]
    return key[:-1] + bytes((key[-1] - 1,)) + b"\xff" * 64
