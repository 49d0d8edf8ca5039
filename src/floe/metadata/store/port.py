"""The store port: one ordered, fenced, durable key space per vnode.

There is no call that touches two vnodes, and none may be added: everything above must hold when the
vnodes' parts of one change become durable in any order, with a crash between any two.

Contract, checked by one suite for every adapter (`floe.testing.contracts.store`):

- `lead` yields leadership changes of this broker; the first commit or read of a vnode needs a term from it.
- `commit` is atomic and durable when it returns. Commits of one vnode become durable in call order.
  It raises `Fenced` when the term is not the vnode's own, `Unavailable` when the outcome is unknown;
  after either, the caller must drop what it decided and wait for a new term.
- Reads see every commit that has returned and none that failed. They may show one that is under way: its
  caller, the only writer of the vnode, knows it and keeps it to itself until the commit has returned. They
  raise `Fenced` when this broker cannot prove that it leads with this term.
- `lead` has one consumer. It tells every vnode that is led already, then each change; of several changes of
  one vnode only the newest may be told. It ends when the store is closed.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from floe.model.ids import Term, VnodeId

KEY_BYTES_MAX = 320  # a prefix and a topic name fit
Write = tuple[bytes, bytes | None]  # key, value; None deletes


@dataclass(frozen=True, slots=True)
class Leadership:
    """This broker leads `vnode` with `term`, or, when `term` is None, no longer does."""

    vnode: VnodeId
    term: Term | None


class Store(Protocol):
    """The durable form of all vnodes that this broker takes part in."""

    @property
    def vnode_count(self) -> int: ...

    def lead(self) -> AsyncIterator[Leadership]: ...

    async def commit(self, vnode: VnodeId, term: Term, writes: Sequence[Write]) -> None: ...

    async def get(self, vnode: VnodeId, term: Term, key: bytes) -> bytes | None: ...

    async def scan(
        self, vnode: VnodeId, term: Term, start: bytes, end: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """At most `limit` pairs with start <= key < end, in order."""
        ...

    async def floor(self, vnode: VnodeId, term: Term, key: bytes, low: bytes) -> tuple[bytes, bytes] | None:
        """The pair with the greatest key that is <= `key` and >= `low`."""
        ...

    async def close(self) -> None: ...
