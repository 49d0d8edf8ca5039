"""Whole worlds: the real broker from door to store, killed and restarted, judged by the checker."""

import os
import subprocess
import sys

import pytest

from floe.testing.sim_options import draw_options
from floe.testing.sim_run import report
from floe.testing.sim_world import World

SECONDS = 8.0
SEEDS = int(os.environ.get("FLOE_SIM_SEEDS", "30"))

# Seeds that once showed a bug, and how long their faults must last to show it.
FOUND = [
    (5, 8.0),  # of two dropped batches of a producer the later was taken for the first
]


def run_world(seed, seconds=SECONDS):
    return World(seed, draw_options(seed, seconds)).run()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", range(1, SEEDS + 1, 10))
def test_ten_seeds_are_judged_good(first):
    for seed in range(first, min(first + 10, SEEDS + 1)):
        verdict = run_world(seed)
        assert verdict.is_good, report(verdict)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("seed", "seconds"), FOUND)
def test_seeds_that_found_something_stay_good(seed, seconds):
    verdict = run_world(seed, seconds)
    assert verdict.is_good, report(verdict)


def test_a_world_does_what_its_options_say():
    verdict = run_world(4)
    assert verdict.is_good, report(verdict)
    assert len(verdict.history.sends) > 100
    assert len(verdict.history.polls) > 50
    assert len(verdict.deaths) > 4
    assert {log.partition for log in verdict.history.logs} == {
        (name, index) for name, count in verdict.options.topics for index in range(count)
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4, 31])
def test_same_seed_same_trace_in_two_processes(seed):
    """Not even the hashes of strings, which differ from process to process, may decide anything."""
    digests = [_digest_in_process(seed, hash_seed) for hash_seed in ("1", "2")]
    assert digests[0] == digests[1]


def _digest_in_process(seed, hash_seed):
    program = (
        "from floe.testing.sim_world import World\n"
        "from floe.testing.sim_options import draw_options\n"
        f"print(World({seed}, draw_options({seed}, {SECONDS})).run().digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


def test_different_seeds_are_different_worlds():
    assert run_world(14, 2.0).digest != run_world(19, 2.0).digest
