"""The engine on the durable folder store, with real threads and a real clock."""

import asyncio
from random import Random

from floe.object_log.engine import EngineSettings
from floe.wire.object_check import verify

PRODUCERS = 16
EACH = 25


async def test_many_producers_write_and_a_fresh_engine_reads_everything_back(rig_on_files):
    rig = rig_on_files
    random = Random(3)

    async def producer(number):
        for n in range(EACH):
            values = [b"%d-%d " % (number, n) + b"x" * random.choice([1, 300, 5000, 70_000])]
            (result,) = await rig.append((rig.ranges[number % 8], rig.batch(values, codec=n % 5)))
            assert not result.error

    await asyncio.gather(*(producer(number) for number in range(PRODUCERS)))
    assert rig.objects.calls["put"] < PRODUCERS * EACH  # they shared objects
    fresh = rig.open(EngineSettings(hot_age_ms=-1))
    for log in (rig.log, fresh):
        for number in range(8):
            found = await rig.read_all(rig.ranges[number], log=log)
            assert [offset for offset, _ in found] == list(range(2 * EACH))
            for producer_number in (number, number + 8):
                prefix = b"%d-" % producer_number
                mine = [value.split()[0] for _, value in found if value.startswith(prefix)]
                assert mine == [prefix + b"%d" % n for n in range(EACH)]
    await fresh.close(drain=True)


async def test_every_object_can_be_verified_without_metadata(rig_on_files):
    rig = rig_on_files
    batch = rig.batch([b"x" * 5000])
    await asyncio.gather(*(rig.log.append([(rig.ranges[n % 8], batch)]) for n in range(40)))
    count = 0
    async for info in rig.inner.list("c1/objects/"):
        report = verify(await rig.inner.get(info.key))
        assert not report.problems
        count += sum(entry.batch_count for entry in report.index.entries)
    assert count == 40
