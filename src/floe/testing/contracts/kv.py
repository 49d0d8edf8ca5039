"""The contract of key-value maps (`floe.storage.kv.port`), as a class of tests.

    class TestMyMap(KeyValueContract):
        @pytest.fixture
        def open_map(self, tmp_path):
            return lambda: MyMap(tmp_path)

`open_map` opens the same map each time it is called; the map before must be closed by then. The tests compare
with a plain dict: the naive model of an ordered map.
"""

import random
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floe.model.errors import Unavailable
from floe.storage.kv.port import KeyValue, Pair, Write

OpenMap = Callable[[], KeyValue]
Model = dict[bytes, bytes]


def model_scan(model: Model, start: bytes, end: bytes, limit: int) -> list[Pair]:
    return [(key, model[key]) for key in sorted(model) if start <= key < end][: max(limit, 0)]


def model_floor(model: Model, key: bytes, low: bytes) -> Pair | None:
    found = [candidate for candidate in model if low <= candidate <= key]
    return (max(found), model[max(found)]) if found else None


def model_write(model: Model, writes: list[Write]) -> None:
    for key, value in writes:
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value


# Short keys of few letters, so that they meet, nest and border on each other.
keys_strategy = st.lists(st.sampled_from([b"\x00", b"a", b"b", b"\xff"]), max_size=4).map(b"".join)
writes_strategy = st.lists(st.tuples(keys_strategy, st.none() | st.binary(max_size=20)), max_size=12)
probe_strategy = st.tuples(keys_strategy, keys_strategy, st.sampled_from([0, 1, 2, 1000]))
step_strategy = st.tuples(writes_strategy, st.booleans(), st.lists(probe_strategy, max_size=5))

END = b"\xff" * 6  # after every key that the strategies make


class KeyValueContract:
    """Everything an adapter must do."""

    @pytest.fixture
    def kv(self, open_map: OpenMap) -> Iterator[KeyValue]:
        kv = open_map()
        yield kv
        kv.close()

    # Each example empties the map first, and the class keeps nothing, so sharing both is safe.
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(st.lists(step_strategy, max_size=12))
    def test_agrees_with_a_dict_whatever_is_written(
        self, kv: KeyValue, steps: list[tuple[list[Write], bool, list[tuple[bytes, bytes, int]]]]
    ) -> None:
        kv.write([(key, None) for key, _ in kv.scan(b"", END, 1000)])
        model: Model = {}
        for writes, is_synced, probes in steps:
            kv.write(writes)
            model_write(model, writes)
            if is_synced:
                kv.sync()
            for first, second, limit in probes:
                assert kv.get(first) == model.get(first)
                assert kv.scan(first, second, limit) == model_scan(model, first, second, limit)
                assert kv.floor(first, second) == model_floor(model, first, second)
            assert kv.scan(b"", END, 1000) == model_scan(model, b"", END, 1000)

    def test_the_last_write_of_a_key_in_a_call_wins(self, kv: KeyValue) -> None:
        kv.write([(b"a", b"1"), (b"a", None), (b"b", None), (b"b", b"2"), (b"c", b"3"), (b"c", b"4")])
        assert kv.scan(b"", b"z", 10) == [(b"b", b"2"), (b"c", b"4")]

    def test_empty_values_are_values(self, kv: KeyValue) -> None:
        kv.write([(b"a", b"")])
        assert kv.get(b"a") == b""
        assert kv.scan(b"", b"z", 10) == [(b"a", b"")]
        assert kv.floor(b"b", b"") == (b"a", b"")

    def test_large_values_come_back_whole(self, kv: KeyValue) -> None:
        value = random.Random(1).randbytes(3 << 20)  # noqa: S311
        kv.write([(b"a", value)])
        kv.sync()
        assert kv.get(b"a") == value

    def test_what_was_written_is_there_after_closing_and_opening(self, open_map: OpenMap) -> None:
        first = open_map()
        first.write([(b"%04d" % number, b"v") for number in range(1000)])
        first.sync()
        first.write([(b"0001", None)])
        first.sync()
        first.close()
        second = open_map()
        assert [key for key, _ in second.scan(b"", b"z", 5)] == [b"0000", b"0002", b"0003", b"0004", b"0005"]
        assert len(second.scan(b"", b"z", 10_000)) == 999
        second.close()

    def test_sync_may_run_beside_writes_and_reads(self, kv: KeyValue) -> None:
        stop = threading.Event()
        failures: list[BaseException] = []

        def sync() -> None:
            try:
                while not stop.is_set():
                    kv.sync()
            except BaseException as error:  # noqa: BLE001  the test shows it
                failures.append(error)

        thread = threading.Thread(target=sync)
        thread.start()
        for number in range(300):
            kv.write([(b"%04d" % number, b"v" * 100)])
            assert kv.floor(b"\xff", b"") == (b"%04d" % number, b"v" * 100)
        stop.set()
        thread.join()
        assert failures == []
        assert len(kv.scan(b"", b"\xff", 1000)) == 300

    def test_a_closed_map_refuses_and_may_be_closed_again(self, open_map: OpenMap) -> None:
        kv = open_map()
        kv.write([(b"a", b"1")])
        kv.close()
        kv.close()
        with pytest.raises(Unavailable):
            kv.get(b"a")
        with pytest.raises(Unavailable):
            kv.write([(b"a", b"1")])
        with pytest.raises(Unavailable):
            kv.sync()
