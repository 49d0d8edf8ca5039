"""Real processes: SIGKILL under load, at random moments and at chosen points.

Afterwards nothing acknowledged is lost, nothing is doubled, and each producer's order is kept per partition.
`FLOE_CRASH_SECONDS` sets how long the random kills go on, and how often the points are gone through.
"""

import os
import random
import time

import pytest

from floe.observability.crash_points import POINTS
from floe.testing.checker import check_history
from floe.testing.sim_history import Outcome

SECONDS = float(os.environ.get("FLOE_CRASH_SECONDS", "20"))
ROUNDS = max(1, round(SECONDS / 60))
POINT_SECONDS = 20


def verdict(broker, load):
    """Wait for the clients, kill once more so that nothing is read from a cache, read everything, judge."""
    history = load.finish()
    broker.kill()
    broker.start()
    assert broker.wait_ready(), broker.tail()
    load.read_everything(broker.bootstrap, history)
    assert [str(anomaly) for anomaly in check_history(history)] == []
    return sum(1 for send in history.sends if send.outcome is Outcome.OK)


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.timeout(SECONDS + 300)
def test_kills_at_random_moments_lose_nothing(broker, load):
    rng = random.Random(os.environ.get("FLOE_CRASH_SEED", "1"))
    kills = 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        time.sleep(rng.uniform(0.05, 2.0))
        broker.kill()
        kills += 1
        broker.start()
        if rng.random() < 0.8:  # the others are killed while they start
            assert broker.wait_ready(), broker.tail()
    assert broker.wait_ready(), broker.tail()
    acknowledged = verdict(broker, load)
    print(f"{kills} kills, {acknowledged} records acknowledged")
    assert acknowledged > 100


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.timeout(ROUNDS * 200 + 200)
def test_kills_at_chosen_points_lose_nothing(broker, load):
    rng = random.Random(2)
    died_at = []
    for point in sorted(POINTS) * ROUNDS:
        broker.kill()
        broker.start(crash_at=f"{point}:{rng.choice((1, 2, 10, 40))}")
        broker.wait_ready()
        if broker.wait_dead(POINT_SECONDS):
            died_at.append(point)
            broker.start()
            assert broker.wait_ready(), broker.tail()
    acknowledged = verdict(broker, load)
    print(f"died at {died_at}, {acknowledged} records acknowledged")
    assert set(died_at) == set(POINTS)
