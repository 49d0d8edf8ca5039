"""The disk port: the few file operations our own durable formats need.

Contract: data is durable only after `sync` of the file; a name is durable only after `sync_folder` of its
folder. The simulator's disk forgets everything else at a crash, and may tear the last unsynced write.
All calls block; callers run them in an executor.
"""

from collections.abc import Sequence
from typing import Protocol


class File(Protocol):
    """An open file."""

    def write(self, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
        """Append all buffers; returns the bytes written, always all of them."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        ...

    def size(self) -> int: ...

    def sync(self) -> None: ...

    def drop_cache(self) -> None:
        """Tell the system that this file's pages will not be read soon; may do nothing."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """A file system; paths are relative to its root, with forward slashes."""

    def create(self, path: str) -> File:
        """A new file for writing; raises FileExistsError."""
        ...

    def create_unnamed(self) -> File:
        """A new file without a name, for writing; gone at a crash or a close unless it was published."""
        ...

    def publish(self, file: File, target: str) -> None:
        """Name an unnamed file; raises FileExistsError, or FileNotFoundError when the folder is missing."""
        ...

    def open(self, path: str) -> File:
        """An existing file for reading; raises FileNotFoundError."""
        ...

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; raises FileExistsError, so it is a create-only rename."""
        ...

    def rename(self, source: str, target: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def make_folders(self, path: str) -> None:
        """Create a folder and its parents, each durable in its own parent when this returns."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder; raises OSError when it is not empty."""
        ...

    def sync_folder(self, path: str) -> None: ...

    def list(self, path: str) -> list[tuple[str, bool]]:
        """(name, is_folder) of what a folder holds, sorted; raises FileNotFoundError."""
        ...

    def modified_ms(self, path: str) -> int: ...

    def close(self) -> None:
        """Let go of what is kept open for speed; the disk can still be used."""
        ...
