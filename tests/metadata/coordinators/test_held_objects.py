"""What a vnode holds of objects: closing a bucket, refusing late commits, releasing emptied objects."""

import pytest

from floe.metadata.coordinators import held_objects
from floe.metadata.keys import OBJECT, RELEASED
from floe.model.error_codes import ErrorCode
from floe.model.ids import NO_OFFSET, Bucket, RangeId
from floe.testing.shard import Shard, entry, sequenced


async def drop_everything(shard: Shard, range_id: int) -> None:
    await shard.ranges.delete_records(RangeId(range_id), NO_OFFSET)
    while (await shard.ranges.retention_pass(rows_max=3)).has_more:
        pass


async def test_close_lists_the_objects_with_rows_and_forgets_the_others(shard: Shard):
    await shard.create(1, 2)
    held = shard.new_object()
    await shard.put(sequenced(1, 0), entry(2), object_id=held)
    await shard.put(sequenced(1, 0))  # a duplicate: no row
    assert await shard.ranges.close_bucket(shard.bucket) == [held]
    assert len(shard.keys(OBJECT)) == 1
    assert await shard.ranges.close_bucket(shard.bucket) == [held]


async def test_close_of_many_objects_goes_page_by_page(shard: Shard, monkeypatch):
    monkeypatch.setattr(held_objects, "CLOSE_PAGE", 3)
    await shard.create(1)
    objects = [shard.new_object() for _ in range(9)]
    for object_id in objects:
        await shard.put(entry(1), object_id=object_id)
    assert await shard.ranges.close_bucket(shard.bucket) == objects


async def test_commit_of_a_closed_bucket_is_refused_also_after_a_restart(shard: Shard):
    await shard.create(1)
    early = shard.new_object()
    await shard.put(entry(1), object_id=early)
    late = shard.new_object()
    await shard.ranges.close_bucket(shard.bucket)
    assert shard.ranges.closed_bucket == shard.bucket
    for _ in range(2):
        for object_id in (late, early):
            results = await shard.put(entry(1), entry(9), object_id=object_id)
            assert [r.error for r in results] == [ErrorCode.REQUEST_TIMED_OUT] * 2
        shard.crash()
    assert await shard.ends(1) == (0, 1)


async def test_older_buckets_are_closed_with_a_younger_one(shard: Shard):
    await shard.create(1)
    old = shard.new_object()
    await shard.put(entry(1), object_id=old)
    await shard.ranges.close_bucket(Bucket(shard.bucket + 1))
    assert (await shard.put(entry(1)))[0].error == ErrorCode.REQUEST_TIMED_OUT
    assert await shard.ranges.close_bucket(shard.bucket) == [old]


async def test_release_is_queued_when_the_last_row_of_a_closed_bucket_goes(shard: Shard):
    await shard.create(1, 2)
    object_id = shard.new_object()
    await shard.put(entry(1), entry(2), entry(1), object_id=object_id)
    await shard.ranges.close_bucket(shard.bucket)
    await drop_everything(shard, 1)
    assert await shard.ranges.released_page(None, 10) == []
    await drop_everything(shard, 2)
    assert await shard.ranges.released_page(None, 10) == [object_id]
    assert shard.keys(OBJECT) == []
    await shard.ranges.acknowledge_released([object_id])
    assert shard.keys(RELEASED) == []


async def test_object_emptied_before_the_close_is_reported_as_not_held(shard: Shard):
    await shard.create(1)
    object_id = shard.new_object()
    first = await shard.put(entry(1), object_id=object_id)
    await drop_everything(shard, 1)
    assert shard.keys(RELEASED) == []
    assert await shard.put(entry(1), object_id=object_id) == first
    assert await shard.ranges.close_bucket(shard.bucket) == []
    assert shard.keys(OBJECT) == shard.keys(RELEASED) == []


async def test_released_objects_are_paged_by_a_cursor(shard: Shard):
    await shard.create(1)
    objects = [shard.new_object() for _ in range(5)]
    for object_id in objects:
        await shard.put(entry(1), object_id=object_id)
    await shard.ranges.close_bucket(shard.bucket)
    await drop_everything(shard, 1)
    assert await shard.ranges.released_page(None, 3) == objects[:3]
    assert await shard.ranges.released_page(objects[2], 3) == objects[3:]


@pytest.mark.parametrize("is_closed", [True, False])
async def test_deleting_a_range_lets_its_objects_go(shard: Shard, is_closed):
    await shard.create(1)
    object_id = shard.new_object()
    await shard.put(entry(1), object_id=object_id)
    if is_closed:
        await shard.ranges.close_bucket(shard.bucket)
    await shard.ranges.mark_deleting([RangeId(1)])
    assert await shard.ranges.drop_rows([RangeId(1)], 100)
    assert await shard.ranges.released_page(None, 3) == ([object_id] if is_closed else [])
