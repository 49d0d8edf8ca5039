"""Processes under measurement: started, watched, stopped."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

SPACES = Path(__file__).parents[1] / ".build" / "spaces"


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", seconds: float = 60) -> None:
    """Return when something accepts connections there; raise when the process ends first."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the broker ended with code {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the broker did not start to listen")


@contextmanager
def running(command: list[str], *, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with its output in a file, terminated at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def workspace() -> Iterator[Path]:
    """Where a benchmark's brokers keep their data, removed at the very end.

    Not between rounds: a file system without a journal avoids inodes that were freed within the last
    minutes, and looking for others makes every new file slower than it is for anybody who deletes less.
    """
    SPACES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SPACES) as space:
        yield Path(space)


def folder_in(space: Path) -> Path:
    """A fresh folder for one broker."""
    return Path(tempfile.mkdtemp(dir=space))


class Meter:
    """CPU seconds and memory of a process and its children, between two moments."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._started = time.monotonic()
        self._cpu = self._cpu_seconds()

    def cores(self) -> float:
        """CPU seconds per second since the meter was made."""
        return (self._cpu_seconds() - self._cpu) / (time.monotonic() - self._started)

    def resident_mb(self) -> float:
        """Resident memory now."""
        return float(sum(p.memory_info().rss for p in self._family()) / 1e6)

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]

    def _cpu_seconds(self) -> float:
        times = [p.cpu_times() for p in self._family()]
        return float(sum(t.user + t.system for t in times))
