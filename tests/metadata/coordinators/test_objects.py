"""The home of objects: leases, closing, holders, releases, delete work."""

import pytest

from floe.metadata.coordinators import objects as objects_module
from floe.metadata.keys import BUCKET, HOLDER, WORK
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import BUCKET_MS, Bucket, ObjectId, VnodeId, bucket_of, object_id, sequence_of
from floe.model.work import WorkKind, WorkResult
from floe.testing.shard import Shard

A, B = VnodeId(3), VnodeId(9)
DELETE = [WorkKind.DELETE]
LATER = 10 * BUCKET_MS


async def closed(shard: Shard, count: int, held: dict[VnodeId, list[int]]) -> list[ObjectId]:
    """Lease ids and close their bucket with these of them held."""
    bucket = shard.bucket
    ids = await shard.home.lease_object_ids(bucket, count)
    assert await shard.home.begin_close(bucket)
    await shard.ranges.close_bucket(bucket)
    await shard.home.finish_close(bucket, {vnode: [ids[i] for i in held[vnode]] for vnode in held})
    return ids


async def claim_all(shard: Shard) -> list[ObjectId]:
    """Claim and finish everything that is due."""
    deleted: list[ObjectId] = []
    while items := await shard.home.claim_work("w", DELETE, 3):
        for item in items:
            deleted += item.objects
            assert await shard.home.finish_work(item, WorkResult(item.objects))
    return deleted


async def test_leases_never_give_an_id_twice(shard: Shard):
    first = await shard.home.lease_object_ids(shard.bucket, 3)
    shard.crash()
    second = await shard.home.lease_object_ids(shard.bucket, 2)
    assert [sequence_of(i) for i in first + second] == [0, 1, 2, 3, 4]
    assert {bucket_of(i) for i in first + second} == {shard.bucket}


@pytest.mark.parametrize("count", [0, -1, 1 << 20])
async def test_unreasonable_leases_are_refused(shard: Shard, count):
    with pytest.raises(Rejected):
        await shard.home.lease_object_ids(shard.bucket, count)


async def test_bucket_is_due_some_time_after_its_end(shard: Shard):
    bucket = shard.bucket
    await shard.home.lease_object_ids(bucket, 1)
    shard.clock.now = (bucket + 1) * BUCKET_MS + objects_module.CLOSE_AFTER_MS - 1
    assert await shard.home.due_buckets() == []
    shard.clock.now += 1
    assert await shard.home.due_buckets() == [bucket]
    await shard.home.begin_close(bucket)
    assert await shard.home.due_buckets() == [bucket]


async def test_closing_and_closed_buckets_lease_nothing(shard: Shard):
    bucket = shard.bucket
    await shard.home.lease_object_ids(bucket, 1)
    await shard.home.begin_close(bucket)
    with pytest.raises(Unavailable):
        await shard.home.lease_object_ids(bucket, 1)
    await shard.ranges.close_bucket(bucket)
    await shard.home.finish_close(bucket, {})
    for closed_bucket in (bucket, Bucket(bucket - 1)):
        with pytest.raises(Unavailable):
            await shard.home.lease_object_ids(closed_bucket, 1)
    assert shard.keys(BUCKET) == []
    assert not await shard.home.begin_close(bucket)


async def test_ids_held_by_nobody_are_deleted_and_held_ones_are_not(shard: Shard):
    ids = await closed(shard, 5, {A: [1, 3], B: [3]})
    assert len(shard.keys(HOLDER)) == 2
    assert await claim_all(shard) == []
    shard.clock.now += LATER
    assert await claim_all(shard) == [ids[0], ids[2], ids[4]]
    assert await claim_all(shard) == []


async def test_close_goes_on_page_by_page_after_a_crash(shard: Shard, monkeypatch):
    monkeypatch.setattr(objects_module, "CLOSE_PAGE", 2)
    bucket = shard.bucket
    ids = await shard.home.lease_object_ids(bucket, 7)
    await shard.home.begin_close(bucket)
    held = {A: [ids[0], ids[5]]}
    by_object = {ids[0]: [A], ids[5]: [A]}
    assert await shard.vnode.run(lambda tx: shard.home._close_page(bucket, by_object, tx))
    shard.crash()
    await shard.home.finish_close(bucket, held)
    await shard.home.finish_close(bucket, held)
    shard.clock.now += LATER
    assert await claim_all(shard) == [ids[i] for i in (1, 2, 3, 4, 6)]


async def test_object_is_deleted_after_its_last_holder_and_the_grace_period(shard: Shard):
    (held,) = await closed(shard, 1, {A: [0], B: [0]})
    assert await shard.home.release([held], A) == [held]
    assert await shard.home.release([held], A) == [held]
    shard.clock.now += LATER
    assert await claim_all(shard) == []
    assert await shard.home.release([held], B) == [held]
    shard.clock.now += objects_module.GRACE_MS - 1
    assert await claim_all(shard) == []
    shard.clock.now += 1
    assert await claim_all(shard) == [held]
    assert await shard.home.release([held], B) == [held]
    shard.clock.now += LATER
    assert await claim_all(shard) == []
    assert shard.keys(HOLDER) == []


async def test_release_before_the_bucket_is_closed_must_be_sent_again(shard: Shard):
    bucket = shard.bucket
    ids = await shard.home.lease_object_ids(bucket, 2)
    assert await shard.home.release(ids, A) == []
    await shard.home.begin_close(bucket)
    assert await shard.home.release(ids, A) == []
    await shard.home.finish_close(bucket, {A: ids})
    other = object_id(Bucket(bucket - 5), 0)
    assert await shard.home.release([*ids, other], A) == [*ids, other]


async def test_lost_lease_changes_nothing(shard: Shard):
    ids = await closed(shard, 3, {})
    shard.clock.now += LATER
    (first,) = await shard.home.claim_work("w1", DELETE, 5)
    assert first.objects == tuple(ids)
    assert await shard.home.claim_work("w2", DELETE, 5) == []
    shard.clock.now = first.deadline_ms
    (second,) = await shard.home.claim_work("w2", DELETE, 5)
    assert (second.id, second.objects) == (first.id, first.objects)
    assert second.token > first.token
    assert not await shard.home.finish_work(first, WorkResult(first.objects))
    assert await shard.home.finish_work(second, WorkResult(second.objects))
    assert not await shard.home.finish_work(second, WorkResult(second.objects))
    assert shard.home.pending_deletes == 0


async def test_late_finish_counts_while_nobody_else_has_the_lease(shard: Shard):
    await closed(shard, 3, {})
    shard.clock.now += LATER
    (item,) = await shard.home.claim_work("w1", DELETE, 5)
    shard.clock.now = item.deadline_ms + 1
    assert await shard.home.finish_work(item, WorkResult(item.objects))
    assert await claim_all(shard) == []


async def test_objects_not_done_come_back_after_a_while(shard: Shard):
    ids = await closed(shard, 3, {})
    shard.clock.now += LATER
    (item,) = await shard.home.claim_work("w", DELETE, 5)
    strange = object_id(Bucket(1), 1)
    assert await shard.home.finish_work(item, WorkResult((ids[1], strange)))
    assert shard.home.pending_deletes == 2
    assert await shard.home.claim_work("w", DELETE, 5) == []
    shard.clock.now += LATER
    assert await claim_all(shard) == [ids[0], ids[2]]
    assert [key for key in shard.keys(WORK) if key[1:2] != b"c"] == []


async def test_items_are_bounded(shard: Shard):
    await closed(shard, 2500, {})
    shard.clock.now += LATER
    items = await shard.home.claim_work("w", DELETE, 2)
    assert [len(item.objects) for item in items] == [1000, 1000]
    (rest,) = await shard.home.claim_work("w", DELETE, 2)
    assert len(rest.objects) == 500
    assert shard.home.pending_deletes == 2500


async def test_other_kinds_of_work_are_not_known_here(shard: Shard):
    await closed(shard, 1, {})
    shard.clock.now += LATER
    assert await shard.home.claim_work("w", [WorkKind.COMPACT], 2) == []


async def test_leases_survive_a_restart(shard: Shard):
    await closed(shard, 2, {})
    shard.clock.now += LATER
    (item,) = await shard.home.claim_work("w", DELETE, 2)
    shard.crash()
    assert await shard.home.claim_work("w", DELETE, 2) == []
    assert await shard.home.finish_work(item, WorkResult(item.objects))
