"""Every kind of operation comes to its end, whichever of its commits fails or is the last before a crash."""

import asyncio

import pytest

from floe.machines.range_record import RangeRecord
from floe.metadata import keys
from floe.metadata.codecs.object_homes import decode_holders
from floe.metadata.codecs.range_records import decode_range
from floe.metadata.codecs.topics import decode_topic
from floe.metadata.coordinators.topics import limits_of
from floe.metadata.vnode_host import Timing
from floe.model.coordinates import BatchEntry, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import BUCKET_MS, bucket_of
from floe.model.topic import RangeState
from floe.model.work import WorkKind
from floe.testing.operation_kit import FAILURES, rows_of, try_everywhere

FAILING = pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.value)


async def nothing(router):
    pass


async def create(router, partitions=20):
    return await router.create_topic("orders", partitions=partitions, config={"retention.ms": "5000"})


async def check_whole(ended):
    """What clients are shown, the rows of topics and the ranges agree, and nothing else is left."""
    topics = [decode_topic(value) for value in rows_of(ended.disk, keys.TOPIC).values()]
    assert all(row.is_shown and not row.operation for row in topics)
    shown = [row.topic() for row in topics]
    assert {topic.name: topic for topic in ended.router.topics.all()} == {t.name: t for t in shown}
    ranges: dict[int, RangeRecord] = {
        keys.read_u64(key, 1): decode_range(value) for key, value in rows_of(ended.disk, keys.RANGE).items()
    }
    assert set(ranges) == {range_id for topic in shown for range_id in topic.ranges}
    for topic in shown:
        for range_id in topic.ranges:
            owner = ended.router.vnode_of_range(range_id)
            assert ended.disk.vnodes[owner].get(keys.RANGE + keys.u64(range_id))
            record = ranges[range_id]
            assert record.state is RangeState.ACTIVE
            assert record.topic_id == topic.id
            assert record.limits == limits_of(topic.config)
    if ended.error is not None:
        assert isinstance(ended.error, Unavailable)
        assert ended.was_hit


@FAILING
def test_create_topic(failure):
    async def check(ended):
        await check_whole(ended)
        names = [topic.name for topic in ended.router.topics.all()]
        assert names == ["orders"] or (names == [] and ended.result is None)
        if not names:
            await create(ended.router)
        with pytest.raises(Rejected) as caught:
            await create(ended.router)
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        await check_whole(ended._replace(error=None))

    assert try_everywhere(failure, prepare=nothing, act=create, check=check) >= 5


@FAILING
def test_delete_topic(failure):
    async def prepare(router):
        topic = await create(router)
        await write(router, topic, 3)

    async def act(router):
        topic = router.topics.by_name("orders")
        await router.delete_topic(topic.id)
        assert router.topics.by_name("orders") is None
        while router._hosts[router.ring.of_topic("orders")].operations._running:
            await asyncio.sleep(0.01)
        return True

    async def check(ended):
        await check_whole(ended)
        if ended.router.topics.by_name("orders") is None:
            for kind in (keys.ROW, keys.TIME_NODE, keys.PRODUCER, keys.DROP):
                assert rows_of(ended.disk, kind) == {}
            await create(ended.router)
        else:
            assert ended.result is None

    assert try_everywhere(failure, prepare=prepare, act=act, check=check) >= 8


@FAILING
def test_add_partitions(failure):
    async def act(router):
        return await router.add_partitions("orders", total=40)

    async def check(ended):
        await check_whole(ended)
        topic = ended.router.topics.by_name("orders")
        assert len(topic.ranges) in (20, 40)
        assert topic.is_aligned
        if len(topic.ranges) == 20:
            assert ended.result is None
            assert len((await act(ended.router)).ranges) == 40

    assert try_everywhere(failure, prepare=create, act=act, check=check) >= 4


@FAILING
def test_alter_config(failure):
    async def act(router):
        return await router.alter_config("orders", changes={"retention.bytes": "77", "retention.ms": None})

    async def check(ended):
        await check_whole(ended)
        config = ended.router.topics.by_name("orders").config
        assert config in ({"retention.ms": "5000"}, {"retention.bytes": "77"})
        if ended.result is not None:
            assert config == ended.result.config == {"retention.bytes": "77"}

    assert try_everywhere(failure, prepare=create, act=act, check=check) >= 4


async def write(router, topic, objects):
    """Commit objects with a batch for every range, and lease ids that nobody uses."""
    ids = await router.lease_object_ids(objects + 2)
    for object_id in ids[:objects]:
        by_vnode = {}
        for position, range_id in enumerate(topic.ranges):
            entry = BatchEntry(range_id, position * 100, 100, 1, 5, 1 << 40, 0, ids.index(object_id))
            by_vnode.setdefault(router.vnode_of_range(range_id), []).append(entry)
        for vnode, entries in by_vnode.items():
            results = await router.commit(vnode, [ObjectCommit(object_id, tuple(entries))])
            assert all(result.error is ErrorCode.NONE for result in results[0])
    return ids


@FAILING
def test_close_bucket(failure):
    """Some objects are held by all vnodes, some leased ids by none; after the close each is judged right."""
    timing = Timing(close_after_ms=60_000, orphan_grace_ms=0, grace_ms=0)

    async def prepare(router):
        topic = await router.create_topic("orders", partitions=64, config={"retention.ms": "-1"})
        await write(router, topic, 3)

    async def act(router):
        router._clock.advance_ms = BUCKET_MS + 60_000
        while rows_of(router._hosts[0].vnode._store.disk, keys.BUCKET):
            await asyncio.sleep(0.5)
        return True

    async def check(ended):
        await check_whole(ended)
        while rows_of(ended.disk, keys.BUCKET):
            await asyncio.sleep(0.5)
        holders = rows_of(ended.disk, keys.HOLDER)
        assert len(holders) == 3
        used = {ended.router.vnode_of_range(range_id) for range_id in ended.router.topics.all()[0].ranges}
        assert all(decode_holders(value) == used for value in holders.values())
        items = await ended.router.claim_work("me", [WorkKind.DELETE], 10)
        orphans = [object_id for item in items for object_id in item.objects]
        assert len(orphans) == 2
        late = ObjectCommit(orphans[0], (BatchEntry(ended.router.topics.all()[0].ranges[0], 0, 10, 1, 5),))
        owner = ended.router.vnode_of_range(late.entries[0].range)
        assert (await ended.router.commit(owner, [late]))[0][0].error is ErrorCode.REQUEST_TIMED_OUT
        assert bucket_of(orphans[0]) == bucket_of(orphans[1])

    assert try_everywhere(failure, prepare=prepare, act=act, check=check, timing=timing) >= 5
