"""Look-ups by time against a list of records."""

from random import Random

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected
from floe.model.ids import NO_OFFSET, Offset
from floe.object_log.engine import EngineSettings

NOT_FOUND = (NO_OFFSET, -1)
DAY = 86_400_000


def first_at_or_after(times, timestamp):
    return next(((offset, time) for offset, time in enumerate(times) if time >= timestamp), NOT_FOUND)


def greatest(times):
    return (times.index(max(times)), max(times)) if times else NOT_FOUND


async def write(rig, range_id, times, batch_size, codec=0):
    for start in range(0, len(times), batch_size):
        part = times[start : start + batch_size]
        await rig.append((range_id, rig.batch([b"v"] * len(part), timestamps=part, codec=codec)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_cached", [True, False], ids=["cached", "stored"])
def test_look_up_is_exact_to_the_record_whatever_the_order_of_times(run, seed, is_cached):
    async def scenario(rig):
        random = Random(seed)
        times = [1_000_000 + random.randrange(1000) for _ in range(120)]
        times[random.randrange(120)] = 1_000_000 + 365 * DAY  # a bogus one, in the future
        if seed == 1:
            times.sort()
        range_id = rig.ranges[0]
        await write(rig, range_id, times, batch_size=7, codec=seed)
        log = rig.log if is_cached else rig.open(EngineSettings(hot_age_ms=-1))
        for timestamp in [0, *times[::9], 1_000_500, 1_000_999, 1_001_000, 1_000_000 + 366 * DAY]:
            assert await log.offset_for_timestamp(range_id, timestamp) == first_at_or_after(times, timestamp)
        assert await log.offset_of_max_timestamp(range_id) == greatest(times)
        if log is not rig.log:
            await log.close(drain=False)

    run(scenario)


def test_empty_range_has_no_times(run):
    async def scenario(rig):
        assert await rig.log.offset_for_timestamp(rig.ranges[0], 0) == NOT_FOUND
        assert await rig.log.offset_of_max_timestamp(rig.ranges[0]) == NOT_FOUND

    run(scenario)


def test_range_that_does_not_exist_is_refused_with_its_error(run):
    async def scenario(rig):
        with pytest.raises(Rejected) as refused:
            await rig.log.offset_for_timestamp(999_999, 0)
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario)


def test_bound_that_promises_too_much_is_passed_over(run):
    """The first row's greatest time lies below the log start: the coordinators know only the row."""

    async def scenario(rig):
        range_id = rig.ranges[0]
        await write(rig, range_id, [9000, 10, 20, 30, 40, 50, 8000, 60], batch_size=4)
        await rig.metadata.delete_records(range_id, Offset(1))
        assert await rig.log.offset_for_timestamp(range_id, 100) == (6, 8000)
        assert await rig.log.offset_for_timestamp(range_id, 15) == (2, 20)
        assert await rig.log.offset_for_timestamp(range_id, 8500) == NOT_FOUND
        assert await rig.log.offset_of_max_timestamp(range_id) == (6, 8000)

    run(scenario)


def test_batch_of_append_time_is_found_by_its_header(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        await rig.append((range_id, rig.batch(["a", "b"], timestamps=[5, 6], append_time=7000)))
        await rig.append((range_id, rig.batch(["c"], timestamps=[5], append_time=7500)))
        assert await rig.log.offset_for_timestamp(range_id, 100) == (0, 7000)
        assert await rig.log.offset_for_timestamp(range_id, 7001) == (2, 7500)
        assert await rig.log.offset_of_max_timestamp(range_id) == (2, 7500)

    run(scenario)
