"""The key-value port: one ordered, durable map of bytes to bytes, under one process.

Contract, kept by every adapter and checked by one suite (`floe.testing.contracts.kv`):

- `write` is atomic and takes effect at once for every reader of this process, but is not yet durable.
- `sync` makes every `write` that returned before it was called durable. It may run in another thread while
  reads and writes go on, and it does not hold the interpreter's lock while it waits for the disk.
- After a crash the map holds the first n writes of its history, n at least the number made before the last
  `sync` that returned: never a later write without an earlier one, never half of one.
- Keys are ordered as bytes. A scan or a floor costs in proportion to what it returns, times at most the
  logarithm of the map's size, plus what was deleted lately between its start and its first pair: whoever
  deletes from the front of a run of keys (a queue, a log) should start its scans at the known front.
- A failed `write` or `sync` raises `Unavailable`. After a failed `sync` what was written since the last good
  one may be lost, so every later `write` and `sync` fails as well: the owner must close and open again.
- Wrong stored bytes raise `Corrupt`.
"""

from collections.abc import Sequence
from typing import Protocol

Write = tuple[bytes, bytes | None]  # key, value; None deletes
Pair = tuple[bytes, bytes]


class KeyValue(Protocol):
    """All calls are synchronous; all but `sync`, and `close`, take microseconds."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        """At most `limit` pairs with start <= key < end, in order."""
        ...

    def floor(self, key: bytes, low: bytes) -> Pair | None:
        """The pair with the greatest key that is <= `key` and >= `low`."""
        ...

    def write(self, writes: Sequence[Write]) -> None:
        """Apply all, in order, atomically; a later write of the same key wins."""
        ...

    def sync(self) -> None: ...

    def close(self) -> None:
        """Release the map; harmless when repeated."""
        ...
