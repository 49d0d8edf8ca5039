"""A real `floe serve` as a process of its own, on a folder of the test's."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

READY_SECONDS = 60.0
STOP_SECONDS = 30.0


class BrokerProcess:
    """Started with `start` or as a context manager; may be stopped, killed and started again."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.listen = "127.0.0.1:0"
        self.bootstrap = ""
        self.http = ""
        self.native = ""

    @property
    def output(self) -> str:
        """What the process printed, standard error included."""
        return (self.folder / "output.txt").read_text(errors="replace")

    def start(self) -> Self:
        """Return when clients are served; a later start listens on the same port."""
        command = [*floe_command(), "serve", "--listen", self.listen, "--data", str(self.folder / "data")]
        command += ["--http", "127.0.0.1:0", "--native", "127.0.0.1:0", *self.arguments]
        with (self.folder / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                command, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder, env=plain_environment()
            )
        deadline = time.perf_counter() + READY_SECONDS
        while "Stop with Ctrl-C" not in self.output:
            if self.process.poll() is not None or time.perf_counter() > deadline:
                raise AssertionError(f"the broker did not start:\n{self.output}")
            time.sleep(0.02)
        self._read_addresses()
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the process to stop and wait; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of the HTTP port."""
        try:
            with urllib.request.urlopen(f"{self.http}{path}", timeout=10) as answer:  # noqa: S310 - our own URL
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def resident_bytes(self) -> int:
        """Memory of the process that is in RAM."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_reason: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _read_addresses(self) -> None:
        found = dict(re.findall(r"^  (Kafka|HTTP|Native)\s+(\S+)", self.output, re.MULTILINE))
        self.bootstrap = self.listen = found["Kafka"]
        self.http = found["HTTP"].removesuffix("/metrics,")
        self.native = found["Native"]


def floe_command() -> list[str]:
    """How this installation's command line is started."""
    return [sys.executable, "-m", "floe.cli.main"]


def plain_environment() -> dict[str, str]:
    """This process's environment without settings of Floe."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FLOE_")}
