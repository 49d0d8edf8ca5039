"""Resident memory: idle, and its greatest value in a soak under load."""

import threading
import time

from benchmarks import load
from benchmarks.brokers import FLOE_SERVE, PARTITIONS
from benchmarks.process import Meter, folder_in, workspace
from benchmarks.results import save


def run_memory(seconds: float) -> None:
    """Start, rest, then produce and consume together for `seconds`, sampling every second."""
    with workspace() as space, FLOE_SERVE.start(folder_in(space)) as (port, pid):
        time.sleep(5)
        meter = Meter(pid)
        time.sleep(5)
        idle, idle_cores = meter.resident_mb(), meter.cores()
        samples = _soak(port, pid, seconds)
    rows: list[dict[str, object]] = [
        {"state": "idle", "resident MB": round(idle, 1), "cores": round(idle_cores, 4)},
        {"state": f"soak of {seconds:.0f} s, greatest", "resident MB": round(max(samples), 1)},
        {
            "state": "soak, median of the last tenth",
            "resident MB": _median(samples[-max(1, len(samples) // 10) :]),
        },
    ]
    settings: dict[str, object] = {
        "load": "produce 20,000 records of 1 KiB a second; consume from the beginning, again and again"
    }
    save("memory", command="./dev bench memory", settings=settings, rows=rows)


def _soak(port: int, pid: int, seconds: float) -> list[float]:
    meter = Meter(pid)
    samples: list[float] = []
    deadline = time.monotonic() + seconds
    workers = [threading.Thread(target=worker, args=(port, deadline)) for worker in (_produce, _consume)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        samples.append(meter.resident_mb())
        time.sleep(1)
    return samples


def _produce(port: int, deadline: float) -> None:
    while time.monotonic() < deadline:
        # Paced, so that ten minutes fit on a small disk: 12 GB.
        load.produce(port, topic="soak", partitions=PARTITIONS, records=200_000, size=1024, rate=20_000)


def _consume(port: int, deadline: float) -> None:
    time.sleep(10)
    while time.monotonic() < deadline:
        load.consume(port, topic="soak", partitions=PARTITIONS, records=200_000)


def _median(values: list[float]) -> float:
    return round(sorted(values)[len(values) // 2], 1)
