"""A broker's own folder: locked while it runs, with the native port's secret.

    floe.lock       held by the running broker, with its process id
    native.secret   what native clients must know; readable by the owner only
    metadata/       RocksDB
    objects/        records, unless they rest in another store

Invariant: a file is whole and durable before its name exists.
"""

import fcntl
import os
from pathlib import Path

from floe.server.errors import CannotStart
from floe.wire.native.handshake import SECRET_SIZE_MIN

_SECRET_BYTES = 32
_SECRET_FILE_BYTES_MAX = 4096


class DataFolder:
    """An existing, locked folder; `close` lets the next broker have it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "floe.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CannotStart(
                f"cannot use the data folder {path}: {error.strerror}", hint="choose another with --data"
            ) from error
        self._take_lock()

    def close(self) -> None:
        os.close(self._lock)

    @property
    def metadata_path(self) -> Path:
        return self.path / "metadata"

    def secret(self, fresh: bytes) -> bytes:
        """The secret of the native port; `fresh` random bytes become it at the first start."""
        path = self.path / "native.secret"
        if not path.exists():
            assert len(fresh) >= _SECRET_BYTES
            self._create("native.secret", fresh.hex().encode() + b"\n", 0o600)
        return read_secret(path)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip()
            os.close(self._lock)
            who = f" (process {holder})" if holder else ""
            raise CannotStart(
                f"the data folder {self.path} is in use by another broker{who}",
                hint="stop that broker, or choose another folder with --data",
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _create(self, name: str, content: bytes, mode: int) -> None:
        draft = self.path / f"{name}.new"
        draft.unlink(missing_ok=True)
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            os.write(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        draft.rename(self.path / name)
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_secret(path: Path) -> bytes:
    """The secret in a file; white space around it does not count."""
    try:
        with path.open("rb") as file:
            secret = file.read(_SECRET_FILE_BYTES_MAX).strip()
    except OSError as error:
        raise CannotStart(
            f"cannot read the native secret {path}: {error.strerror}", hint="check native.secret.file"
        ) from error
    if len(secret) < SECRET_SIZE_MIN:
        raise CannotStart(
            f"the native secret in {path} is shorter than {SECRET_SIZE_MIN} bytes",
            hint="python -c 'import secrets; print(secrets.token_hex(32))' makes a good one",
        )
    return secret
