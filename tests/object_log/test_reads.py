"""Reads: budgets, order and offsets as Kafka's; what they cost; what happens when objects are missing."""

import asyncio

import msgspec
import pytest

from floe.metadata.api import FindRequest
from floe.model.error_codes import ErrorCode
from floe.model.errors import Unavailable
from floe.model.ids import Offset, object_key
from floe.object_log.engine import EngineSettings, ReadRequest
from floe.testing.faulty_objects import Fault

KIB = 1 << 10


async def fill(rig, range_id, count, size=KIB, first=0):
    """One batch per object."""
    for n in range(first, first + count):
        (result,) = await rig.append((range_id, rig.batch([b"%06d" % n + b"x" * size])))
        assert not result.error


def sizes_in_batches(results, batch_size):
    assert all(result.size % batch_size == 0 for result in results)
    return [result.size // batch_size for result in results]


@pytest.fixture(params=["cached", "stored"])
def engine_of(request):
    """The engine that wrote, or one with empty caches: the rules of an answer are the same."""

    def choose(rig):
        return rig.log if request.param == "cached" else rig.open(rig.settings)

    return choose


def test_budget_goes_to_requests_in_order_and_at_least_one_batch_is_per_answer(run, engine_of):
    """Four ranges of many batches and a budget for 32: no range gets a batch beyond the budget."""

    async def scenario(rig):
        ranges = rig.ranges[:4]
        batch = rig.batch([b"x" * 100])
        for _ in range(40):
            await asyncio.gather(*(rig.log.append([(range_id, batch)]) for range_id in ranges))

        async def read(max_bytes, partition_bytes, order=ranges, offset=0):
            log = engine_of(rig)
            requests = [ReadRequest(range_id, Offset(offset), partition_bytes) for range_id in order]
            results = await log.read(requests, max_bytes=max_bytes)
            if log is not rig.log:
                await log.close(drain=False)
            return sizes_in_batches(results, batch.size)

        assert await read(32 * batch.size, 8 * batch.size) == [8, 8, 8, 8]
        assert await read(32 * batch.size, 100 * batch.size) == [32, 0, 0, 0]
        assert await read(20 * batch.size + 5, 8 * batch.size) == [8, 8, 4, 0]
        assert await read(20 * batch.size + 5, 8 * batch.size, ranges[::-1]) == [8, 8, 4, 0]
        assert await read(1, 1) == [1, 0, 0, 0]
        assert await read(100 * batch.size, 1) == [1, 0, 0, 0]
        assert await read(32 * batch.size, 8 * batch.size, offset=38) == [2, 2, 2, 2]
        assert await read(32 * batch.size, 8 * batch.size, offset=40) == [0, 0, 0, 0]

    run(scenario)


def test_without_min_one_a_batch_beyond_the_budget_is_not_served(run, engine_of):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 2)
        log = engine_of(rig)
        request = [ReadRequest(rig.ranges[0], Offset(0), 100)]
        (result,) = await log.read(request, max_bytes=100, min_one=False)
        assert (result.error, result.size, result.log_end) == (ErrorCode.NONE, 0, 2)
        (result,) = await log.read(request, max_bytes=100)
        assert rig.records(result)[0][0] == 0
        if log is not rig.log:
            await log.close(drain=False)

    run(scenario)


def test_offset_within_a_batch_returns_the_whole_batch(run, engine_of):
    async def scenario(rig):
        await rig.append((rig.ranges[0], rig.batch(["a", "b", "c"])))
        await rig.append((rig.ranges[0], rig.batch(["d", "e"])))
        log = engine_of(rig)
        assert [o for o, _ in rig.records(await rig.read(rig.ranges[0], 1, log=log))] == [0, 1, 2, 3, 4]
        assert [o for o, _ in rig.records(await rig.read(rig.ranges[0], 4, log=log))] == [3, 4]
        if log is not rig.log:
            await log.close(drain=False)

    run(scenario)


def test_offsets_at_the_end_are_empty_and_beyond_are_out_of_range(run, engine_of):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 3)
        log = engine_of(rig)
        at_end = await rig.read(rig.ranges[0], 3, log=log)
        assert (at_end.error, at_end.size, at_end.log_end) == (ErrorCode.NONE, 0, 3)
        for offset in (4, -1):
            beyond = await rig.read(rig.ranges[0], offset, log=log)
            assert (beyond.error, beyond.size) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)
        unknown = await log.read([ReadRequest(999_999, Offset(0), 100)], max_bytes=100)
        assert unknown[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if log is not rig.log:
            await log.close(drain=False)

    run(scenario)


def test_error_of_one_request_leaves_the_others_alone(run, engine_of):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 3)
        log = engine_of(rig)
        requests = [ReadRequest(rig.ranges[n], Offset(o), 1 << 20) for n, o in ((1, 5), (0, 0), (2, 0))]
        results = await log.read(requests, max_bytes=1 << 20)
        assert [result.error for result in results] == [ErrorCode.OFFSET_OUT_OF_RANGE, 0, 0]
        assert len(rig.records(results[1])) == 3
        if log is not rig.log:
            await log.close(drain=False)

    run(scenario)


def test_stored_batches_are_read_back_as_they_were_written(run):
    async def scenario(rig):
        written = {}
        for n in range(30):
            range_id = rig.ranges[n % 5]
            values = [b"%d-%d" % (n, i) + b"x" * (n * 400) for i in range(1 + n % 4)]
            written.setdefault(range_id, []).extend(values)
            await rig.append((range_id, rig.batch(values, codec=n % 5)))
        fresh = rig.open(rig.settings)
        for range_id, values in written.items():
            assert await rig.read_all(range_id, log=fresh) == list(enumerate(values))
            assert await rig.read_all(range_id) == list(enumerate(values))
        await fresh.close(drain=False)

    run(scenario)


def test_concurrent_readers_of_a_row_share_one_get(run):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 1)
        fresh = rig.open(rig.settings)
        results = await asyncio.gather(*(rig.read(rig.ranges[0], 0, log=fresh) for _ in range(50)))
        assert all(len(rig.records(result)) == 1 for result in results)
        assert rig.objects.calls["get_range"] == 1
        await rig.read(rig.ranges[0], 0, log=fresh)
        assert rig.objects.calls["get_range"] == 1
        await fresh.close(drain=False)

    run(scenario)


def test_reader_that_goes_away_leaves_the_get_to_the_others(run):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 1)
        fresh = rig.open(rig.settings)
        gate = asyncio.Event()

        async def before(op, _key):
            if op == "get_range":
                await gate.wait()

        rig.objects.before = before
        first = asyncio.create_task(rig.read(rig.ranges[0], 0, log=fresh))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(rig.read(rig.ranges[0], 0, log=fresh))
        await asyncio.sleep(0.1)
        first.cancel()
        await asyncio.wait([first])
        gate.set()
        assert len(rig.records(await second)) == 1
        assert rig.objects.calls["get_range"] == 1
        await fresh.close(drain=False)

    run(scenario)


def test_ranges_that_were_written_together_are_read_by_one_get(run):
    async def scenario(rig):
        ranges = rig.ranges[:8]
        batch = rig.batch([b"x" * 10_000])
        await asyncio.gather(*(rig.log.append([(range_id, batch)]) for range_id in ranges))
        fresh = rig.open(rig.settings)
        requests = [ReadRequest(range_id, Offset(0), 1 << 20) for range_id in ranges]
        results = await fresh.read(requests, max_bytes=1 << 30)
        assert [result.size for result in results] == [batch.size] * 8
        assert rig.objects.calls["get_range"] == 1
        await fresh.close(drain=False)

    run(scenario)


def test_read_takes_no_more_than_one_row_that_it_does_not_need(run):
    """A row is at most 1 MiB; each of these objects holds one row of 300 KiB."""

    async def scenario(rig):
        range_id = rig.ranges[0]
        batch = rig.batch([b"x" * 30_000])
        for _ in range(6):
            await asyncio.gather(*(rig.log.append([(range_id, batch)]) for _ in range(10)))
        taken = 0
        get_range = rig.objects.get_range

        async def counted(key, position, size):
            nonlocal taken
            taken += size
            return await get_range(key, position, size)

        rig.objects.get_range = counted
        fresh = rig.open(rig.settings)
        result = await rig.read(range_id, 9, max_bytes=25 * batch.size, log=fresh)
        assert rig.records(result)[0][0] == 9
        assert result.size == 21 * batch.size  # one from the first row, two rows that fit; not a third
        assert taken == 30 * batch.size
        await fresh.close(drain=False)

    run(scenario)


def test_object_deleted_under_a_reader_is_found_where_it_was_moved_to(run):
    """Coordinates are hints: the reader asks again, once."""

    async def scenario(rig):
        range_id = rig.ranges[0]
        await fill(rig, range_id, 4)
        fresh = rig.open(rig.settings)
        (view,) = await rig.metadata.find([find_request(range_id)])
        moved = await moved_rows(rig, view.rows)
        find = rig.metadata.find
        asked = 0

        async def find_moved(requests):
            nonlocal asked
            asked += 1
            views = await find(requests)
            return [replaced(view, moved) for view in views] if asked > 1 else views

        rig.metadata.find = find_moved
        await rig.inner.delete([object_key("c1", row.object) for row in view.rows])
        result = await rig.read(range_id, 1, log=fresh)
        assert [offset for offset, _ in rig.records(result)] == [1, 2, 3]
        assert asked == 2
        await fresh.close(drain=False)

    run(scenario)


def find_request(range_id):
    return FindRequest(range_id, Offset(0), 1 << 30)


async def moved_rows(rig, rows):
    """Copies of the rows' bytes in new objects, as compaction would leave them."""
    moved = {}
    for row in rows:
        data = await rig.inner.get_range(object_key("c1", row.object), row.position, row.size)
        (new_id,) = await rig.metadata.lease_object_ids(1)
        new_id += 1_000_000
        await rig.inner.put(object_key("c1", new_id), [data])
        moved[row.first] = msgspec.structs.replace(row, object=new_id, position=0)
    return moved


def replaced(view, moved):
    return msgspec.structs.replace(view, rows=tuple(moved[row.first] for row in view.rows))


def test_object_that_is_gone_for_good_is_an_error_of_its_range_alone(run):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 1)
        await fill(rig, rig.ranges[1], 1)
        (view,) = await rig.metadata.find([find_request(rig.ranges[0])])
        await rig.inner.delete([object_key("c1", view.rows[0].object)])
        fresh = rig.open(rig.settings)
        requests = [ReadRequest(rig.ranges[n], Offset(0), 1 << 20) for n in (0, 1)]
        gone, there = await fresh.read(requests, max_bytes=1 << 20)
        assert gone.error == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(rig.records(there)) == 1
        assert rig.metadata.calls["find"] <= 4
        await fresh.close(drain=False)

    run(scenario)


@pytest.mark.parametrize("faults", [[Fault.BEFORE] * 1000, [Fault.SHORT]], ids=["unavailable", "short"])
def test_get_that_fails_is_told_and_the_next_read_tries_again(run, faults):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 1)
        fresh = rig.open(rig.settings)
        rig.objects.fail("get_range", *faults)
        result = await rig.read(rig.ranges[0], 0, log=fresh)
        assert (result.error, result.size) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
        rig.objects._scripts.clear()
        assert len(rig.records(await rig.read(rig.ranges[0], 0, log=fresh))) == 1
        await fresh.close(drain=False)

    run(scenario)


def test_coordinators_that_do_not_answer_are_an_error_and_not_an_exception(run):
    async def scenario(rig):
        await fill(rig, rig.ranges[0], 1)
        fresh = rig.open(rig.settings)

        async def find(_requests):
            raise Unavailable("injected")

        rig.metadata.find = find
        result = await rig.read(rig.ranges[0], 0, log=fresh)
        assert result.error == ErrorCode.KAFKA_STORAGE_ERROR
        await fresh.close(drain=False)

    run(scenario)


def test_hundreds_of_ranges_with_little_in_each_are_answered_together(run):
    async def scenario(rig):
        batch = rig.batch([b"x" * 50])
        await asyncio.gather(*(rig.log.append([(range_id, batch)]) for range_id in rig.ranges))
        fresh = rig.open(EngineSettings(read_ahead_bytes=0))
        rig.metadata.view_now = lambda _range_id: None
        requests = [ReadRequest(range_id, Offset(0), 1 << 20) for range_id in rig.ranges]
        results = await fresh.read(requests, max_bytes=4 << 20)
        assert [result.size for result in results] == [batch.size] * len(rig.ranges)
        await fresh.close(drain=False)

    run(scenario)
