"""The RemoteStorageManager: what the rest of Floe may ask of an object store.

Contract, kept by every adapter and checked by one suite (`floe.testing.contracts.objects`):

- `put` is create-only and durable: when it returns, the object is readable by everyone and survives
  a power cut. A key that exists raises `AlreadyExists` and leaves the object untouched.
- An object becomes visible whole or not at all.
- Reads of a missing key raise `ObjectNotFound`; a range past the end raises `Corrupt`. A span of no bytes
  is answered without asking the store.
- Anything that may work later raises `Unavailable`; the outcome of a `put` that raises it is unknown.
  `Denied` is one that a repeat at once will not help.
- Nothing is ever overwritten. A writer's commit may lose a race of two commits of one key within the same
  moment on stores without conditional multipart uploads (`cloud.py` says which); ids that are never reused
  make that race impossible in Floe.
- Keys are checked (`keys.py`); a bad one raises ValueError. A prefix is a prefix of the key's characters.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from floe.model.errors import FloeError, Unavailable

Buffer = bytes | bytearray | memoryview
Body = Sequence[Buffer]  # gathered in order; must not change until the put has returned


class ObjectNotFound(FloeError):
    """No object has this key."""


class AlreadyExists(FloeError):
    """An object has this key already."""


class Denied(Unavailable):
    """The store refuses us: wrong or expired credentials, no permission, no such bucket."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a listing or a HEAD says."""

    key: str
    size: int
    modified_ms: int


class ObjectWriter(Protocol):
    """A large object written piece by piece; nothing is visible before `commit` returns."""

    async def write(self, data: Buffer) -> None: ...

    async def commit(self) -> None:
        """Create-only and durable, as `put`."""
        ...

    async def abort(self) -> None:
        """Drop what was written; harmless after `commit`."""
        ...


class Objects(Protocol):
    """An object store, with keys below the store's own prefix."""

    async def put(self, key: str, body: Body) -> None: ...

    async def get(self, key: str) -> bytes: ...

    async def get_range(self, key: str, position: int, size: int) -> memoryview: ...

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Several (position, size) spans of one object, in the order asked."""
        ...

    def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        """A span in pieces of at most `chunk_bytes`, in bounded memory."""
        ...

    async def head(self, key: str) -> ObjectInfo: ...

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        """Delete many; returns why for the keys that were not deleted. A missing key counts as deleted."""
        ...

    def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """Keys in order, lazily."""
        ...

    async def writer(self, key: str) -> ObjectWriter: ...

    async def close(self) -> None: ...
