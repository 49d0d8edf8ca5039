"""Crash points: nothing unless armed; a kill at the n-th pass when armed."""

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
from floe.observability.crash_points import crash_point
for n in range(1, 6):
    crash_point("after_upload")
    print(n, flush=True)
    crash_point("before_ack")
"""


def run(setting):
    environment = {**os.environ, "FLOE_CRASH_AT": setting} if setting else dict(os.environ)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )


def test_unarmed_points_do_nothing():
    done = run("")
    assert done.returncode == 0
    assert done.stdout.split() == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("setting", "printed"),
    [("after_upload:3", ["1", "2"]), ("before_ack", ["1"]), ("after_commit:1", ["1", "2", "3", "4", "5"])],
)
def test_an_armed_point_kills_at_the_nth_pass(setting, printed):
    done = run(setting)
    assert done.stdout.split() == printed
    assert done.returncode == (0 if setting.startswith("after_commit") else -signal.SIGKILL)


def test_a_name_that_is_no_point_is_refused():
    done = run("after_lunch:1")
    assert done.returncode == 1
    assert "names no crash point" in done.stderr
