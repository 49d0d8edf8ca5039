"""`python -m floe.testing.sim_run`: simulated worlds from the command line.

    --seed N          the first seed (default: from the clock)
    --seeds K         how many seeds, one after the other (default 1)
    --seconds S       virtual seconds of faults per seed
    --forever         go on with fresh seeds until one fails or the run is stopped
    --trace FILE      write every event of the run to a file
    --quiet           print one line per seed

The process starts itself anew with PYTHONHASHSEED=0 where that is not set, so that a printed seed replays
exactly.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack

from floe.testing.sim_options import SECONDS_DEFAULT, draw_options
from floe.testing.sim_world import Verdict, World

TAIL_LINES = 40


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    seeds = random.SystemRandom()
    seed = options.seed if options.seed is not None else seeds.randrange(1 << 32)
    done = 0
    while options.forever or done < options.seeds:
        verdict = _run(seed, options)
        done += 1
        if not verdict.is_good:
            return 1
        seed = seeds.randrange(1 << 32) if options.forever else seed + 1
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m floe.testing.sim_run", description="simulated worlds")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS_DEFAULT)
    parser.add_argument("--forever", action="store_true")
    parser.add_argument("--trace")
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args(arguments)


def _run(seed: int, options: argparse.Namespace) -> Verdict:
    drawn = draw_options(seed, options.seconds)
    if not options.quiet:
        _say(f"seed {seed}", *drawn.lines())
    started = time.perf_counter()
    with ExitStack() as stack:
        sink = stack.enter_context(open(options.trace, "w")) if options.trace else None  # noqa: PTH123
        verdict = World(seed, drawn, sink).run()
    took = time.perf_counter() - started
    _say(f"seed {seed} {'ok' if verdict.is_good else 'FAILED'} in {took:.1f} s: {verdict.summary()}")
    if not verdict.is_good:
        _say(
            report(verdict),
            f"replay: python -m floe.testing.sim_run --seed {seed} --seconds {options.seconds}",
        )
    return verdict


def report(verdict: Verdict) -> str:
    """What failed, with the operations and deaths that show it."""
    lines = [f"seed {verdict.seed} failed; the world was:", *verdict.options.lines()]
    lines += ["anomalies:", *(str(anomaly) for anomaly in verdict.anomalies)] if verdict.anomalies else []
    lines += ["problems:", *verdict.problems] if verdict.problems else []
    lines += ["deaths:", *verdict.deaths]
    lines += ["last events:", *(line.rstrip() for line in verdict.trace_tail[-TAIL_LINES:])]
    return "\n".join(lines)


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") is None:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "floe.testing.sim_run", *sys.argv[1:]])  # noqa: S606
    sys.exit(main())
