"""The memory map keeps the contract, and forgets like a disk when told to crash."""

import random

import pytest

from floe.storage.kv.memory import MemoryKeyValue
from floe.testing.contracts.kv import KeyValueContract, OpenMap, model_write, random_writes


class TestMemoryKeyValue(KeyValueContract):
    @pytest.fixture
    def open_map(self) -> OpenMap:
        kept = MemoryKeyValue()

        def reopen() -> MemoryKeyValue:
            nonlocal kept
            kept = kept.crash(kept.unsynced_writes)
            return kept

        return reopen


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_leaves_a_prefix_that_holds_everything_synced(seed: int) -> None:
    source = random.Random(seed)
    kv = MemoryKeyValue()
    model: dict[bytes, bytes] = {}
    history = [dict(model)]
    synced = 0
    for _ in range(40):
        writes = random_writes(source)
        kv.write(writes)
        model_write(model, writes)
        history.append(dict(model))
        if source.random() < 0.2:
            kv.sync()
            synced = len(history) - 1
    assert kv.unsynced_writes == len(history) - 1 - synced
    keep = source.randint(0, kv.unsynced_writes)
    survivor = kv.crash(keep)
    assert dict(survivor.scan(b"", b"\xff" * 9, 1000)) == history[synced + keep]
    assert survivor.unsynced_writes == 0
