"""Kafka's rules for sequences, case by case and against a naive producer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.machines.producer_state import BATCHES_KEPT, SEQUENCE_MAX, advance, judge
from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset

OK = (ErrorCode.NONE, -1)
GAP = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def after(*batches: tuple[int, int, int]):
    """The state after batches of (epoch, first sequence, record count), offsets 100, 101, ..."""
    state = None
    for i, (epoch, sequence, count) in enumerate(batches):
        state = advance(state, epoch, sequence, count, Offset(100 + i), 1)
    return state


def duplicate_of(index: int):
    return ErrorCode.NONE, 100 + index


FIVE = [(0, i * 10, 10) for i in range(5)]


@pytest.mark.parametrize(
    ("before", "batch", "verdict"),
    [
        ([], (0, 0, 5), OK),
        ([], (3, 1234, 5), OK),
        ([(0, 0, 5)], (0, 5, 1), OK),
        ([(0, 0, 5)], (0, 6, 1), GAP),
        ([(0, 0, 5)], (0, 4, 1), GAP),
        ([(0, 0, 5)], (0, 0, 5), duplicate_of(0)),
        ([(0, 0, 5)], (0, 0, 4), GAP),
        ([(0, 0, 5)], (0, 1, 4), GAP),
        (FIVE, (0, 0, 10), duplicate_of(0)),
        (FIVE, (0, 40, 10), duplicate_of(4)),
        ([*FIVE, (0, 50, 10)], (0, 0, 10), GAP),
        ([*FIVE, (0, 50, 10)], (0, 10, 10), duplicate_of(1)),
        ([(5, 0, 5)], (4, 5, 1), FENCED),
        ([(5, 0, 5)], (4, 0, 5), FENCED),
        ([(5, 0, 5)], (6, 0, 1), OK),
        ([(5, 0, 5)], (6, 5, 1), GAP),
        ([(5, 0, 5), (6, 0, 1)], (6, 0, 1), duplicate_of(1)),
        ([(5, 0, 5), (6, 0, 1)], (5, 0, 5), FENCED),
        ([(0, SEQUENCE_MAX, 1)], (0, 0, 1), OK),
        ([(0, SEQUENCE_MAX, 1)], (0, 1, 1), GAP),
        ([(0, SEQUENCE_MAX - 1, 4)], (0, 2, 1), OK),
        ([(0, SEQUENCE_MAX - 1, 4)], (0, SEQUENCE_MAX - 1, 4), duplicate_of(0)),
        ([(0, SEQUENCE_MAX - 1, 4)], (0, 3, 1), GAP),
        ([(0, 7, 1)], (0, 0, 1), GAP),
    ],
)
def test_verdict(before, batch, verdict):
    assert judge(after(*before), *batch) == verdict


@given(
    st.integers(0, SEQUENCE_MAX),
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 8)), min_size=1, max_size=30),
)
def test_each_batch_is_accepted_once_and_repeats_of_the_last_five_find_it(start, steps):
    state, sequence, sent = None, start, []
    for count, back in steps:
        batch = (0, sequence, count)
        assert judge(state, *batch) == OK
        offset = Offset(len(sent) * 1000)
        state = advance(state, *batch, offset, 1)
        sent.append((batch, offset))
        sequence = (sequence + count) % (SEQUENCE_MAX + 1)
        if back < len(sent):
            repeated, first_offset = sent[-1 - back]
            expected = (ErrorCode.NONE, first_offset) if back < BATCHES_KEPT else GAP
            assert judge(state, *repeated) == expected
    assert len(state.batches) == 3 * min(BATCHES_KEPT, len(sent))
