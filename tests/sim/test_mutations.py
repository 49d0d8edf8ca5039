"""Proof that the simulator can fail: the broker broken in named ways, each found by the checker.

Each mutation has seeds that are known to find it and are tried first; since a change of the broker can move
what happens on a seed, the seeds from 1 on are tried after them, up to a bound. On the seed that finds it the
broker as it is must be judged good. `conftest.py` says what each mutation does.
"""

import pytest

from floe.testing.checker import AnomalyKind
from floe.testing.sim_options import draw_options
from floe.testing.sim_run import report
from floe.testing.sim_world import World

SECONDS = 8.0
SEEDS_MAX = 16

PINNED = [
    ("acknowledge_before_upload", AnomalyKind.LOST_WRITE, (2, 15)),
    ("acknowledge_before_upload", AnomalyKind.MISSING_OBJECT, (14, 12)),
    ("acknowledge_before_commit", AnomalyKind.LOST_WRITE, (10, 3)),
    ("acknowledge_before_commit", AnomalyKind.INCONSISTENT_OFFSET, (3, 12)),
    ("no_sync_of_files", AnomalyKind.LOST_WRITE, (6, 10)),
    ("no_sync_of_metadata", AnomalyKind.LOST_WRITE, (8, 11)),
    ("no_sync_of_metadata", AnomalyKind.STALE_LATEST, (6, 2)),
    ("no_sequence_check", AnomalyKind.DUPLICATE, (15, 2)),
    ("delete_without_asking_holders", AnomalyKind.MISSING_OBJECT, (14, 1)),
    ("delete_without_asking_holders", AnomalyKind.LOST_WRITE, (19, 2)),
]


def run_world(seed):
    return World(seed, draw_options(seed, SECONDS)).run()


def is_found(seed, kind):
    return kind in {anomaly.kind for anomaly in run_world(seed).anomalies}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "seeds"), PINNED)
def test_mutation_is_found(mutate, name, kind, seeds):
    with mutate(name):
        tried = dict.fromkeys((*seeds, *range(1, SEEDS_MAX + 1)))
        found = next((seed for seed in tried if is_found(seed, kind)), None)
    assert found is not None
    as_it_is = run_world(found)
    assert as_it_is.is_good, report(as_it_is)


def test_every_mutation_is_looked_for(mutations):
    assert {name for name, *_ in PINNED} == set(mutations)
