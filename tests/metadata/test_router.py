"""The router sends each part of a call to its vnode, keeps order, waits well, and tends what it leads."""

import asyncio
from random import Random

import pytest

from floe.metadata.api import FindRequest, Metadata, TopicDirectory
from floe.metadata.router import Router
from floe.metadata.store.local import LocalStore
from floe.metadata.store.memory import CommitFault, MemoryStore
from floe.model.coordinates import BatchEntry, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import BUCKET_MS, Offset, RangeId, VnodeId, bucket_of
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.observability.clock import SystemClock
from floe.observability.metrics import Metrics
from floe.storage.kv.rocks import RocksKeyValue


def finds(ranges, offset=0, max_bytes=1000):
    return [FindRequest(range_id, Offset(offset), max_bytes) for range_id in ranges]


def positions(ranges, offset=0):
    return dict.fromkeys(ranges, Offset(offset))


async def elapsed(call):
    loop = asyncio.get_running_loop()
    started = loop.time()
    result = await call
    return result, loop.time() - started


def test_router_is_what_engines_and_doors_ask_for(on_plane):
    async def work(plane):
        metadata: Metadata = plane.router
        directory: TopicDirectory = metadata.topics
        assert directory.all() == ()

    on_plane(work)


def test_find_over_many_vnodes_answers_in_the_order_asked(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 100)
        for count, range_id in enumerate(topic.ranges):
            await plane.write([range_id], objects=count % 3)
        shuffled = list(topic.ranges)
        Random(3).shuffle(shuffled)
        views = await plane.router.find(finds(shuffled))
        assert [view.log_end for view in views] == [topic.ranges.index(each) % 3 for each in shuffled]
        assert all(
            row.range == asked for asked, view in zip(shuffled, views, strict=True) for row in view.rows
        )
        assert len({plane.router.vnode_of_range(each) for each in shuffled}) > 5
        assert await plane.router.find([]) == []
        twice = await plane.router.find(finds([topic.ranges[1], topic.ranges[1]]))
        assert twice[0] == twice[1]

    on_plane(work)


def test_vnode_that_is_not_led_spoils_only_its_own_part_of_a_find(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 64)
        await plane.write(topic.ranges)
        lost = plane.router.vnode_of_range(topic.ranges[0])
        plane.router._hosts[lost].vnode.led(None)
        for range_id, view in zip(topic.ranges, await plane.router.find(finds(topic.ranges)), strict=True):
            is_lost = plane.router.vnode_of_range(range_id) == lost
            assert view.error is (ErrorCode.NOT_LEADER_OR_FOLLOWER if is_lost else ErrorCode.NONE)
            assert (plane.router.view_now(range_id) is None) == is_lost
        assert not plane.router.is_leading

    on_plane(work)


def test_commit_outside_the_arc_of_a_vnode_is_refused(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 1)
        (object_id,) = await plane.router.lease_object_ids(1)
        commit = ObjectCommit(object_id, (BatchEntry(topic.ranges[0], 0, 10, 1, 5),))
        owner = plane.router.vnode_of_range(topic.ranges[0])
        with pytest.raises(Rejected) as caught:
            await plane.router.commit(VnodeId((owner + 1) % 16), [commit])
        assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        results = await plane.router.commit(owner, [commit])
        assert results[0][0].base_offset == 0

    on_plane(work)


def test_wait_ends_when_any_range_has_something_new(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 40)
        waiting = asyncio.create_task(elapsed(plane.router.wait(positions(topic.ranges), 60_000)))
        await asyncio.sleep(3)
        await plane.write([topic.ranges[33]])
        woken, seconds = await waiting
        assert woken == {topic.ranges[33]}
        assert 3 <= seconds < 3.5

    on_plane(work)


def test_wait_for_what_is_there_already_does_not_wait(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 3)
        await plane.write([topic.ranges[1]])
        woken, seconds = await elapsed(plane.router.wait(positions(topic.ranges), 60_000))
        assert woken == {topic.ranges[1]}
        assert seconds < 0.1
        unknown, seconds = await elapsed(plane.router.wait({RangeId(77_777): Offset(0)}, 60_000))
        assert unknown == {RangeId(77_777)}
        assert seconds < 0.1

    on_plane(work)


def test_wait_without_news_lasts_its_time_and_leaves_nothing_behind(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 20)
        woken, seconds = await elapsed(plane.router.wait(positions(topic.ranges), 700))
        assert woken == set()
        assert 0.7 <= seconds < 0.8
        assert (await elapsed(plane.router.wait(positions(topic.ranges), 0)))[0] == set()
        given_up = asyncio.create_task(plane.router.wait(positions(topic.ranges), 60_000))
        await asyncio.sleep(0.1)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        assert sum(len(host.ranges._waiters) for host in plane.router._hosts) == 0

    on_plane(work)


@pytest.mark.parametrize("event", ["log start", "deletion", "lost leadership"])
def test_wait_is_ended_by_more_than_records(on_plane, event):
    async def work(plane):
        topic = await plane.topic("a", 1)
        await plane.write(topic.ranges, objects=5)
        range_id = topic.ranges[0]
        waiting = asyncio.create_task(plane.router.wait({range_id: Offset(5)}, 60_000))
        await asyncio.sleep(1)
        if event == "log start":
            # A reader at the end is not told of a log start that stays below it.
            await plane.router.delete_records(range_id, Offset(3))
            await asyncio.sleep(1)
            assert not waiting.done()
            await plane.write(topic.ranges)
        elif event == "deletion":
            await plane.router.delete_topic(topic.id)
        else:
            plane.store.depose(plane.router.vnode_of_range(range_id))
        assert await asyncio.wait_for(waiting, 1) == {range_id}

    on_plane(work)


def test_many_waits_over_many_ranges_are_woken_by_what_they_wait_for_alone(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 160)
        waits = [
            asyncio.create_task(plane.router.wait(positions(topic.ranges[i::10]), 60_000)) for i in range(10)
        ]
        await asyncio.sleep(1)
        await plane.write([topic.ranges[4], topic.ranges[17]])
        await asyncio.sleep(0.1)
        assert [i for i, wait in enumerate(waits) if wait.done()] == [4, 7]
        await asyncio.sleep(60)
        assert [wait.result() for wait in waits[:4]] == [set()] * 4

    on_plane(work)


def test_records_deleted_and_found_by_time(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 1)
        (range_id,) = topic.ranges
        for _ in range(4):
            await plane.write(topic.ranges)
            await asyncio.sleep(10)
        view = await plane.router.find_timestamp(range_id, plane.clock.now_ms() - 25_000)
        assert view.rows[0].first == 2
        assert (await plane.router.find_max_timestamp(range_id)).rows[0].first == 3
        assert (await plane.router.delete_records(range_id, Offset(-1))).log_start == 4

    on_plane(work)


def test_ids_of_objects_come_from_the_current_bucket_and_are_never_given_twice(on_plane):
    async def work(plane):
        ids = []
        for _ in range(6):
            ids += await plane.router.lease_object_ids(100)
            await asyncio.sleep(BUCKET_MS / 1000 / 2)
        assert len(set(ids)) == 600
        assert len({bucket_of(object_id) for object_id in ids}) in (3, 4)

    on_plane(work, vnodes=4)


def test_producer_ids_are_unique_and_large(on_plane):
    async def work(plane):
        ids = await asyncio.gather(*(plane.router.next_producer_id() for _ in range(50)))
        assert len(set(ids)) == 50
        assert min(ids) >= 1 << 40

    on_plane(work)


def test_objects_are_deleted_when_retention_has_emptied_them_and_not_before(on_plane):
    """The whole life: leased, committed, bucket closed, rows dropped, released, claimed, finished."""

    async def work(plane):
        topic = await plane.topic("a", 64, retention_ms="900000")
        held = await plane.write(topic.ranges, objects=3)
        orphans = await plane.router.lease_object_ids(2)
        claim = plane.router.claim_work
        await asyncio.sleep(2 * BUCKET_MS / 1000)
        items = await claim("me", [WorkKind.DELETE], 10)
        assert sorted(each for item in items for each in item.objects) == sorted(orphans)
        for item in items:
            await plane.router.finish_work(item, WorkResult(item.objects))
        await asyncio.sleep(200)
        assert await claim("me", [WorkKind.DELETE], 10) == []
        assert plane.metrics.pending_deletes._value.get() == 0
        await asyncio.sleep(200)
        assert plane.metrics.pending_deletes._value.get() == 3
        items = await claim("me", [WorkKind.DELETE], 10)
        assert sorted(each for item in items for each in item.objects) == sorted(held)
        for item in items:
            await plane.router.finish_work(item, WorkResult(item.objects))
        assert await claim("me", [WorkKind.DELETE], 10) == []
        for kind in (b"b", b"h", b"j", b"q", b"x"):
            assert all(vnode.scan(kind, kind + b"\xff", 10) == [] for vnode in plane.store.disk.vnodes)

    on_plane(work, vnodes=4)


def test_ids_go_on_when_a_wall_clock_that_ran_ahead_is_set_right(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 1)
        right = plane.clock.now_ms
        plane.clock.now_ms = lambda: right() + 10 * BUCKET_MS
        await plane.write(topic.ranges)
        await asyncio.sleep(2 * BUCKET_MS / 1000)  # the bucket of a time that has not come is closed
        plane.clock.now_ms = right
        await plane.write(topic.ranges)
        (view,) = await plane.router.find([FindRequest(topic.ranges[0], Offset(0), 1000)])
        assert (view.error, view.log_end) == (ErrorCode.NONE, 2)

    on_plane(work)


def test_finished_work_of_no_home_is_refused(on_plane):
    async def work(plane):
        item = WorkItem(1, VnodeId(99), WorkKind.DELETE, 1, 0, ())
        with pytest.raises(Rejected):
            await plane.router.finish_work(item, WorkResult(()))

    on_plane(work)


@pytest.mark.parametrize("seed", range(4))
def test_plane_goes_on_through_failing_commits(on_plane, seed):
    """Every vnode loses its term now and then; whoever asks again gets there."""

    async def work(plane):
        rng = Random(seed)
        plane.store.faults = lambda vnode, writes: (
            rng.choice(list(CommitFault)) if rng.random() < 0.1 else None
        )

        async def insist(call):
            for _ in range(60):
                try:
                    return await call()
                except Unavailable:
                    await asyncio.sleep(0.5)
            raise AssertionError("never got there")

        async def create(name):
            try:
                await plane.topic(name, 12)
            except Rejected as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

        for number in range(8):
            await insist(lambda number=number: create(f"t{number}"))
        plane.store.faults = None
        await asyncio.sleep(60)
        assert len(plane.router.topics.all()) == 8
        for topic in plane.router.topics.all():
            await plane.write(topic.ranges)
        assert plane.router.is_leading

    on_plane(work, seed=seed)


def test_close_leaves_decided_changes_durable_and_refuses_more(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 16)
        writing = asyncio.create_task(plane.write(topic.ranges))
        await asyncio.sleep(0.001)
        await plane.router.close()
        await asyncio.gather(writing, return_exceptions=True)
        with pytest.raises(Unavailable):
            await plane.topic("b")

    on_plane(work, seed=1)


async def test_start_fails_when_the_store_never_leads():
    store = MemoryStore(2)
    await store.close()
    router = Router(store, clock=SystemClock(), random=Random(1), metrics=Metrics())
    with pytest.raises(Unavailable):
        await router.start()
    await router.close()


async def test_broken_metadata_fails_the_start_instead_of_hiding_topics():
    store = MemoryStore(1)
    store.disk.vnodes[0].write([(b"tbroken", b"\xc1")])
    router = Router(store, clock=SystemClock(), random=Random(1), metrics=Metrics())
    with pytest.raises(Exception, match="damaged"):
        await router.start()
    await router.close()


async def test_lone_broker_finds_everything_again_after_a_restart(tmp_path):
    async def opened():
        store = LocalStore(RocksKeyValue(tmp_path / "kv"))
        router = Router(store, clock=SystemClock(), random=Random(1), metrics=Metrics())
        await router.start()
        return store, router

    store, router = await opened()
    topic = await router.create_topic("a", partitions=4, config={"retention.bytes": "-1"})
    (object_id,) = await router.lease_object_ids(1)
    first_id = await router.next_producer_id()
    vnode = router.vnode_of_range(topic.ranges[0])
    commit = ObjectCommit(object_id, (BatchEntry(topic.ranges[0], 0, 10, 3, 5),))
    results = await router.commit(vnode, [commit])
    await router.close()
    await store.close()

    store, router = await opened()
    assert router.topics.by_name("a") == topic
    (view,) = await router.find([FindRequest(topic.ranges[0], Offset(1), 100)])
    assert view.log_end == 3
    assert view.rows[0].object == object_id
    assert await router.commit(vnode, [commit]) == results
    assert await router.next_producer_id() > first_id
    await router.close()
    await store.close()
