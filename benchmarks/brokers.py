"""The brokers that are compared, each as it is installed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import apache_kafka, load
from benchmarks.process import free_port, running, wait_for_port

FLOE = Path(sys.executable).parent / "floe"
PARTITIONS = 8
Started = tuple[int, int]  # port, process id


@dataclass(frozen=True)
class Contender:
    """A broker by name and how to start it in an empty folder."""

    name: str
    start: Callable[[Path], AbstractContextManager[Started]]


@contextmanager
def floe(folder: Path) -> Iterator[Started]:
    """`floe serve` with default settings: folder store, RocksDB, fsync on; only ports are chosen."""
    port = free_port()
    command = [str(FLOE), "serve", "--listen", f"127.0.0.1:{port}", "--data", str(folder / "data")]
    command += ["--http", "127.0.0.1:0", "--native", "127.0.0.1:0", "-X", f"num.partitions={PARTITIONS}"]
    with running(command, log=folder / "floe.log") as process:
        wait_for_port(port, process)
        yield port, process.pid


@contextmanager
def null_broker(folder: Path) -> Iterator[Started]:
    """Our listener with nothing behind it."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.null_broker", str(port), str(PARTITIONS)]
    with running(command, log=folder / "null.log") as process:
        wait_for_port(port, process)
        yield port, process.pid


@contextmanager
def reference(folder: Path) -> Iterator[Started]:
    """The C broker that parses, checks and forgets."""
    port = free_port()
    command = [str(load.BUILD / "reference_broker"), str(port), str(PARTITIONS)]
    with running(command, log=folder / "reference.log") as process:
        wait_for_port(port, process)
        yield port, process.pid


FLOE_SERVE = Contender("floe", floe)
NULL = Contender("null broker", null_broker)
REFERENCE = Contender("C reference", reference)
KAFKA = Contender("Apache Kafka", apache_kafka.apache_kafka)
