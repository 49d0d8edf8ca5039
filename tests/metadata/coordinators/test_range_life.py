"""Ranges come and go: creation, deletion in bounded steps, and what is left behind (nothing)."""

import pytest

from floe.metadata.coordinators.ranges import RangeLimits, RangeSpec, Waiter
from floe.metadata.keys import DROP, PRODUCER, RANGE, RELEASED, ROW, TIME_NODE
from floe.model.error_codes import ErrorCode
from floe.model.errors import Internal
from floe.model.ids import Offset, RangeId, TopicId
from floe.testing.shard import Shard, entry, sequenced


async def test_creating_again_changes_nothing(shard: Shard):
    await shard.create(1, retention_ms=5)
    await shard.put(entry(1, 3))
    other = RangeSpec(RangeId(1), TopicId(b"x" * 16), RangeLimits(1, 1))
    await shard.ranges.create_ranges([other, RangeSpec(RangeId(2), TopicId(b"x" * 16))])
    assert await shard.ends(1) == (0, 3)
    assert await shard.ends(2) == (0, 0)


async def test_deleting_range_is_hidden_from_everybody(shard: Shard):
    await shard.create(1, 2)
    await shard.put(entry(1, 3))
    waiting = Waiter({RangeId(1): Offset(3)})
    shard.ranges.register(waiting, [RangeId(1)])
    await shard.ranges.mark_deleting([RangeId(1), RangeId(9)])
    await shard.ranges.mark_deleting([RangeId(1)])
    assert waiting.woken == {1}
    assert (await shard.find(1, 0)).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [r.error for r in await shard.put(entry(1), entry(2))] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    shard.crash()
    assert (await shard.find(1, 0)).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("limit", [1, 3, 1000])
async def test_dropping_leaves_nothing_of_the_range_and_spares_its_neighbours(shard: Shard, limit):
    await shard.create(1, 2, 3, retention_ms=1 << 50)
    for i in range(130):
        await shard.put(sequenced(1, i), sequenced(2, i), sequenced(3, i), entry(2, 70))
    await shard.ranges.mark_deleting([RangeId(2)])
    before = await shard.find(1, 0), await shard.find(3, 0)
    steps = 0
    while not await shard.ranges.drop_rows([RangeId(2)], limit):
        steps += 1
        assert steps < 1000
    assert await shard.ranges.drop_rows([RangeId(2)], limit)
    two = (2).to_bytes(8, "big")
    for prefix in (RANGE, ROW, TIME_NODE, PRODUCER):
        assert not [key for key in shard.keys(prefix) if key[1:9] == two]
    assert not [key for key in shard.keys(DROP) if key[9:] == two]
    assert (await shard.find(1, 0), await shard.find(3, 0)) == before
    assert shard.keys(RELEASED) == []  # the bucket is still open


async def test_dropping_a_live_range_is_refused(shard: Shard):
    await shard.create(1)
    with pytest.raises(Internal):
        await shard.ranges.drop_rows([RangeId(1)], 10)


async def test_dropped_range_is_unknown_and_dropping_it_again_is_done(shard: Shard):
    await shard.create(1)
    await shard.ranges.mark_deleting([RangeId(1)])
    assert await shard.ranges.drop_rows([RangeId(1)], 10)
    assert await shard.ranges.drop_rows([RangeId(1)], 10)
    assert (await shard.find(1, 0)).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
