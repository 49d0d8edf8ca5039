"""The metadata's map in the simulator: what of it survives, and a disk that fails a sync."""

import random

import pytest

from floe.model.errors import Unavailable
from floe.testing.sim_process import Killed, SimProcess
from floe.testing.sim_store import KeyValueDisk
from floe.testing.sim_trace import Trace


def open_map(disk, *, fails=False, failed=None):
    process = SimProcess("broker-1")
    told = [] if failed is None else failed
    return process, disk.open(process, fails=lambda: fails, failed=told.append)


def new_disk(seed=1):
    return KeyValueDisk(random.Random(seed), Trace(lambda: 0.0))


def test_synced_writes_survive_a_kill():
    disk = new_disk()
    process, kv = open_map(disk)
    kv.write([(b"a", b"1")])
    kv.sync()
    process.kill("test")
    assert open_map(disk)[1].get(b"a") == b"1"


def test_of_unsynced_writes_a_prefix_survives():
    survivors = set()
    for seed in range(30):
        disk = new_disk(seed)
        process, kv = open_map(disk)
        for key in (b"a", b"b", b"c"):
            kv.write([(key, b"1")])
        process.kill("test")
        left = open_map(disk)[1].scan(b"", b"z", 10)
        survivors.add(b"".join(key for key, _ in left))
    assert survivors == {b"", b"a", b"ab", b"abc"}


def test_a_dead_process_writes_nothing():
    disk = new_disk()
    process, kv = open_map(disk)
    process.kill("test")
    with pytest.raises(Killed):
        kv.write([(b"a", b"1")])
    assert open_map(disk)[1].get(b"a") is None


def test_after_a_failed_sync_nothing_is_taken_until_the_next_opening():
    disk = new_disk()
    told = []
    process, kv = open_map(disk, fails=True, failed=told)
    kv.write([(b"a", b"1")])
    for call in (kv.sync, kv.sync, lambda: kv.write([(b"b", b"2")])):
        with pytest.raises(Unavailable):
            call()
    assert told == [process]
    process.kill("unhealthy")
    _, opened = open_map(disk)
    opened.write([(b"b", b"2")])
    opened.sync()
    assert opened.get(b"b") == b"2"
