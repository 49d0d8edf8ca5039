"""Runs benchmarks by name, writes their results and renders docs/benchmarks.md.

Without names it runs all. Brokers are started as installed; the load comes from C.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import load, memory, metadata, report, requests, throughput, waiting_fetches


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="length of one timed run")
    parser.add_argument("--soak-seconds", type=float, default=600)
    options = parser.parse_args()
    known: dict[str, Callable[[], None]] = {
        "produce": lambda: throughput.run_produce(options.rounds),
        "fetch": lambda: throughput.run_fetch(options.rounds),
        "small": lambda: requests.run_small(options.rounds, options.seconds),
        "latency": lambda: requests.run_latency(options.rounds, options.seconds),
        "memory": lambda: memory.run_memory(options.soak_seconds),
        "metadata": metadata.run_metadata,
        "waiting_fetches": waiting_fetches.run_waiting_fetches,
    }
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known: {', '.join(known)}")
    load.build()
    for name in options.names or known:
        print(f"== {name}", flush=True)
        known[name]()
    report.PAGE.write_text(report.render())
    print(f"written to {report.PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
