"""When the front row of a range is due, as tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floe.machines.retention import NEVER, RangeLimits, due_at, is_due, row_time

NOW = 1_000_000


@pytest.mark.parametrize(
    ("max_timestamp", "committed_at", "expected"),
    [(5, 9, 5), (9, 5, 5), (1 << 62, 5, 5), (-1, 5, 5), (0, 5, 0)],
)
def test_age_counts_from_the_lesser_time(max_timestamp, committed_at, expected):
    assert row_time(max_timestamp, committed_at) == expected


@pytest.mark.parametrize(
    ("limits", "stored", "head_time", "head_size", "due", "at"),
    [
        (RangeLimits(), 10**12, 0, 1, False, NEVER),
        (RangeLimits(100, -1), 10, NOW - 99, 10, False, NOW + 1),
        (RangeLimits(100, -1), 10, NOW - 100, 10, True, NOW),
        (RangeLimits(100, -1), 10, NOW - 500, 10, True, NOW - 400),
        (RangeLimits(0, -1), 10, NOW, 10, True, NOW),
        (RangeLimits(-1, 100), 110, 0, 10, True, NOW),
        (RangeLimits(-1, 100), 109, 0, 10, False, NEVER),
        (RangeLimits(-1, 0), 10, 0, 10, True, NOW),
        (RangeLimits(100, 100), 110, NOW, 10, True, NOW),
        (RangeLimits(100, 100), 100, NOW, 10, False, NOW + 100),
        (RangeLimits((1 << 63) - 1, -1), 10, NOW, 10, False, 1 << 62),
    ],
)
def test_front_row_is_due(limits, stored, head_time, head_size, due, at):
    assert is_due(limits, stored, head_time, head_size, NOW) is due
    assert due_at(limits, stored, head_time, head_size, NOW) == at


@given(
    st.builds(RangeLimits, st.integers(-1, 500), st.integers(-1, 500)),
    st.integers(0, 600),
    st.integers(0, 2000),
    st.integers(1, 100),
    st.integers(0, 2000),
)
def test_row_is_due_exactly_when_its_time_has_come(limits, others, head_time, head_size, now):
    at = due_at(limits, others + head_size, head_time, head_size, now)
    assert is_due(limits, others + head_size, head_time, head_size, now) is (NEVER < at <= now)
