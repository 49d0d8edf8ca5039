"""Memory habits of a broker's own process."""

import subprocess
import sys

import pytest

CODE = """
import resource
from floe.server.process_memory import keep_freed_memory
from floe.kafka.frame_memory import frame_memory

kept = keep_freed_memory() if {keeps} else True
def churn():
    buffers = [frame_memory(1 << 20) for _ in range(8)]
    for buffer in buffers:
        buffer[::4096] = bytes(256)
churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    churn()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keeps):
    """Page faults of 160 MiB received in buffers of 1 MiB."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(keeps=keeps)], capture_output=True, text=True, check=True
    )
    kept, count = done.stdout.split()
    if kept != "True":
        pytest.skip("not glibc")
    return int(count)


def test_buffers_are_reused_without_page_faults():
    assert faults(keeps=True) < 1000
