"""Readers far behind: their own pool, read-ahead, and no harm to those at the tail."""

import asyncio

from floe.model.ids import Offset
from floe.object_log.cache import Pool
from floe.object_log.engine import EngineSettings, ReadRequest

KIB = 1 << 10
OLD = EngineSettings(hot_age_ms=-1)  # every row that is read from the store counts as old


async def fill(rig, range_id, count, size):
    for n in range(count):
        await rig.append((range_id, rig.batch([b"%06d" % n + b"x" * size])))


def test_reader_far_behind_does_not_push_out_the_tail(run):
    settings = EngineSettings(hot_cache_bytes=200 * KIB, cold_cache_bytes=100 * KIB, hot_age_ms=-1)

    async def scenario(rig):
        cold, hot = rig.ranges[0], rig.ranges[1]
        await fill(rig, cold, 40, 10 * KIB)
        await fill(rig, hot, 10, 10 * KIB)
        assert len(await rig.read_all(cold)) == 40
        gets = rig.objects.calls["get_range"]
        assert gets > 10
        assert len(await rig.read_all(hot)) == 10
        assert rig.objects.calls["get_range"] == gets

    run(scenario, settings=settings)


def test_reader_is_far_behind_when_the_hot_pool_has_let_go_of_its_place_however_young_the_rows(run):
    """A second after they were written, most rows have been pushed out by newer ones of the same load."""
    settings = EngineSettings(hot_cache_bytes=200 * KIB, cold_cache_bytes=100 * KIB, read_ahead_bytes=0)

    async def scenario(rig):
        range_id = rig.ranges[0]
        await fill(rig, range_id, 100, 10 * KIB)
        assert rig.clock.monotonic() < 1020
        assert len(await rig.read_all(range_id)) == 100
        gets = rig.objects.calls["get_range"]
        assert gets > 50
        tail = await rig.read(range_id, 85, max_bytes=1 << 20)
        assert len(rig.records(tail)) == 15
        assert rig.objects.calls["get_range"] == gets

    run(scenario, settings=settings)


def test_both_pools_stay_within_their_bounds(run):
    settings = EngineSettings(hot_cache_bytes=150 * KIB, cold_cache_bytes=100 * KIB, hot_age_ms=-1)

    async def scenario(rig):
        for n in range(60):
            await fill(rig, rig.ranges[n % 5], 1, (n % 7) * 3 * KIB)
            assert rig.log.cache.bytes_of(Pool.HOT) <= 150 * KIB
        for n in range(5):
            assert len(await rig.read_all(rig.ranges[n])) == 12
            assert rig.log.cache.bytes_of(Pool.COLD) <= 100 * KIB
        assert rig.log.cache.bytes_of(Pool.HOT) > 75 * KIB
        assert rig.log.cache.bytes_of(Pool.COLD) > 50 * KIB

    run(scenario, settings=settings)


def test_recent_rows_that_another_broker_wrote_are_read_into_the_hot_pool(run):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 1, KIB)
        other = rig.open(EngineSettings())
        await rig.read(rig.ranges[0], 0, log=other)
        assert (other.cache.bytes_of(Pool.HOT) > 0, other.cache.bytes_of(Pool.COLD)) == (True, 0)
        await other.close(drain=False)
        await asyncio.sleep(60)
        late = rig.open(EngineSettings())
        await rig.read(rig.ranges[0], 0, log=late)
        assert (late.cache.bytes_of(Pool.HOT), late.cache.bytes_of(Pool.COLD) > 0) == (0, True)
        await late.close(drain=False)

    run(scenario)


def test_sequential_reader_finds_the_next_rows_in_the_cache(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        await fill(rig, range_id, 20, 100 * KIB)
        log = rig.open(OLD)

        async def before(op, _key):
            if op == "get_range":
                await asyncio.sleep(0.05)

        rig.objects.before = before
        waits = 0
        offset = 0
        while offset < 20:
            request = [ReadRequest(range_id, Offset(offset), 150 * KIB)]
            if log.read_now(request, max_bytes=1 << 20) is None:
                waits += 1
            (result,) = await log.read(request, max_bytes=1 << 20)
            offset = rig.records(result)[-1][0] + 1
            await asyncio.sleep(0.1)  # the client works on what it got
        assert waits == 2  # the first read, and the second, which shows that the reader is sequential
        assert rig.objects.calls["get_range"] == 20
        await log.close(drain=False)

    run(scenario)


def test_reads_at_random_places_read_nothing_ahead(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        await fill(rig, range_id, 30, 100 * KIB)
        log = rig.open(OLD)
        for offset in (3, 11, 7, 23, 19, 28):
            await rig.read(range_id, offset, max_bytes=100 * KIB, log=log)
            await asyncio.sleep(1)
        assert rig.objects.calls["get_range"] == 6
        await log.close(drain=False)

    run(scenario)


def test_gets_of_readers_far_behind_are_bounded_and_leave_room_for_the_tail(run):
    settings = EngineSettings(cold_gets_max=3, hot_gets_max=2, read_ahead_bytes=0)

    async def scenario(rig):
        ranges = rig.ranges[:20]
        for range_id in ranges:
            await fill(rig, range_id, 1, KIB)
        await asyncio.sleep(60)
        await fill(rig, rig.ranges[40], 1, KIB)
        log = rig.open(settings)
        under_way = most = 0
        gate = asyncio.Event()

        async def before(op, _key):
            nonlocal under_way, most
            if op == "get_range":
                under_way += 1
                most = max(most, under_way)
                await gate.wait()
                under_way -= 1

        rig.objects.before = before
        cold = [asyncio.create_task(rig.read(range_id, 0, log=log)) for range_id in ranges]
        await asyncio.sleep(1)
        assert most == 3
        tail = asyncio.create_task(rig.read(rig.ranges[40], 0, log=log))
        await asyncio.sleep(1)
        assert most == 4  # the tail's GET did not wait for theirs
        gate.set()
        assert all(result.size for result in await asyncio.gather(*cold, tail))
        await log.close(drain=False)

    run(scenario)


def test_range_of_many_tiny_rows_is_read_in_bounded_steps(run):
    settings = EngineSettings(hot_age_ms=-1, read_rows_max=8, read_ahead_bytes=0)

    async def scenario(rig):
        await fill(rig, rig.ranges[0], 50, 10)
        log = rig.open(settings)
        await rig.read(rig.ranges[0], 0, log=log)
        assert rig.objects.calls["get_range"] == 8
        assert len(await rig.read_all(rig.ranges[0], log=log)) == 50
        await log.close(drain=False)

    run(scenario)
