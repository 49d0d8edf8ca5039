"""Spans and pools on their own: forms, costs, eviction, look-ups against a plain model."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.coordinates import Row
from floe.model.ids import ObjectId, Offset, RangeId
from floe.object_log.cache import CacheManager, Pool
from floe.object_log.cached_span import span_of_batches, span_of_bytes
from floe.object_log.coordinate_cache import CoordinateCache
from floe.object_log.span_index import collect
from floe.observability.clock import SystemClock
from floe.observability.metrics import Metrics
from floe.wire.batch import read_header, stored_batches
from floe.wire.records import Record, encode

EPOCH = 5


def batches_of(counts, size=10):
    joined = b"".join(encode([Record(n, 1000, None, b"v" * size) for n in range(count)]) for count in counts)
    return memoryview(joined), stored_batches(memoryview(joined))


def cache(hot=1 << 20, cold=1 << 20):
    return CacheManager(hot_bytes=hot, cold_bytes=cold, clock=SystemClock(), metrics=Metrics())


def test_stamping_touches_neither_the_source_nor_anything_under_the_checksum():
    for size in (10, 9000):  # copied, and by reference
        data, batches = batches_of([2, 3], size)
        before = bytes(data)
        span = span_of_batches(RangeId(1), batches, Offset(70), EPOCH, None if size == 10 else len(data))
        assert bytes(data) == before
        sent = b"".join(span.cut(0, 2))
        headers = [read_header(sent), read_header(sent, batches[0].size)]
        assert [(h.base_offset, h.leader_epoch) for h in headers] == [(70, EPOCH), (72, EPOCH)]
        assert sent[16 : batches[0].size] == before[16 : batches[0].size]
        assert span.end == 75


def test_span_of_stored_bytes_equals_span_of_written_batches():
    data, batches = batches_of([1, 4, 2], 6000)
    row = Row(RangeId(1), Offset(9), Offset(15), ObjectId(1), 0, len(data), 1000, 0)
    stored = span_of_bytes(row, data, EPOCH, len(data))
    written = span_of_batches(RangeId(1), batches, Offset(9), EPOCH, len(data))
    assert (stored.bases, stored.ends, stored.end) == (written.bases, written.ends, written.end)
    assert b"".join(stored.cut(0, 3)) == b"".join(written.cut(0, 3))
    assert bytes(stored.batch(1)) == bytes(written.batch(1))


def test_large_batches_are_kept_by_reference_and_small_ones_are_copied():
    data, batches = batches_of([1, 1], 20_000)
    kept = span_of_batches(RangeId(1), batches, Offset(0), EPOCH, len(data))
    assert any(isinstance(piece, memoryview) and piece.obj is data.obj for piece in kept.cut(0, 2))
    copied = span_of_batches(RangeId(1), batches, Offset(0), EPOCH, None)
    assert copied.cut(0, 2) == [b"".join(kept.cut(0, 2))]
    assert len(copied.cut(0, 2)) == 1


def test_batches_that_would_keep_a_much_larger_buffer_are_copied(run):
    async def scenario(rig):
        inside, whole = rig.batch([b"x" * 10_000]), rig.batch([b"x" * 10_000])
        request = bytearray(100_000)
        request[50_000 : 50_000 + inside.size] = inside.view
        (wasteful,) = stored_batches(memoryview(request)[50_000 : 50_000 + inside.size])
        await rig.append((rig.ranges[0], wasteful))
        await rig.append((rig.ranges[1], whole))
        assert all(piece_owner(rig, n) is not request for n in (0, 1))
        assert piece_owner(rig, 1) is whole.view.obj
        assert rig.log.cache.bytes_of(Pool.HOT) < 25_000

    run(scenario)


def piece_owner(rig, number):
    span = rig.log.cache.find(rig.ranges[number], 0)
    piece = span.cut(0, 1)[-1]
    return piece.obj if isinstance(piece, memoryview) else piece


def test_buffer_shared_by_the_batches_of_a_request_is_counted_once_in_all(run):
    async def scenario(rig):
        one = rig.batch([b"x" * 50_000])
        buffer = bytearray(bytes(one.view) * 4 + bytes(20_000))
        views = [memoryview(buffer)[n * one.size : (n + 1) * one.size] for n in range(4)]
        entries = [(rig.ranges[n], stored_batches(view)[0]) for n, view in enumerate(views)]
        await rig.append(*entries)
        held = rig.log.cache.bytes_of(Pool.HOT)
        assert len(buffer) <= held < len(buffer) + 8000

    run(scenario)


def test_oldest_spans_leave_first_and_pools_do_not_mix():
    pools = cache(hot=100_000, cold=50_000)
    for n in range(20):
        _, batches = batches_of([1], 10_000)
        pools.add(span_of_batches(RangeId(n % 3), batches, Offset(n), EPOCH, None), Pool.HOT)
    kept = [n for n in range(20) if pools.find_hot(RangeId(n % 3), n) is not None]
    assert kept == list(range(11, 20))
    hot = pools.bytes_of(Pool.HOT)
    for n in range(100, 130):
        _, batches = batches_of([1], 10_000)
        pools.add(span_of_batches(RangeId(7), batches, Offset(n), EPOCH, None), Pool.COLD)
    assert pools.bytes_of(Pool.HOT) == hot <= 100_000
    assert 0 < pools.bytes_of(Pool.COLD) <= 50_000


def test_span_larger_than_its_pool_is_served_alone():
    pools = cache(hot=1000)
    for n in range(3):
        _, batches = batches_of([1], 5000)
        pools.add(span_of_batches(RangeId(1), batches, Offset(n), EPOCH, None), Pool.HOT)
    assert [pools.find(RangeId(1), n) is not None for n in range(3)] == [False, False, True]


COUNTS = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@settings(max_examples=80, deadline=None)
@given(st.lists(COUNTS, min_size=1, max_size=8), st.integers(0, 60), st.integers(0, 900), st.booleans())
def test_collect_gives_whole_batches_from_the_offset_on_within_the_budget(spans, offset, budget, must):
    pools = cache()
    model = []  # (first offset, offsets, size) of every batch
    base = 0
    order = []
    for counts in spans:
        _, batches = batches_of(counts)
        order.append((span_of_batches(RangeId(1), batches, Offset(base), EPOCH, None), Pool(len(order) % 2)))
        for batch in batches:
            model.append((base, batch.record_count, batch.size))
            base += batch.record_count
    Random(0).shuffle(order)
    for span, pool in order:
        pools.add(span, pool)
    taken = collect(pools.find, RangeId(1), offset, base, budget, must)
    wanted = [batch for batch in model if batch[0] + batch[1] > offset]
    if not wanted:
        assert taken is None
        return
    expected, size = [], 0
    for batch in wanted:
        if size + batch[2] > budget and not (must and not expected):
            break
        expected.append(batch)
        size += batch[2]
    pieces, got, after = taken
    headers = [read_header(batch.view) for batch in stored_batches(memoryview(b"".join(pieces)))]
    assert [header.base_offset for header in headers] == [batch[0] for batch in expected]
    assert got == size == sum(len(piece) for piece in pieces)
    if expected:
        assert after == expected[-1][0] + expected[-1][1]


def row(first, last, size=100, object_id=1, range_id=1):
    return Row(RangeId(range_id), Offset(first), Offset(last), ObjectId(object_id), 0, size, 0, 0)


def firsts(rows):
    return [found.first for found in rows]


def test_coordinates_are_contiguous_from_the_row_that_holds_the_offset():
    known = CoordinateCache(100)
    known.add([row(0, 9), row(10, 19), row(20, 29)])
    known.add([row(40, 49)])
    assert firsts(known.rows_from(RangeId(1), 12, max_bytes=1000, rows_max=10)) == [10, 20]
    assert firsts(known.rows_from(RangeId(1), 12, max_bytes=1000, rows_max=1)) == [10]
    assert firsts(known.rows_from(RangeId(1), 19, max_bytes=100, rows_max=10)) == [10]
    assert firsts(known.rows_from(RangeId(1), 19, max_bytes=110, rows_max=10)) == [10, 20]
    assert known.rows_from(RangeId(1), 30, max_bytes=1000, rows_max=10) == []
    assert known.rows_from(RangeId(2), 0, max_bytes=1000, rows_max=10) == []
    known.drop(RangeId(1))
    assert (known.rows_from(RangeId(1), 12, max_bytes=1000, rows_max=10), len(known)) == ([], 0)


def test_newer_coordinates_replace_what_they_overlap():
    known = CoordinateCache(100)
    known.add([row(0, 9), row(10, 19), row(20, 29), row(30, 39)])
    known.add([row(5, 24, object_id=2)])
    assert firsts(known.rows_from(RangeId(1), 5, max_bytes=1000, rows_max=10)) == [5]
    assert known.rows_from(RangeId(1), 4, max_bytes=1000, rows_max=10) == []
    assert firsts(known.rows_from(RangeId(1), 30, max_bytes=1000, rows_max=10)) == [30]
    assert len(known) == 2


def test_coordinates_of_the_range_used_longest_ago_leave_first():
    known = CoordinateCache(10)
    for range_id in range(3):
        known.add([row(n, n, range_id=range_id) for n in range(4)])
        known.rows_from(RangeId(0), 0, max_bytes=1, rows_max=1)
    assert len(known) == 8
    there = [r for r in range(3) if known.rows_from(RangeId(r), 0, max_bytes=1, rows_max=1)]
    assert there == [0, 2]
    known.add([row(n, n, range_id=5) for n in range(50)])
    assert len(known) == 10
