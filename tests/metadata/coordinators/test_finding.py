"""Finding rows and ends, by offset and by time, and waiting for them."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.metadata.coordinators.ranges import Waiter
from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset, RangeId
from floe.testing.shard import Shard, entry


async def filled(shard: Shard, count: int, *, width: int = 3) -> None:
    await shard.create(1)
    for i in range(count):
        await shard.put(entry(1, width, timestamp=i))


async def test_find_starts_with_the_row_that_holds_the_offset(shard: Shard):
    await filled(shard, 5)
    for offset in range(15):
        view = await shard.find(1, offset)
        assert view.rows[0].first <= offset <= view.rows[0].last
        assert [r.first for r in view.rows] == list(range(offset // 3 * 3, 15, 3))
        assert (view.log_start, view.log_end, view.last_stable) == (0, 15, 15)


async def test_find_stops_at_the_byte_limit_but_gives_at_least_one_row(shard: Shard):
    await filled(shard, 200)
    assert len((await shard.find(1, 0, 1)).rows) == 1
    assert len((await shard.find(1, 0, 250)).rows) == 3
    assert len((await shard.find(1, 0, 100 * 100)).rows) == 100
    assert len((await shard.find(1, 0)).rows) == 200


async def test_find_without_bytes_gives_the_ends_alone(shard: Shard):
    await filled(shard, 2)
    view = await shard.find(1, 999, 0)
    assert (view.error, view.rows, view.log_end) == (ErrorCode.NONE, (), 6)


async def test_find_at_the_end_is_empty_and_beyond_it_out_of_range(shard: Shard):
    await filled(shard, 2)
    at_end = await shard.find(1, 6)
    assert (at_end.error, at_end.rows) == (ErrorCode.NONE, ())
    for offset in (7, -1):
        beyond = await shard.find(1, offset)
        assert (beyond.error, beyond.log_start, beyond.log_end) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0, 6)


async def test_find_of_an_unknown_range_says_so(shard: Shard):
    assert (await shard.find(9, 0)).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert shard.ranges.view_now(9) is None


async def test_find_knows_everything_after_a_restart(shard: Shard):
    await filled(shard, 5)
    before = await shard.find(1, 4)
    shard.crash()
    assert shard.ranges.view_now(1) is None
    assert await shard.find(1, 4) == before
    assert shard.ranges.view_now(1).log_end == 15


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(0, 40)), max_size=120),
    st.lists(st.integers(0, 41), max_size=6),
)
def test_lookups_by_time_agree_with_a_walk(rows, wanted):
    async def check():
        shard = Shard()
        await shard.create(1)
        for width, timestamp in rows:
            await shard.put(entry(1, width, timestamp=timestamp))
        stored = (await shard.find(1, 0)).rows
        for timestamp in wanted:
            expected = tuple(r for r in stored if r.max_timestamp >= timestamp)[:1]
            assert (await shard.ranges.find_timestamp(RangeId(1), timestamp)).rows == expected
        expected = tuple(sorted(stored, key=lambda r: (-r.max_timestamp, r.first)))[:1]
        assert (await shard.ranges.find_max_timestamp(RangeId(1))).rows == expected

    asyncio.run(check())


async def test_lookup_by_time_of_an_unknown_range_says_so(shard: Shard):
    for view in (
        await shard.ranges.find_timestamp(RangeId(9), 0),
        await shard.ranges.find_max_timestamp(RangeId(9)),
    ):
        assert view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def waiter(**positions: int) -> Waiter:
    return Waiter({RangeId(int(name[1:])): Offset(offset) for name, offset in positions.items()})


async def test_waiter_is_woken_by_a_commit_and_by_that_range_alone(shard: Shard):
    await shard.create(1, 2)
    await shard.ranges.load([RangeId(1), RangeId(2)])
    waiting = waiter(r1=0, r2=0)
    assert shard.ranges.register(waiting, [RangeId(1), RangeId(2)]) == []
    assert not waiting.woken
    await shard.put(entry(2))
    await waiting.future()
    assert waiting.woken == {2}
    shard.ranges.unregister(waiting, [RangeId(1), RangeId(2)])
    await shard.put(entry(1))
    assert waiting.woken == {2}


async def test_waiter_past_the_end_sleeps_on(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1, 2))
    waiting = waiter(r1=5)
    shard.ranges.register(waiting, [RangeId(1)])
    await shard.put(entry(1, 3))
    assert not waiting.woken
    await shard.put(entry(1, 1))
    assert waiting.woken == {1}


async def test_waiter_that_is_late_is_woken_at_once(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1, 2))
    waiting = waiter(r1=1)
    assert shard.ranges.register(waiting, [RangeId(1)]) == []
    await waiting.future()
    assert waiting.woken == {1}


async def test_waiter_on_a_range_not_in_memory_is_woken_by_loading_it(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1, 2))
    shard.crash()
    waiting = waiter(r1=1, r9=0)
    cold = shard.ranges.register(waiting, [RangeId(1), RangeId(9)])
    assert cold == [1, 9]
    await shard.ranges.load(cold)
    assert waiting.woken == {1, 9}


async def test_waiter_is_woken_by_loss_of_leadership(shard: Shard):
    await shard.create(1)
    waiting = waiter(r1=0)
    shard.ranges.register(waiting, [RangeId(1)])
    shard.vnode.led(None)
    assert waiting.woken == {1}


@pytest.mark.parametrize("position", [0, 2])
async def test_no_commit_slips_between_registering_and_reading(shard: Shard, position):
    await shard.create(1)
    await shard.put(entry(1, position)) if position else None
    waiting = waiter(r1=position)
    commit = asyncio.ensure_future(shard.put(entry(1, 1)))
    await asyncio.sleep(0)
    cold = shard.ranges.register(waiting, [RangeId(1)])
    await shard.ranges.load(cold)
    await commit
    assert waiting.woken == {1}
