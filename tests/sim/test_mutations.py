"""Proof that the simulator can fail: the broker broken in named ways, each found on pinned seeds.

The same seeds are judged good with the broker as it is. Each mutation is also found by going through the
seeds from 1 on, within a bound. `conftest.py` says what each mutation does.
"""

import pytest

from floe.testing.checker import AnomalyKind
from floe.testing.sim_options import draw_options
from floe.testing.sim_run import report
from floe.testing.sim_world import World

SECONDS = 8.0
SEEDS_MAX = 16

PINNED = [
    ("acknowledge_before_upload", 2, AnomalyKind.LOST_WRITE),
    ("acknowledge_before_upload", 14, AnomalyKind.MISSING_OBJECT),
    ("acknowledge_before_commit", 3, AnomalyKind.INCONSISTENT_OFFSET),
    ("acknowledge_before_commit", 10, AnomalyKind.LOST_WRITE),
    ("no_sync_of_files", 6, AnomalyKind.LOST_WRITE),
    ("no_sync_of_files", 7, AnomalyKind.MISSING_OBJECT),
    ("no_sync_of_metadata", 2, AnomalyKind.LOST_WRITE),
    ("no_sync_of_metadata", 5, AnomalyKind.STALE_LATEST),
    ("no_sequence_check", 2, AnomalyKind.DUPLICATE),
    ("no_sequence_check", 4, AnomalyKind.OFFSET_MISMATCH),
    ("delete_without_asking_holders", 1, AnomalyKind.LOST_WRITE),
    ("delete_without_asking_holders", 2, AnomalyKind.MISSING_OBJECT),
]


def run_world(seed):
    return World(seed, draw_options(seed, SECONDS)).run()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed", "kind"), PINNED)
def test_mutation_is_found(mutate, name, seed, kind):
    as_it_is = run_world(seed)
    assert as_it_is.is_good, report(as_it_is)
    mutate(name)
    broken = run_world(seed)
    assert kind in {anomaly.kind for anomaly in broken.anomalies}, broken.summary()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, *_ in PINNED}))
def test_mutation_is_found_within_a_few_seeds(mutate, name):
    mutate(name)
    assert any(not run_world(seed).is_good for seed in range(1, SEEDS_MAX + 1))


def test_every_mutation_is_pinned(mutations):
    assert {name for name, *_ in PINNED} == set(mutations)
