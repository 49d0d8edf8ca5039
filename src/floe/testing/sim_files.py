"""A disk as one simulated process reaches it: counted, traced, dead with the process, at times failing.

Errors are those of a full or failing disk: the call raises OSError and has no effect, so that they can be
told apart from a crash, which is the business of the disk below.
"""

import errno
from collections.abc import Sequence
from random import Random

from floe.storage.disk import Disk, File
from floe.testing.sim_process import SimProcess
from floe.testing.sim_trace import Trace

Buffers = Sequence[bytes | bytearray | memoryview]


class Gate:
    """What every call passes; `error_chance` may be changed at any time."""

    def __init__(self, process: SimProcess, rng: Random, trace: Trace, error_chance: float) -> None:
        self._process = process
        self._rng = rng
        self._trace = trace
        self.error_chance = error_chance

    def enter(self, call: str, *, may_fail: bool = True) -> None:
        self._process.enter(call)
        fails = may_fail and self.error_chance > 0 and self._rng.random() < self.error_chance
        self._trace.add(f"disk {self._process.name} {call}{' fails' if fails else ''}")
        if fails:
            raise OSError(errno.EIO, f"simulated: {call}")


class GatedFile:
    """An open file."""

    def __init__(self, inner: File, gate: Gate, name: str) -> None:
        self.inner = inner
        self._gate = gate
        self._name = name

    def write(self, buffers: Buffers) -> int:
        self._gate.enter(f"write {self._name}")
        return self.inner.write(buffers)

    def read(self, position: int, size: int) -> bytes:
        self._gate.enter(f"read {self._name} {position} {size}")
        return self.inner.read(position, size)

    def size(self) -> int:
        return self.inner.size()

    def sync(self) -> None:
        self._gate.enter(f"sync {self._name}")
        self.inner.sync()

    def drop_cache(self) -> None:
        self.inner.drop_cache()

    def close(self) -> None:
        self._gate.enter(f"close {self._name}", may_fail=False)
        self.inner.close()


class GatedDisk:
    """A file system."""

    def __init__(self, inner: Disk, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate
        self._unnamed = 0

    def create(self, path: str) -> GatedFile:
        self._gate.enter(f"create {path}")
        return GatedFile(self._inner.create(path), self._gate, path)

    def create_unnamed(self) -> GatedFile:
        self._unnamed += 1
        name = f"unnamed-{self._unnamed}"
        self._gate.enter(f"create {name}")
        return GatedFile(self._inner.create_unnamed(), self._gate, name)

    def publish(self, file: File, target: str) -> None:
        assert isinstance(file, GatedFile)
        self._gate.enter(f"publish {target}")
        self._inner.publish(file.inner, target)

    def open(self, path: str) -> GatedFile:
        self._gate.enter(f"open {path}")
        return GatedFile(self._inner.open(path), self._gate, path)

    def link(self, source: str, target: str) -> None:
        self._gate.enter(f"link {source} {target}")
        self._inner.link(source, target)

    def rename(self, source: str, target: str) -> None:
        self._gate.enter(f"rename {source} {target}")
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        self._gate.enter(f"unlink {path}")
        self._inner.unlink(path)

    def make_folders(self, path: str) -> None:
        self._gate.enter(f"make folders {path}")
        self._inner.make_folders(path)

    def remove_folder(self, path: str) -> None:
        self._gate.enter(f"remove folder {path}")
        self._inner.remove_folder(path)

    def sync_folder(self, path: str) -> None:
        self._gate.enter(f"sync folder {path}")
        self._inner.sync_folder(path)

    def list(self, path: str) -> list[tuple[str, bool]]:
        self._gate.enter(f"list {path}")
        return self._inner.list(path)

    def modified_ms(self, path: str) -> int:
        return self._inner.modified_ms(path)

    def close(self) -> None:
        self._gate.enter("close", may_fail=False)
