"""Commit on one vnode: offsets, rows, idempotence per object, producers, refusals, failures."""

import asyncio
from random import Random

import pytest

from floe.metadata.keys import OBJECT, ROW
from floe.metadata.store.memory import CommitFault
from floe.model.coordinates import ROW_BYTES_MAX, ObjectCommit, RowFlags
from floe.model.error_codes import ErrorCode
from floe.model.errors import Unavailable
from floe.testing.shard import NOW_MS, Shard, entry, laid_out, sequenced


def outcome(result):
    return result.error, result.base_offset, result.is_duplicate


def ok(offset):
    return ErrorCode.NONE, offset, False


async def test_offsets_continue_from_the_log_end_of_each_range(shard: Shard):
    await shard.create(1, 2)
    assert [outcome(r) for r in await shard.put(entry(1, 3), entry(2, 5))] == [ok(0), ok(0)]
    assert [outcome(r) for r in await shard.put(entry(1, 1), entry(1, 2), entry(2, 1))] == [
        ok(3),
        ok(4),
        ok(5),
    ]
    assert await shard.ends(1) == (0, 6)
    assert await shard.ends(2) == (0, 6)


async def test_entries_of_later_objects_in_one_call_follow_the_earlier_ones(shard: Shard):
    await shard.create(1)
    commits = [ObjectCommit(shard.new_object(), laid_out([entry(1, 2)])) for _ in range(3)]
    results = await shard.ranges.commit(commits)
    assert [r[0].base_offset for r in results] == [0, 2, 4]


async def test_repeat_of_an_object_returns_the_first_results_and_adds_nothing(shard: Shard):
    await shard.create(1)
    object_id = shard.new_object()
    first = await shard.put(entry(1, 3), entry(9, 1), object_id=object_id)
    await shard.put(entry(1, 2))
    assert await shard.put(entry(1, 3), entry(9, 1), object_id=object_id) == first
    assert await shard.ends(1) == (0, 5)


async def test_repeat_within_one_call_returns_the_first_results(shard: Shard):
    await shard.create(1)
    commit = ObjectCommit(shard.new_object(), laid_out([entry(1, 3)]))
    first, second = await shard.ranges.commit([commit, commit])
    assert first == second
    assert await shard.ends(1) == (0, 3)


async def test_contiguous_entries_share_a_row_up_to_its_limit(shard: Shard):
    await shard.create(1, 2)
    half = ROW_BYTES_MAX // 2
    await shard.put(
        entry(1, 2, size=half, timestamp=5), entry(1, 3, size=half, timestamp=9), entry(1, size=1)
    )
    rows = (await shard.find(1, 0)).rows
    assert [(r.first, r.last, r.position, r.size, r.max_timestamp) for r in rows] == [
        (0, 4, 0, ROW_BYTES_MAX, 9),
        (5, 5, ROW_BYTES_MAX, 1, NOW_MS),
    ]


async def test_batch_larger_than_a_row_has_its_own(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1, size=10), entry(1, size=ROW_BYTES_MAX + 1), entry(1, size=10))
    assert [r.size for r in (await shard.find(1, 0)).rows] == [10, ROW_BYTES_MAX + 1, 10]


async def test_entries_apart_in_the_file_do_not_share_a_row(shard: Shard):
    await shard.create(1, 2)
    await shard.put(entry(1), entry(2), entry(1))
    assert [(r.first, r.position) for r in (await shard.find(1, 0)).rows] == [(0, 0), (1, 200)]


async def test_row_keeps_the_flags_of_its_batches(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1), entry(1, flags=RowFlags.TRANSACTIONAL), entry(1))
    (row,) = (await shard.find(1, 0)).rows
    assert row.flags == RowFlags.TRANSACTIONAL
    assert row.committed_at == NOW_MS


async def test_unknown_range_refuses_its_entries_alone(shard: Shard):
    await shard.create(1)
    results = await shard.put(entry(9), entry(1), entry(9))
    assert [r.error for r in results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_duplicate_of_any_of_the_last_five_batches_gets_its_offset(shard: Shard):
    await shard.create(1)
    for i in range(6):
        await shard.put(sequenced(1, i * 10, 10))
    for i in range(1, 6):
        assert outcome((await shard.put(sequenced(1, i * 10, 10)))[0]) == (ErrorCode.NONE, i * 10, True)
    (oldest,) = await shard.put(sequenced(1, 0, 10))
    assert oldest.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await shard.ends(1) == (0, 60)


async def test_entries_of_one_commit_see_each_others_sequences(shard: Shard):
    await shard.create(1)
    results = await shard.put(sequenced(1, 0, 2), sequenced(1, 2, 2), sequenced(1, 0, 2), sequenced(1, 9))
    assert [outcome(r) for r in results] == [
        ok(0),
        ok(2),
        (ErrorCode.NONE, 0, True),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, False),
    ]
    (row,) = (await shard.find(1, 0)).rows
    assert row.size == 200


async def test_producers_are_known_after_a_restart(shard: Shard):
    await shard.create(1)
    await shard.put(sequenced(1, 0, 5))
    shard.crash()
    assert outcome((await shard.put(sequenced(1, 0, 5)))[0]) == (ErrorCode.NONE, 0, True)
    assert (await shard.put(sequenced(1, 9)))[0].error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert outcome((await shard.put(sequenced(1, 5)))[0]) == ok(5)


async def test_object_without_rows_is_remembered_until_its_bucket_closes(shard: Shard):
    await shard.create(1)
    await shard.put(sequenced(1, 0))
    object_id = shard.new_object()
    first = await shard.put(sequenced(1, 0), entry(9), object_id=object_id)
    assert await shard.put(sequenced(1, 0), entry(9), object_id=object_id) == first
    assert len(shard.keys(OBJECT)) == 2
    assert len(shard.keys(ROW)) == 1


@pytest.mark.parametrize("fault", list(CommitFault))
async def test_unknown_outcome_is_settled_by_asking_again(shard: Shard, fault):
    await shard.create(1)
    await shard.put(sequenced(1, 0))
    shard.store.faults = lambda vnode, writes: fault
    object_id = shard.new_object()
    with pytest.raises(Unavailable):
        await shard.put(sequenced(1, 1), object_id=object_id)
    shard.store.faults = None
    assert shard.ranges.view_now(1) is None
    shard.lead_again()
    assert [outcome(r) for r in await shard.put(sequenced(1, 1), object_id=object_id)] == [ok(1)]
    assert await shard.ends(1) == (0, 2)


async def test_nothing_is_found_before_it_is_durable():
    shard = Shard(random=Random(3))
    await shard.create(1)
    await shard.ends(1)
    commit = asyncio.ensure_future(shard.put(entry(1, 4)))
    while not commit.done():
        view = shard.ranges.view_now(1)
        assert view.log_end == (4 if shard.keys(ROW) else 0) or view.log_end == 0
        assert len((await shard.find(1, 0)).rows) == (1 if view.log_end else 0)
        await asyncio.sleep(0.0001)
    assert shard.ranges.view_now(1).log_end == 4


async def test_log_end_never_goes_back_when_a_commit_is_lost(shard: Shard):
    await shard.create(1)
    await shard.put(entry(1, 4))
    shard.store.faults = lambda vnode, writes: CommitFault.LOST
    with pytest.raises(Unavailable):
        await shard.put(entry(1, 4))
    shard.store.faults = None
    shard.lead_again()
    assert await shard.ends(1) == (0, 4)
    assert [outcome(r) for r in await shard.put(entry(1))] == [ok(4)]
