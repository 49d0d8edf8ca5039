"""Producer states expire a day after their last use, and not before."""

from floe.metadata.keys import PRODUCER, PRODUCER_EXPIRY
from floe.model.error_codes import ErrorCode
from floe.model.ids import RangeId
from floe.testing.shard import Shard, sequenced

DAY = 24 * 3_600_000


async def expire(shard: Shard) -> None:
    while await shard.ranges.expire_producers(1):
        pass


async def test_unused_producer_is_forgotten_and_may_start_anywhere(shard: Shard):
    await shard.create(1)
    await shard.put(sequenced(1, 0))
    shard.clock.now += DAY
    await expire(shard)
    assert shard.keys(PRODUCER) == []
    assert shard.keys(PRODUCER_EXPIRY) == []
    (result,) = await shard.put(sequenced(1, 77))
    assert (result.error, result.base_offset) == (ErrorCode.NONE, 1)


async def test_used_producer_is_kept_for_a_day_from_its_last_use(shard: Shard):
    await shard.create(1)
    await shard.put(sequenced(1, 0))
    shard.clock.now += DAY - 1
    await shard.put(sequenced(1, 1))
    assert len(shard.keys(PRODUCER_EXPIRY)) == 1
    shard.clock.now += 1
    await expire(shard)
    assert len(shard.keys(PRODUCER)) == len(shard.keys(PRODUCER_EXPIRY)) == 1
    shard.clock.now += DAY - 2
    await expire(shard)
    assert len(shard.keys(PRODUCER)) == 1
    shard.clock.now += 1
    await expire(shard)
    assert shard.keys(PRODUCER) == shard.keys(PRODUCER_EXPIRY) == []


async def test_expiry_of_a_dropped_range_is_harmless(shard: Shard):
    await shard.create(1)
    await shard.put(sequenced(1, 0))
    await shard.ranges.mark_deleting([RangeId(1)])
    assert await shard.ranges.drop_rows([RangeId(1)], 100)
    assert len(shard.keys(PRODUCER_EXPIRY)) == 1
    shard.clock.now += DAY
    await expire(shard)
    assert shard.keys(PRODUCER_EXPIRY) == []


async def test_passes_are_bounded(shard: Shard):
    await shard.create(1)
    for producer in range(5):
        await shard.put(sequenced(1, 0, producer=producer))
    shard.clock.now += DAY
    assert await shard.ranges.expire_producers(3)
    assert len(shard.keys(PRODUCER)) == 2
    assert not await shard.ranges.expire_producers(3)
    assert shard.keys(PRODUCER) == []
