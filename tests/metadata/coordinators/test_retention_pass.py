"""Retention and delete_records on one vnode: what goes, what stays, in bounded passes."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.machines.retention import RangeLimits
from floe.metadata.keys import DROP, ROW, TIME_NODE
from floe.metadata.store.memory import CommitFault
from floe.model.error_codes import ErrorCode
from floe.model.errors import Unavailable
from floe.model.ids import NO_OFFSET, Offset, RangeId
from floe.testing.shard import NOW_MS, Shard, entry

HOUR = 3_600_000


async def drain(shard: Shard, **limits: int) -> int:
    """Run passes until none has more; how many it took."""
    for count in range(1, 1000):
        if not (await shard.ranges.retention_pass(**limits)).has_more:
            return count
    raise AssertionError("retention does not come to an end")


async def test_rows_go_when_they_are_older_than_the_limit(shard: Shard):
    await shard.create(1, retention_ms=HOUR)
    for _ in range(3):
        await shard.put(entry(1, 10, timestamp=shard.clock.now))
        shard.clock.now += 1000
    shard.clock.now = NOW_MS + HOUR - 1
    await drain(shard)
    assert await shard.ends(1) == (0, 30)
    shard.clock.now = NOW_MS + HOUR + 1000
    await drain(shard)
    assert await shard.ends(1) == (20, 30)
    assert len(shard.keys(ROW)) == 1


async def test_log_end_stays_when_everything_is_dropped(shard: Shard):
    await shard.create(1, retention_ms=HOUR)
    await shard.put(entry(1, 10))
    shard.clock.now += HOUR
    await drain(shard)
    assert await shard.ends(1) == (10, 10)
    assert shard.keys(DROP) == []
    shard.crash()
    assert await shard.ends(1) == (10, 10)
    (result,) = await shard.put(entry(1, 1))
    assert (result.base_offset, result.log_start) == (10, 10)
    assert (await shard.find(1, 10)).rows[0].first == 10
    assert (await shard.find(1, 9)).error == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_bogus_future_timestamp_keeps_nothing_for_ever(shard: Shard):
    await shard.create(1, retention_ms=HOUR)
    await shard.put(entry(1, timestamp=1 << 62))
    shard.clock.now += HOUR
    await drain(shard)
    assert await shard.ends(1) == (1, 1)


async def test_row_without_timestamp_counts_from_its_commit(shard: Shard):
    await shard.create(1, retention_ms=HOUR)
    await shard.put(entry(1, timestamp=-1))
    shard.clock.now += HOUR - 1
    await drain(shard)
    assert await shard.ends(1) == (0, 1)
    shard.clock.now += 1
    await drain(shard)
    assert await shard.ends(1) == (1, 1)


async def test_old_row_behind_a_young_one_waits_for_it(shard: Shard):
    await shard.create(1, retention_ms=HOUR)
    await shard.put(entry(1, timestamp=NOW_MS))
    await shard.put(entry(1, timestamp=5))
    await drain(shard)
    assert await shard.ends(1) == (0, 2)


async def test_size_keeps_at_least_the_limit(shard: Shard):
    await shard.create(1, retention_bytes=250)
    for _ in range(5):
        await shard.put(entry(1, size=100))
        await drain(shard)
    assert await shard.ends(1) == (2, 5)


async def test_unlimited_range_is_in_no_index(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1))
    assert shard.keys(DROP) == []


async def test_passes_are_bounded_and_lag_is_the_age_of_the_oldest_overdue_entry(shard: Shard):
    await shard.create(1, 2, 3, retention_ms=HOUR)
    for range_id in (1, 2, 3):
        for _ in range(5):
            await shard.put(entry(range_id, timestamp=shard.clock.now))
        shard.clock.now += 1000
    shard.clock.now = NOW_MS + HOUR + 5000
    first = await shard.ranges.retention_pass(ranges_max=2, rows_max=2)
    assert first == (True, 5000)
    assert [await shard.ends(r) for r in (1, 2, 3)] == [(2, 5), (2, 5), (0, 5)]
    await drain(shard, ranges_max=1, rows_max=1)
    assert [await shard.ends(r) for r in (1, 2, 3)] == [(5, 5)] * 3
    assert await shard.ranges.retention_pass() == (False, 0)


async def test_commit_does_not_wait_for_a_pass(shard: Shard):
    ranges = range(1, 41)
    await shard.create(*ranges, retention_ms=HOUR)
    await shard.put(*(entry(range_id) for range_id in ranges))
    shard.clock.now += HOUR
    passing = asyncio.ensure_future(shard.ranges.retention_pass(ranges_max=40))
    while not shard.ranges.view_now(RangeId(1)).log_start:
        await asyncio.sleep(0)
    await shard.put(entry(40, timestamp=shard.clock.now))
    assert not passing.done()
    assert await shard.ends(40) == (0, 2)
    await passing
    assert await shard.ends(40) == (1, 2)


async def test_pass_ends_with_the_error_of_a_failing_store(shard: Shard):
    await shard.create(1, 2, 3, retention_ms=HOUR)
    await shard.put(entry(1), entry(2), entry(3))
    shard.clock.now += HOUR
    shard.store.faults = lambda vnode, writes: CommitFault.LOST
    with pytest.raises(Unavailable):
        await shard.ranges.retention_pass()
    shard.store.faults = None
    shard.lead_again()
    await drain(shard)
    assert [await shard.ends(r) for r in (1, 2, 3)] == [(1, 1)] * 3


async def test_raising_a_limit_keeps_rows_and_lowering_it_drops_them(shard: Shard):
    await shard.create(1, retention_ms=HOUR)
    await shard.put(entry(1))
    await shard.ranges.configure_ranges([RangeId(1), RangeId(9)], RangeLimits(2 * HOUR, -1))
    shard.clock.now += HOUR
    await drain(shard)
    assert await shard.ends(1) == (0, 1)
    await shard.ranges.configure_ranges([RangeId(1)], RangeLimits(HOUR, -1))
    await drain(shard)
    assert await shard.ends(1) == (1, 1)


async def test_delete_records_raises_the_log_start_at_once_and_rows_go_later(shard: Shard):
    await shard.create(1)
    for _ in range(3):
        await shard.put(entry(1, 10))
    view = await shard.ranges.delete_records(RangeId(1), Offset(15))
    assert (view.error, view.log_start, view.log_end) == (ErrorCode.NONE, 15, 30)
    assert (await shard.find(1, 14)).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await shard.find(1, 15)).rows[0].first == 10
    assert len(shard.keys(ROW)) == 3
    await drain(shard)
    assert len(shard.keys(ROW)) == 2
    assert await shard.ends(1) == (15, 30)
    assert (await shard.find(1, 15)).rows[0].first == 10


async def test_delete_records_never_lowers_the_log_start(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1, 10))
    await shard.ranges.delete_records(RangeId(1), Offset(5))
    view = await shard.ranges.delete_records(RangeId(1), Offset(2))
    assert (view.error, view.log_start) == (ErrorCode.NONE, 5)
    everything = await shard.ranges.delete_records(RangeId(1), NO_OFFSET)
    assert (everything.log_start, everything.log_end) == (10, 10)


@pytest.mark.parametrize("before", [11, -2])
async def test_delete_records_beyond_the_log_is_out_of_range(shard: Shard, before):
    await shard.create(1)
    await shard.put(entry(1, 10))
    view = await shard.ranges.delete_records(RangeId(1), Offset(before))
    assert (view.error, view.log_start) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)


async def test_delete_records_of_an_unknown_range_says_so(shard: Shard):
    view = await shard.ranges.delete_records(RangeId(9), Offset(0))
    assert view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_delete_records_past_a_deep_front_goes_on_in_bounded_passes(shard: Shard):
    await shard.create(1)
    for _ in range(20):
        await shard.put(entry(1, 10))
    await shard.ranges.delete_records(RangeId(1), Offset(155))
    assert await drain(shard, rows_max=4) >= 4
    assert len(shard.keys(ROW)) == 5
    assert shard.keys(DROP) == []


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(0, 30)), min_size=1, max_size=150),
    st.lists(st.floats(0, 1), max_size=3),
    st.integers(1, 20),
)
def test_trimming_leaves_exact_lookups_and_no_stray_nodes(rows, cuts, rows_max):
    async def check():
        shard = Shard()
        await shard.create(1)
        for width, timestamp in rows:
            await shard.put(entry(1, width, timestamp=timestamp))
        end = sum(width for width, _ in rows)
        for cut in sorted(cuts):
            await shard.ranges.delete_records(RangeId(1), Offset(int(end * cut)))
            await drain(shard, rows_max=rows_max)
            start = (await shard.ends(1))[0]
            assert start == int(end * cut)
            stored = (await shard.find(1, start)).rows
            assert len(shard.keys(ROW)) == len(stored)
            for timestamp in (0, 15, 30, 31):
                expected = tuple(r for r in stored if r.max_timestamp >= timestamp)[:1]
                assert (await shard.ranges.find_timestamp(RangeId(1), timestamp)).rows == expected
            first = stored[0].first if stored else end
            for key in shard.keys(TIME_NODE):
                level, index = key[9], int.from_bytes(key[10:], "big")
                assert (index + 1) * 64**level > first

    asyncio.run(check())
