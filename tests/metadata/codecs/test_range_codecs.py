"""Stored rows come back as they were, keys sort by number, and coordinates rows are small."""

from hypothesis import given
from hypothesis import strategies as st

from floe.machines.log_draft import RowSpan
from floe.machines.producer_state import ProducerState
from floe.machines.range_record import RangeRecord
from floe.machines.retention import RangeLimits
from floe.metadata.codecs import delete_work, object_homes, object_rows, producer_states, range_records, rows
from floe.model.coordinates import EntryResult, Row, RowFlags
from floe.model.error_codes import ErrorCode
from floe.model.ids import Bucket, ObjectId, Offset, RangeId, TopicId, VnodeId, object_id
from floe.model.topic import RangeState

i64 = st.integers(-(1 << 63), (1 << 63) - 1)
u63 = st.integers(0, (1 << 63) - 1)
u32 = st.integers(0, (1 << 32) - 1)
flags = st.sampled_from(
    [RowFlags.NONE, RowFlags.TRANSACTIONAL, RowFlags.MARKER_ABORT | RowFlags.TRANSACTIONAL]
)


@given(u63, u63, u32, u63, u63, u32, i64, u63, flags)
def test_row_comes_back(range_id, first, span, obj, position, size, timestamp, committed_at, row_flags):
    stored = RowSpan(first, first + span, ObjectId(obj), position, position + size, timestamp, row_flags)
    key = rows.row_key(RangeId(range_id), stored.last)
    value = rows.encode_span(stored, committed_at)
    assert len(value) <= 42
    assert rows.decode_row(key, value) == Row(
        RangeId(range_id),
        Offset(first),
        Offset(first + span),
        ObjectId(obj),
        position,
        size,
        timestamp,
        committed_at,
        0,
        row_flags,
    )


@given(st.tuples(u63, u63), st.tuples(u63, u63))
def test_row_keys_sort_by_range_and_last_offset(one, other):
    assert (rows.row_key(*one) < rows.row_key(*other)) == (one < other)


records = st.builds(
    RangeRecord,
    topic_id=st.binary(min_size=16, max_size=16).map(TopicId),
    state=st.sampled_from(RangeState),
    limits=st.builds(RangeLimits, i64, i64),
    log_start=u63,
    log_end=u63,
    rows_start=u63,
    row_count=u63,
    stored_bytes=u63,
    drop_at=i64,
    head_time=i64,
    head_size=u63,
    open_nodes=st.lists(st.tuples(i64, u32), max_size=12).map(lambda pairs: sum(pairs, ())),
)


@given(records)
def test_range_record_comes_back(record):
    assert range_records.decode_range(range_records.encode_range(record)) == record


@given(
    st.integers(-1, 32767),
    i64,
    st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), u63), min_size=1, max_size=5),
)
def test_producer_state_comes_back(epoch, last_used, batches):
    state = ProducerState(epoch, last_used, sum(batches, ()))
    assert producer_states.decode_producer(producer_states.encode_producer(state)) == state


results = st.builds(EntryResult, st.sampled_from(ErrorCode), u63, st.integers(-1, 1 << 40), st.booleans())


@given(u32, st.lists(results, max_size=80))
def test_object_row_comes_back(live_rows, results):
    value = object_rows.encode_object(live_rows, results)
    assert object_rows.live_rows_of(value) == live_rows
    assert object_rows.decode_results(value) == tuple(results)
    changed = object_rows.with_live_rows(value, 7)
    assert object_rows.live_rows_of(changed) == 7
    assert object_rows.decode_results(changed) == tuple(results)
    assert object_rows.live_rows_of(object_rows.without_results(value)) == live_rows
    assert len(object_rows.without_results(value)) == 4


def test_objects_of_a_bucket_lie_between_its_keys():
    start, end = object_rows.bucket_keys(Bucket(5))
    inside = [object_id(Bucket(5), 0), object_id(Bucket(5), (1 << 32) - 1)]
    outside = [object_id(Bucket(4), (1 << 32) - 1), object_id(Bucket(6), 0)]
    assert [start <= object_rows.object_key(o) < end for o in inside + outside] == [True, True, False, False]


@given(st.booleans(), u32, u32, st.sets(st.integers(0, 65535)))
def test_home_rows_come_back(is_closing, issued, settled, vnodes):
    record = object_homes.BucketRecord(is_closing, issued, settled)
    assert object_homes.decode_bucket(object_homes.encode_bucket(record)) == record
    held = {VnodeId(v) for v in vnodes}
    assert object_homes.decode_holders(object_homes.encode_holders(held)) == held


@given(u63, u63, st.lists(u63, max_size=20))
def test_work_item_comes_back(token, deadline, objects):
    item = delete_work.LeasedItem(token, deadline, tuple(ObjectId(o) for o in objects))
    assert delete_work.decode_item(delete_work.encode_item(item)) == item
