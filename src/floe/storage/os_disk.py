"""The disk port on the operating system's files.

Unnamed files are made with O_TMPFILE where the file system has it, so that a crash leaves nothing behind and
publishing is one linkat; elsewhere they are named files in the `.tmp` folder, swept when the disk is opened.

A folder's descriptor is kept and used both to link into the folder and to sync it. So the folder synced is
the folder linked into, even when another process removes it while empty and makes it anew in between.
"""

# Descriptors and the calls on them are the point of this module; pathlib would hide them.
# ruff: noqa: PTH104, PTH106, PTH108, PTH116

import contextlib
import errno
import fcntl
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from floe.storage.disk import File

TEMPORARY_FOLDER = ".tmp"
_BUFFERS_PER_WRITE_MAX = min(1024, os.sysconf("SC_IOV_MAX"))
_FOLDERS_OPEN_MAX = 64
_MAKE_ATTEMPTS_MAX = 8
_NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)

Buffer = bytes | bytearray | memoryview


class OsFile:
    """An open descriptor; `temporary` is the name to unlink when an unnamed file had to be given one."""

    __slots__ = ("_fd", "_size", "temporary")

    def __init__(self, fd: int, temporary: str | None = None) -> None:
        self._fd = fd
        self._size = 0
        self.temporary = temporary

    @property
    def fd(self) -> int:
        return self._fd

    def write(self, buffers: Sequence[Buffer]) -> int:
        total = 0
        for first in range(0, len(buffers), _BUFFERS_PER_WRITE_MAX):
            total += self._write_all(buffers[first : first + _BUFFERS_PER_WRITE_MAX])
        return total

    def _write_all(self, buffers: Sequence[Buffer]) -> int:
        written = os.writev(self._fd, buffers)
        total = written
        rest = _after(buffers, written)
        while rest:
            written = os.writev(self._fd, rest)
            total += written
            rest = _after(rest, written)
        return total

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        pieces = [data]
        done = len(data)
        while done < size and data:
            data = os.pread(self._fd, size - done, position + done)
            pieces.append(data)
            done += len(data)
        return b"".join(pieces)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def drop_cache(self) -> None:
        # Advice only; a file system that does not take it keeps the pages.
        with contextlib.suppress(OSError):
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        if self.temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.temporary)
            self.temporary = None


class _Folder:
    """A folder's descriptor, closed when the last user lets go of it."""

    __slots__ = ("fd",)

    def __init__(self, path: str, parent_fd: int | None) -> None:
        self.fd = -1
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent_fd)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class OsDisk:
    """Files below `root`, which is created when missing.

    Whether the file system has unnamed files is found out, unless `has_unnamed_files` says so.
    """

    def __init__(self, root: str | Path, *, has_unnamed_files: bool | None = None) -> None:
        self._root = str(Path(root).absolute())
        make_folder_durable(Path(self._root))
        self._folders: OrderedDict[str, _Folder] = OrderedDict()
        self._lock = threading.Lock()
        self._temporary_count = 0
        self._has_unnamed_files = (
            self._probe_unnamed_files() if has_unnamed_files is None else has_unnamed_files
        )
        self._sweep()

    @property
    def root(self) -> str:
        return self._root

    def create(self, path: str) -> File:
        return OsFile(os.open(self._at(path), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644))

    def create_unnamed(self) -> File:
        if self._has_unnamed_files:
            return OsFile(os.open(self._root, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o644))
        folder = Path(self._root, TEMPORARY_FOLDER)
        folder.mkdir(exist_ok=True)
        with self._lock:
            self._temporary_count += 1
            name = str(folder / f"{os.getpid()}-{self._temporary_count}")
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)
        # The lock tells another process's sweep that this file has a living writer.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return OsFile(fd, name)

    def publish(self, file: File, target: str) -> None:
        source = cast("OsFile", file)
        parent, _, name = target.rpartition("/")
        folder = self._folder(parent)
        try:
            os.link(
                source.temporary or f"/proc/self/fd/{source.fd}",
                name,
                src_dir_fd=folder.fd,  # makes Python call linkat, which follows the link in /proc
                dst_dir_fd=folder.fd,
                follow_symlinks=True,
            )
        except FileNotFoundError:
            # The folder was removed while its descriptor was kept.
            self._forget_with_parents(parent)
            raise

    def open(self, path: str) -> File:
        return OsFile(os.open(self._at(path), os.O_RDONLY | os.O_CLOEXEC))

    def link(self, source: str, target: str) -> None:
        os.link(self._at(source), self._at(target))

    def rename(self, source: str, target: str) -> None:
        os.rename(self._at(source), self._at(target))

    def unlink(self, path: str) -> None:
        os.unlink(self._at(path))

    def make_folders(self, path: str) -> None:
        for attempt in range(1, _MAKE_ATTEMPTS_MAX + 1):
            try:
                self._folder(path, create=True)
            except FileNotFoundError:
                # Another process removed a folder above, empty until now, whose descriptor was kept.
                if attempt == _MAKE_ATTEMPTS_MAX:
                    raise
                self._forget_with_parents(path)
            else:
                return

    def remove_folder(self, path: str) -> None:
        os.rmdir(self._at(path))
        self._forget_with_parents(path)

    def sync_folder(self, path: str) -> None:
        folder = self._folder(path)  # held: the descriptor closes with its last holder
        os.fsync(folder.fd)

    def list(self, path: str) -> list[tuple[str, bool]]:
        with os.scandir(self._at(path)) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)

    def modified_ms(self, path: str) -> int:
        return os.stat(self._at(path)).st_mtime_ns // 1_000_000

    def close(self) -> None:
        with self._lock:
            self._folders.clear()

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _folder(self, path: str, *, create: bool = False) -> _Folder:
        """The kept descriptor of a folder, opened through its parent's; durable up to the root when kept.

        A folder that is in use cannot be removed, nor those above it, so what is linked into a kept
        descriptor is reachable; a removed folder refuses the link.
        """
        with self._lock:
            folder = self._folders.get(path)
            if folder is not None:
                self._folders.move_to_end(path)
                return folder
        if path:
            above, _, name = path.rpartition("/")
            parent = self._folder(above, create=create)
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=parent.fd)
            folder = _Folder(name, parent.fd)
            # Whoever made this folder, a moment ago or long before, may not have synced its name yet.
            os.fsync(parent.fd)
        else:
            folder = _Folder(self._root, None)
        with self._lock:
            self._folders[path] = folder
            if len(self._folders) > _FOLDERS_OPEN_MAX:
                self._folders.popitem(last=False)
        return folder

    def _forget_with_parents(self, path: str) -> None:
        with self._lock:
            while path:
                self._folders.pop(path, None)
                path = path.rpartition("/")[0]

    def _probe_unnamed_files(self) -> bool:
        if not hasattr(os, "O_TMPFILE"):
            return False
        try:
            os.close(os.open(self._root, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o644))
        except OSError as error:
            if error.errno in _NO_UNNAMED_FILES:
                return False
            raise
        return Path("/proc/self/fd").is_dir()

    def _sweep(self) -> None:
        folder = Path(self._root, TEMPORARY_FOLDER)
        if folder.is_dir():
            for leftover in folder.iterdir():
                fd = os.open(leftover, os.O_RDONLY | os.O_CLOEXEC)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    leftover.unlink(missing_ok=True)
                os.close(fd)


def make_folder_durable(path: Path) -> None:
    """Create a folder and its parents, each synced into its own parent, so that all survive a crash."""
    if path.is_dir() or path.parent == path:
        return
    make_folder_durable(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _after(buffers: Sequence[Buffer], written: int) -> list[Buffer]:
    """What is left of `buffers` when the first `written` bytes are gone."""
    for index, buffer in enumerate(buffers):
        size = buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)
        if written < size:
            return [memoryview(buffer).cast("B")[written:], *buffers[index + 1 :]]
        written -= size
    return []
