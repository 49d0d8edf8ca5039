"""How many objects a load makes, and when."""

import asyncio

from floe.model.error_codes import ErrorCode
from floe.object_log.engine import EngineSettings
from floe.wire.object_index import read_index


async def object_sizes(rig):
    return [info.size async for info in rig.inner.list("")]


def test_idle_engine_puts_nothing_leases_nothing_and_looks_for_work_rarely(run):
    async def scenario(rig):
        await asyncio.sleep(600)
        assert rig.objects.calls["put"] == 0
        assert rig.metadata.calls["lease"] == 0
        assert rig.metadata.calls["claim"] <= 21
        await rig.append((rig.ranges[0], rig.batch(["a"])))
        leases = rig.metadata.calls["lease"]
        await asyncio.sleep(3600)
        assert rig.objects.calls["put"] == 1
        assert rig.metadata.calls["lease"] == leases

    run(scenario, seconds=10_000)


def test_64_synchronous_producers_make_at_most_11_puts_a_second_on_a_cloud_store(run):
    async def scenario(rig):
        puts: list[float] = []
        put = rig.objects.put

        async def counted(key, body):
            puts.append(rig.clock.monotonic())
            await put(key, body)

        rig.objects.put = counted
        acknowledged = 0

        async def producer(number):
            nonlocal acknowledged
            batch = rig.batch([f"from {number}"])
            while True:
                await rig.append((rig.ranges[number], batch))
                acknowledged += 1

        producers = [asyncio.create_task(producer(number)) for number in range(64)]
        await asyncio.sleep(10)
        for task in producers:
            task.cancel()
        await asyncio.wait(producers)
        assert len(puts) > 50  # the load was real
        assert acknowledged == 64 * (len(puts) - 1) or acknowledged == 64 * len(puts)
        for first in puts:
            assert sum(first <= other < first + 1 for other in puts) <= 11

    run(scenario, settings=EngineSettings.for_cloud(), put_seconds=0.05)


def test_requests_of_one_round_share_an_object_in_order_of_range(run):
    async def scenario(rig):
        order = [5, 1, 5, 3, 1]
        futures = [rig.log.append([(rig.ranges[n], rig.batch([f"{i}"]))]) for i, n in enumerate(order)]
        await asyncio.wait(futures)
        assert rig.objects.calls["put"] == 1
        (info,) = [info async for info in rig.inner.list("")]
        index = read_index(await rig.inner.get(info.key))
        assert [entry.range for entry in index.entries] == [rig.ranges[n] for n in (1, 3, 5)]
        assert await rig.read_all(rig.ranges[5]) == [(0, b"0"), (1, b"2")]
        assert await rig.read_all(rig.ranges[1]) == [(0, b"1"), (1, b"4")]

    run(scenario)


def test_lone_request_does_not_wait_for_an_interval(run):
    async def scenario(rig):
        for settings in (EngineSettings.for_files(), EngineSettings.for_cloud()):
            log = rig.open(settings)
            started = rig.clock.monotonic()
            await log.append([(rig.ranges[0], rig.batch(["a"]))])
            assert rig.clock.monotonic() - started < 0.02
            await log.close(drain=True)

    run(scenario)


def test_requests_gather_while_an_upload_is_under_way(run):
    async def scenario(rig):
        futures = []
        for number in range(20):
            futures.append(rig.log.append([(rig.ranges[number], rig.batch(["a"]))]))
            await asyncio.sleep(0.01)
        await asyncio.wait(futures)
        assert rig.objects.calls["put"] == 3  # the first, and one per upload that ended meanwhile

    run(scenario, put_seconds=0.1)


def test_flood_is_cut_into_objects_of_about_the_buffer_size(run):
    settings = EngineSettings(buffer_bytes_max=100_000, uploads_max=2)

    async def scenario(rig):
        batch = rig.batch([b"x" * 10_000])
        futures = [rig.log.append([(rig.ranges[n % 4], batch)]) for n in range(95)]
        await asyncio.wait(futures)
        sizes = await object_sizes(rig)
        assert len(sizes) == 10
        assert max(sizes) < 120_000
        for n in range(4):
            assert len(await rig.read_all(rig.ranges[n])) == (24 if n < 3 else 23)

    run(scenario, settings=settings, put_seconds=0.05)


def test_appends_beyond_the_bound_are_refused_and_leave_room_for_later_ones(run):
    settings = EngineSettings(buffer_bytes_max=50_000, pending_bytes_max=100_000, uploads_max=1)

    async def scenario(rig):
        batch = rig.batch([b"x" * 10_000])
        futures = [rig.log.append([(rig.ranges[0], batch)]) for _ in range(12)]
        assert rig.log.pending_bytes <= 100_000
        await asyncio.wait(futures)
        errors = [future.result()[0].error for future in futures]
        assert errors == [ErrorCode.NONE] * 9 + [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert rig.log.pending_bytes == 0
        assert (await rig.append((rig.ranges[0], batch)))[0].base_offset == 9

    run(scenario, settings=settings, put_seconds=0.05)


def test_pending_bytes_count_until_the_outcome_is_known(run):
    async def scenario(rig):
        vnode = rig.metadata.vnode_of_range(rig.ranges[0])
        rig.metadata.held[vnode] = asyncio.Event()
        batch = rig.batch(["a"])
        future = rig.log.append([(rig.ranges[0], batch)])
        await asyncio.sleep(1)
        assert rig.objects.calls["put"] == 1
        assert rig.log.pending_bytes == batch.size
        rig.metadata.held.pop(vnode).set()
        await future
        assert rig.log.pending_bytes == 0

    run(scenario)


def test_empty_append_is_answered_at_once(run):
    async def scenario(rig):
        assert rig.log.append([]).result() == []
        await asyncio.sleep(1)
        assert rig.objects.calls["put"] == 0

    run(scenario)


def test_drain_waits_for_everything_that_was_taken_and_takes_no_more(run):
    async def scenario(rig):
        futures = [rig.log.append([(rig.ranges[n], rig.batch([f"{n}"]))]) for n in range(8)]
        await asyncio.sleep(0.001)
        futures += [rig.log.append([(rig.ranges[n], rig.batch([f"{n}"]))]) for n in range(8)]
        closing = asyncio.create_task(rig.log.close(drain=True))
        await asyncio.sleep(0)
        late = rig.log.append([(rig.ranges[0], rig.batch(["late"]))])
        assert late.result()[0].error == ErrorCode.KAFKA_STORAGE_ERROR
        await closing
        assert all(future.result()[0].error == ErrorCode.NONE for future in futures)

    run(scenario, settings=EngineSettings.for_cloud(), put_seconds=0.2)


def test_close_without_drain_answers_everybody(run):
    async def scenario(rig):
        futures = [rig.log.append([(rig.ranges[0], rig.batch(["a"]))])]
        await asyncio.sleep(0.01)
        futures.append(rig.log.append([(rig.ranges[0], rig.batch(["b"]))]))
        await rig.log.close(drain=False)
        assert [future.result()[0].error for future in futures] == [
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.KAFKA_STORAGE_ERROR,
        ]

    run(scenario, put_seconds=5.0)
