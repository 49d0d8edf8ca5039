"""Lookups by time against a naive list: shuffled and bogus timestamps, trims, rows of every width.

The tree is kept as the coordinator keeps it: completed nodes in a dict, rows in a list. A search is driven by
answering what it asks, and must find what a walk over the list finds, with few questions.
"""

from bisect import bisect_left

from hypothesis import given, settings
from hypothesis import strategies as st

from floe.machines import time_search, time_tree
from floe.machines.time_search import ROWS_ASKED, NodesAsked
from floe.model.coordinates import Row
from floe.model.ids import ObjectId, Offset, RangeId

BOGUS = 1 << 62


class Log:
    def __init__(self):
        self.rows = []
        self.nodes = {}
        self.open = ()
        self.end = 0
        self.start = 0
        self.asked = 0
        self.read = 0

    def append(self, count, timestamp):
        first, last = self.end, self.end + count - 1
        self.rows.append(row(first, last, timestamp))
        self.open, completed = time_tree.append(self.open, first, last, timestamp)
        for node in completed or ():
            assert (node.level, node.index) not in self.nodes
            self.nodes[node.level, node.index] = node.max_timestamp
        self.end = last + 1

    def trim(self, start):
        self.start = start
        self.rows = [r for r in self.rows if r.last >= start]
        self.nodes = {
            (level, index): value
            for (level, index), value in self.nodes.items()
            if (index + 1) << 6 * level > start
        }

    def answer(self, ask):
        self.asked += 1
        if isinstance(ask, NodesAsked):
            told = {
                i: self.nodes[ask.level, i] for i in range(ask.start, ask.end) if (ask.level, i) in self.nodes
            }
        else:
            at = bisect_left(self.rows, ask.offset, key=lambda r: r.last)
            told = self.rows[at : at + ROWS_ASKED]
        self.read += len(told)
        return told

    def run(self, search):
        try:
            ask = next(search)
            while True:
                ask = search.send(self.answer(ask))
        except StopIteration as done:
            return done.value

    def first_at_or_after(self, timestamp):
        return self.run(time_search.first_at_or_after(timestamp, self.start, self.end))

    def greatest(self):
        return self.run(time_search.greatest(self.start, self.end))


def row(first, last, timestamp):
    return Row(RangeId(1), Offset(first), Offset(last), ObjectId(1), 0, 1, timestamp, 0)


timestamps = st.one_of(st.integers(0, 50), st.integers(0, 10_000), st.just(-1), st.just(BOGUS))
appends = st.tuples(
    st.one_of(
        st.integers(1, 3), st.integers(1, 80), st.sampled_from([63, 64, 65, 4095, 4096, 4097, 300_000])
    ),
    timestamps,
    st.integers(1, 40),  # how many such rows in a run
)


@settings(max_examples=150, deadline=None)
@given(st.lists(appends, max_size=25), st.lists(timestamps, min_size=1, max_size=8), st.floats(0, 1))
def test_search_finds_what_a_walk_over_all_rows_finds(runs, wanted, trimmed):
    log = Log()
    for count, timestamp, times in runs:
        for i in range(times):
            log.append(count, timestamp if timestamp in (-1, BOGUS) else timestamp + i * 7 % 11)
    log.trim(int(log.end * trimmed))
    for timestamp in wanted:
        expected = next((r for r in log.rows if r.max_timestamp >= timestamp), None)
        assert log.first_at_or_after(timestamp) == expected
    expected = max(log.rows, key=lambda r: (r.max_timestamp, -r.first), default=None)
    assert log.greatest() == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(appends, max_size=25))
def test_every_node_bounds_the_rows_that_touch_it_and_missing_ones_have_few(runs):
    log = Log()
    for count, timestamp, times in runs:
        for _ in range(times):
            log.append(count, timestamp)
    for level in range(1, 4):
        size = 64**level
        for index in range(min(log.end // size, 200)):
            touching = [r for r in log.rows if r.first < (index + 1) * size and r.last >= index * size]
            value = log.nodes.get((level, index))
            if value is None:
                assert len(touching) < time_tree.NODE_ROWS_MIN
            else:
                assert value == max(r.max_timestamp for r in touching)


def grown(count, width):
    log = Log()
    for i in range(count):
        log.append(width, i)
    return log


def test_lookup_cost_grows_with_the_logarithm_of_the_log():
    for width in (1, 5, 20, 100, 5000):
        for size in (100, 3_000, 30_000):
            log = grown(size, width)
            for timestamp in (0, size // 3, size - 2, size):
                log.asked = log.read = 0
                found = log.first_at_or_after(timestamp)
                assert (found.max_timestamp if found else size) == timestamp
                assert log.asked <= 30
                assert log.read <= 800
            log.asked = log.read = 0
            assert log.greatest().max_timestamp == size - 1
            assert log.asked <= 40
            assert log.read <= 1500


def test_nodes_are_few_compared_with_rows():
    for width in (1, 10, 21, 64, 100, 5000):
        log = grown(5_000, width)
        assert len(log.nodes) <= len(log.rows) * 0.4
