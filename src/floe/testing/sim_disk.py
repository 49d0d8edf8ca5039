"""A disk in memory that forgets, at a crash, what was not synced; deterministic from its random source.

What a crash does, worse than most real disks so that code which survives here survives there:

- A file keeps everything up to its last `sync`. Of what was appended since, nothing, a part, or all survives,
  and sectors of the part may hold zeros or garbage: torn.
- A name survives for certain only after `sync_folder` of its folder. Every later change of a name (made,
  linked, renamed, unlinked) is lost or kept by itself, in no order, save that a rename never loses the file:
  the old name goes only when the new one is there.
- A file without a name is gone.

`power_cut_at` cuts the power before the n-th step, where each call has two steps, one before its effect and
one after: `PowerCut` is raised there and by every later call, until `crash` has been called. `fail` makes
the next calls of an operation raise OSError, `delay` is called before each operation.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import cast

from floe.storage.disk import File

Buffer = bytes | bytearray | memoryview
_SECTOR_BYTES = 512


class PowerCut(BaseException):
    """The simulated machine is off; not an OSError, since no code survives to handle it."""


@dataclass(eq=False, slots=True)
class _Inode:
    data: bytearray = field(default_factory=bytearray)
    synced_size: int = 0
    modified_ms: int = 0


@dataclass(eq=False, slots=True)
class _Change:
    """A name that points to a file, or to nothing, since a change that is not durable yet."""

    path: str
    inode: _Inode | None
    needs: "_Change | None" = None  # this change is kept only when that one is
    is_durable: bool = False


class SimFile:
    """An open file of a `SimDisk`; useless after a crash."""

    def __init__(self, disk: "SimDisk", inode: _Inode, label: str) -> None:
        self._disk = disk
        self._epoch = disk.epoch
        self._label = label
        self.inode = inode

    def write(self, buffers: Sequence[Buffer]) -> int:
        with self._step("write"):
            before = len(self.inode.data)
            for buffer in buffers:
                self.inode.data += buffer
            self.inode.modified_ms = self._disk.now_ms
            return len(self.inode.data) - before

    def read(self, position: int, size: int) -> bytes:
        with self._step("read"):
            return bytes(self.inode.data[position : position + size])

    def size(self) -> int:
        with self._step("size"):
            return len(self.inode.data)

    def sync(self) -> None:
        with self._step("sync"):
            if self._disk.honours_sync:
                self.inode.synced_size = len(self.inode.data)

    def drop_cache(self) -> None:
        """Nothing to drop."""

    def close(self) -> None:
        """Nothing to release; also called on the way out of a power cut."""

    @contextmanager
    def _step(self, op: str) -> Iterator[None]:
        if self._epoch != self._disk.epoch:
            raise OSError(errno.EBADF, "the machine crashed since this file was opened")
        with self._disk.step(op, self._label):
            yield


class SimDisk:
    """The disk port in memory. One process at a time: after `crash`, open everything anew."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names: dict[str, _Inode] = {}  # as running programs see them
        self._durable_names: dict[str, _Inode] = {}
        self._changes: list[_Change] = []
        self._folders: set[str] = {""}
        self._failures: dict[str, deque[int]] = {}
        self._is_off = False
        self.epoch = 0
        self.steps = 0
        self.power_cut_at: int | None = None
        self.delay: Callable[[str, str], None] | None = None
        self.honours_sync = True  # False simulates a disk, or a program, that only pretends to sync
        self.now_ms = 1_700_000_000_000

    def create(self, path: str) -> File:
        with self.step("create", path):
            self._check_folder(path)
            if path in self._names or path in self._folders:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            inode = _Inode(modified_ms=self.now_ms)
            self._change(path, inode)
            return SimFile(self, inode, path)

    def create_unnamed(self) -> File:
        with self.step("create_unnamed", ""):
            return SimFile(self, _Inode(modified_ms=self.now_ms), "")

    def publish(self, file: File, target: str) -> None:
        with self.step("publish", target):
            self._link(cast("SimFile", file).inode, target)

    def open(self, path: str) -> File:
        with self.step("open", path):
            return SimFile(self, self._find(path), path)

    def link(self, source: str, target: str) -> None:
        with self.step("link", target):
            self._link(self._find(source), target)

    def rename(self, source: str, target: str) -> None:
        with self.step("rename", target):
            inode = self._find(source)
            self._check_folder(target)
            if self._names.get(target) is inode:
                return  # POSIX: a rename between two names of one file does nothing
            arrival = self._change(target, inode)
            self._change(source, None, needs=arrival)

    def unlink(self, path: str) -> None:
        with self.step("unlink", path):
            self._find(path)
            self._change(path, None)

    def make_folders(self, path: str) -> None:
        with self.step("make_folders", path):
            while path:
                if path in self._names:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
                self._folders.add(path)
                path = path.rpartition("/")[0]

    def remove_folder(self, path: str) -> None:
        with self.step("remove_folder", path):
            below = f"{path}/"
            if any(name.startswith(below) for name in [*self._names, *self._folders]):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
            self._check_is_folder(path)
            self._folders.discard(path)

    def sync_folder(self, path: str) -> None:
        with self.step("sync_folder", path):
            self._check_is_folder(path)
            if not self.honours_sync:
                return
            waiting = []
            for change in self._changes:
                if _parent(change.path) == path and (change.needs is None or change.needs.is_durable):
                    self._make_durable(change)
                else:
                    waiting.append(change)
            self._changes = waiting

    def list(self, path: str) -> "list[tuple[str, bool]]":
        with self.step("list", path):
            self._check_is_folder(path)
            files = [(name.rpartition("/")[2], False) for name in self._names if _parent(name) == path]
            folders = [
                (name.rpartition("/")[2], True) for name in self._folders if name and _parent(name) == path
            ]
            return sorted(files + folders)

    def modified_ms(self, path: str) -> int:
        with self.step("modified_ms", path):
            return self._find(path).modified_ms

    def close(self) -> None:
        """Nothing is kept open."""

    def fail(self, op: str, *codes: int) -> None:
        """The next calls of `op` raise OSError with these codes (errno.EIO, errno.ENOSPC), one each."""
        self._failures.setdefault(op, deque()).extend(codes)

    def crash(self) -> None:
        """Forget what was not durable, as chance has it; the disk can be used again, by new files only."""
        for change in self._changes:
            is_possible = change.needs is None or change.needs.is_durable
            if is_possible and self._random.random() < 0.5:
                self._make_durable(change)
        self._changes.clear()
        for inode in dict.fromkeys(self._durable_names.values()):
            self._tear(inode)
        self._names = dict(self._durable_names)
        self.epoch += 1
        self.steps = 0
        self.power_cut_at = None
        self._is_off = False

    def _tear(self, inode: _Inode) -> None:
        size = len(inode.data)
        if inode.synced_size < size:
            kept = self._random.choice(
                [inode.synced_size, self._random.randint(inode.synced_size, size), size]
            )
            del inode.data[kept:]
            intact = kept if self._random.random() < 0.5 else inode.synced_size
            for start in range(intact, kept, _SECTOR_BYTES):
                end = min(start + _SECTOR_BYTES, kept)
                match self._random.randrange(6):
                    case 0:
                        inode.data[start:end] = bytes(end - start)
                    case 1:
                        inode.data[start:end] = self._random.randbytes(end - start)
                    case _:
                        pass
        inode.synced_size = len(inode.data)

    @contextmanager
    def step(self, op: str, path: str) -> Iterator[None]:
        self._pass_power()
        if self.delay is not None:
            self.delay(op, path)
        codes = self._failures.get(op)
        if codes:
            code = codes.popleft()
            raise OSError(code, os.strerror(code), path)
        yield
        self._pass_power()

    def _pass_power(self) -> None:
        self.steps += 1
        if self._is_off or self.steps == self.power_cut_at:
            self._is_off = True
            raise PowerCut

    def _link(self, inode: _Inode, target: str) -> None:
        self._check_folder(target)
        if target in self._names or target in self._folders:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self._change(target, inode)

    def _change(self, path: str, inode: _Inode | None, needs: _Change | None = None) -> _Change:
        change = _Change(path, inode, needs)
        self._changes.append(change)
        if inode is None:
            del self._names[path]
        else:
            self._names[path] = inode
        return change

    def _make_durable(self, change: _Change) -> None:
        change.is_durable = True
        if change.inode is None:
            self._durable_names.pop(change.path, None)
        else:
            self._durable_names[change.path] = change.inode

    def _find(self, path: str) -> _Inode:
        inode = self._names.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _check_folder(self, path: str) -> None:
        self._check_is_folder(_parent(path))

    def _check_is_folder(self, path: str) -> None:
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
