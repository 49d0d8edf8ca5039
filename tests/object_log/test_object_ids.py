"""Leased ids: never stale, never leased for nothing, never used twice."""

import asyncio

from floe.model.error_codes import ErrorCode
from floe.model.errors import Unavailable
from floe.model.ids import BUCKET_MS, bucket_at, bucket_of
from floe.object_log.engine import EngineSettings
from floe.object_log.object_ids import ObjectIds


def ids_of(rig, grace_ms=10_000):
    return ObjectIds(metadata=rig.metadata, clock=rig.clock, grace_ms=grace_ms)


def test_ids_are_used_once_each_and_leased_ahead_of_need(run):
    async def scenario(rig):
        ids = ids_of(rig)
        taken = [await ids.take(rig.clock.monotonic() + 10)]
        waited = 0
        for _ in range(2000):
            await asyncio.sleep(0.002)
            taken_now = ids.take_now()
            if taken_now is None:
                waited += 1
            else:
                taken.append(taken_now)
        assert waited == 0
        assert len(set(taken)) == len(taken) == 2001
        assert rig.metadata.calls["lease"] < 20  # blocks grow with the rate
        await ids.close()

    run(scenario)


def test_id_is_never_used_long_after_its_bucket_ended(run):
    async def scenario(rig):
        ids = ids_of(rig)
        for _ in range(200):
            await asyncio.sleep(7.3)
            taken = await ids.take(rig.clock.monotonic() + 10)
            assert bucket_of(taken) >= bucket_at(rig.clock.now_ms() - 10_000)
        await ids.close()

    run(scenario, seconds=10_000)


def test_new_bucket_is_leased_before_the_old_one_runs_out(run):
    async def scenario(rig):
        ids = ids_of(rig)
        await ids.take(rig.clock.monotonic() + 10)
        to_end = BUCKET_MS - rig.clock.now_ms() % BUCKET_MS
        await asyncio.sleep(to_end / 1000 + 1)
        assert bucket_of(ids.take_now()) == bucket_at(rig.clock.now_ms()) - 1  # within the grace
        await asyncio.sleep(0.1)
        await asyncio.sleep(11)
        assert bucket_of(ids.take_now()) == bucket_at(rig.clock.now_ms())
        await ids.close()

    run(scenario)


def test_slow_use_leases_small_blocks(run):
    async def scenario(rig):
        ids = ids_of(rig)
        sizes = []
        lease = rig.metadata.lease_object_ids

        async def counted(count):
            sizes.append(count)
            return await lease(count)

        rig.metadata.lease_object_ids = counted
        for _ in range(30):
            await ids.take(rig.clock.monotonic() + 10)
            await asyncio.sleep(100)
        assert max(sizes) <= 16
        await ids.close()

    run(scenario, seconds=10_000)


def test_append_waits_for_a_lease_that_comes_late_and_fails_when_none_comes(run):
    async def scenario(rig):
        lease = rig.metadata.lease_object_ids
        failures = 5

        async def failing(count):
            nonlocal failures
            if failures:
                failures -= 1
                raise Unavailable("injected")
            return await lease(count)

        rig.metadata.lease_object_ids = failing
        assert (await rig.append((rig.ranges[0], rig.batch(["a"]))))[0].error == ErrorCode.NONE
        log = rig.open(EngineSettings(produce_timeout_ms=5000))
        failures = 1000
        (result,) = await log.append([(rig.ranges[0], rig.batch(["b"]))])
        assert result.error in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
        assert failures > 980  # it did not spin
        await log.close(drain=False)

    run(scenario)
