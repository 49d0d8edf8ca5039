"""Random appends and reads with tiny caches and a failing store, against a list of records per range."""

import asyncio
from random import Random

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset
from floe.object_log.cache import Pool
from floe.object_log.engine import EngineSettings, ReadRequest
from floe.testing.faulty_objects import FaultRates

KIB = 1 << 10
SETTINGS = EngineSettings(
    uploads_eager=2,
    buffer_bytes_max=60 * KIB,
    hot_cache_bytes=120 * KIB,
    cold_cache_bytes=60 * KIB,
    coordinate_rows_max=30,
    read_rows_max=7,
    read_ahead_bytes=20 * KIB,
    get_bytes_max=40 * KIB,
)


def check_answer(rig, model, requests, results, max_bytes, log_ends):
    """Whole batches from the one that holds the offset on, in request order, within the budgets."""
    total = 0
    for request, result in zip(requests, results, strict=True):
        known = model[request.range]
        if result.error:
            assert result.error == ErrorCode.KAFKA_STORAGE_ERROR
            continue
        assert result.log_end >= log_ends[request.range]
        found = rig.records(result)
        for offset, value in found:  # a reader may see a batch before its producer hears of it
            assert known.setdefault(offset, value) == value
        if found:
            assert found[0][0] <= request.offset <= found[-1][0]
            assert [offset for offset, _ in found] == list(range(found[0][0], found[-1][0] + 1))
            assert result.next_offset == found[-1][0] + 1
            fits = result.size <= min(request.max_bytes, max_bytes - total)
            assert fits or total == 0  # only the first batch of an answer may be larger
        total += result.size


@pytest.mark.parametrize("seed", range(6))
def test_every_read_agrees_with_what_was_acknowledged(run, seed):
    async def scenario(rig):
        random = Random(seed)
        ranges = rig.ranges[:12:2]
        model = {range_id: {} for range_id in ranges}
        rig.objects.rates = FaultRates(before=0.03, after=0.03, short=0.02, slow=0.05, slow_seconds_max=0.2)

        async def produce(number):
            for n in range(60):
                left = {}
                for range_id in random.sample(ranges, random.randint(1, 3)):
                    filler = b"x" * random.choice([5, 50, 3000, 9000])
                    left[range_id] = [
                        b"%d-%d-%d " % (number, n, i) + filler for i in range(random.randint(1, 3))
                    ]
                while left:
                    left = await send(left)
                await asyncio.sleep(random.choice([0, 0.01, 0.3]))

        async def send(values_of):
            """Returns what was not written, to be sent again; it then must not turn up twice."""
            codec = random.choice([0, 0, 4])
            entries = [(range_id, rig.batch(values, codec=codec)) for range_id, values in values_of.items()]
            failed = {}
            for (range_id, _), result in zip(entries, await rig.append(*entries), strict=True):
                if result.error:
                    assert result.error == ErrorCode.KAFKA_STORAGE_ERROR
                    failed[range_id] = values_of[range_id]
                    continue
                for offset, value in enumerate(values_of[range_id], result.base_offset):
                    assert model[range_id].setdefault(offset, value) == value
            return failed

        async def consume(is_fresh):
            log = rig.open(SETTINGS) if is_fresh else rig.log
            position = dict.fromkeys(ranges, 0)
            for _ in range(120):
                ends = {r: len(model[r]) for r in ranges}
                requests = []
                for range_id in random.sample(ranges, random.randint(1, 6)):
                    place = random.choice([position[range_id], random.randint(0, ends[range_id])])
                    requests.append(
                        ReadRequest(range_id, Offset(place), random.choice([1, 5 * KIB, 1 << 20]))
                    )
                max_bytes = random.choice([1, 10 * KIB, 1 << 20])
                results = log.read_now(requests, max_bytes=max_bytes)
                if results is None:
                    results = await log.read(requests, max_bytes=max_bytes)
                check_answer(rig, model, requests, results, max_bytes, ends)
                for request, result in zip(requests, results, strict=True):
                    if result.size:
                        position[request.range] = result.next_offset
                assert log.cache.bytes_of(Pool.HOT) <= SETTINGS.hot_cache_bytes
                assert log.cache.bytes_of(Pool.COLD) <= SETTINGS.cold_cache_bytes
                await asyncio.sleep(random.choice([0, 0.05, 0.2]))
            if is_fresh:
                await log.close(drain=False)

        await asyncio.gather(*(produce(n) for n in range(4)), consume(False), consume(True), consume(True))
        rig.objects.rates = FaultRates()
        for range_id in ranges:
            assert await rig.read_all(range_id) == sorted(model[range_id].items())

    run(scenario, settings=SETTINGS, seed=seed)
