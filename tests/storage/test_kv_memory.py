"""The memory map keeps the contract, and forgets like a disk when told to crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.storage.kv.memory import MemoryKeyValue
from floe.storage.kv.port import Write
from floe.testing.contracts.kv import END, KeyValueContract, OpenMap, model_write, writes_strategy


class TestMemoryKeyValue(KeyValueContract):
    @pytest.fixture
    def open_map(self) -> OpenMap:
        kept = MemoryKeyValue()

        def reopen() -> MemoryKeyValue:
            nonlocal kept
            kept = kept.crash(kept.unsynced_writes)
            return kept

        return reopen


@given(st.lists(st.tuples(writes_strategy, st.booleans()), max_size=20), st.floats(0, 1))
def test_a_crash_leaves_a_prefix_that_holds_everything_synced(
    steps: list[tuple[list[Write], bool]], share: float
) -> None:
    kv = MemoryKeyValue()
    model: dict[bytes, bytes] = {}
    history = [dict(model)]
    synced = 0
    for writes, is_synced in steps:
        kv.write(writes)
        model_write(model, writes)
        history.append(dict(model))
        if is_synced:
            kv.sync()
            synced = len(history) - 1
    assert kv.unsynced_writes == len(history) - 1 - synced
    keep = int(share * kv.unsynced_writes)
    survivor = kv.crash(keep)
    assert dict(survivor.scan(b"", END, 1000)) == history[synced + keep]
    assert survivor.unsynced_writes == 0
