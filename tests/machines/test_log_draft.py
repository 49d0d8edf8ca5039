"""A draft assigns offsets, coalesces rows and keeps the record, whatever is appended."""

from hypothesis import given, settings
from hypothesis import strategies as st

from floe.machines.log_draft import LogDraft
from floe.machines.range_record import RangeRecord
from floe.machines.retention import NEVER, RangeLimits
from floe.model.coordinates import ROW_BYTES_MAX, BatchEntry
from floe.model.ids import ObjectId, Offset, RangeId, TopicId
from floe.model.topic import RangeState

NOW = 1000


def record(**fields) -> RangeRecord:
    limits = fields.pop("limits", RangeLimits())
    return RangeRecord(TopicId(bytes(16)), RangeState.ACTIVE, limits, **fields)


def batch(position: int, size: int, count: int, timestamp: int = 5) -> BatchEntry:
    return BatchEntry(RangeId(1), position, size, count, timestamp)


sizes = st.one_of(
    st.integers(1, 5000), st.sampled_from([ROW_BYTES_MAX // 2, ROW_BYTES_MAX, ROW_BYTES_MAX + 1])
)
appends = st.lists(
    st.tuples(
        st.integers(1, 3),  # object
        st.booleans(),  # follows the one before in the file
        sizes,
        st.integers(1, 300),
        st.integers(-1, 100),
        st.booleans(),  # sealed afterwards
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(appends, st.integers(0, 1 << 40))
def test_rows_cover_what_was_appended_exactly(steps, start):
    draft = LogDraft(record(log_end=Offset(start), rows_start=Offset(start)))
    placed, position, offset, rows_told = [], 0, start, 0
    for object_id, follows, size, count, timestamp, is_sealed in sorted(steps, key=lambda s: s[0]):
        position += 0 if follows else 7
        assert draft.append(ObjectId(object_id), batch(position, size, count, timestamp)) == offset
        placed.append((object_id, position, size, offset, count, timestamp))
        position += size
        offset += count
        if is_sealed:
            rows_told += draft.seal()
    rows_told += draft.seal()
    assert rows_told == len(draft.rows)
    assert draft.log_end == offset
    assert [r.first for r in draft.rows] == [start, *(r.last + 1 for r in draft.rows)][: len(draft.rows)]
    for row in draft.rows:
        inside = [p for p in placed if row.first <= p[3] <= row.last]
        assert {p[0] for p in inside} == {row.object}
        assert row.last + 1 == inside[-1][3] + inside[-1][4]
        assert row.position == inside[0][1]
        assert row.end_position - row.position == sum(p[2] for p in inside)
        assert row.max_timestamp == max(p[5] for p in inside)
        assert len(inside) == 1 or row.end_position - row.position <= ROW_BYTES_MAX
    after = draft.record(NOW)
    assert after.log_end == offset
    assert after.stored_bytes == sum(p[2] for p in placed)
    assert after.row_count == len(draft.rows)


def test_neighbours_in_one_object_share_a_row():
    draft = LogDraft(record())
    draft.append(ObjectId(1), batch(0, 10, 1))
    draft.append(ObjectId(1), batch(10, 10, 1))
    assert draft.seal() == 1


def test_first_row_sets_the_time_of_the_first_drop():
    draft = LogDraft(record(limits=RangeLimits(100, -1)))
    draft.append(ObjectId(1), batch(0, 10, 1, timestamp=400))
    draft.seal()
    after = draft.record(NOW)
    assert (after.head_time, after.head_size, after.drop_at) == (400, 10, 500)


def test_later_rows_leave_the_time_of_the_next_drop_alone():
    before = record(limits=RangeLimits(100, -1), row_count=1, head_time=900, head_size=5, drop_at=1000)
    draft = LogDraft(before)
    draft.append(ObjectId(1), batch(0, 10, 1, timestamp=1))
    draft.seal()
    after = draft.record(NOW)
    assert (after.head_time, after.head_size, after.drop_at) == (900, 5, 1000)


def test_too_many_bytes_are_due_at_once_and_enough_are_not():
    for size, expected in ((94, NEVER), (95, NOW)):
        before = record(limits=RangeLimits(-1, 100), row_count=1, head_time=900, head_size=5, stored_bytes=10)
        draft = LogDraft(before)
        draft.append(ObjectId(1), batch(0, size, 1))
        draft.seal()
        assert draft.record(NOW).drop_at == expected
