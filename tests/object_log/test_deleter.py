"""The broker's own worker."""

import asyncio

from floe.model.errors import Unavailable
from floe.model.ids import ObjectId, VnodeId, object_key
from floe.model.work import WorkItem, WorkKind
from floe.object_log.engine import EngineSettings
from floe.testing.faulty_objects import Fault


def give_work(rig, items):
    """Stands in for the homes: items to claim, and what came back."""
    finished = []

    async def claim(_worker, _kinds, limit):
        rig.metadata.calls["claim"] += 1
        claimed, items[:limit] = items[:limit], []
        return claimed

    async def finish(done, result):
        finished.append((done, result))

    rig.metadata.claim_work = claim
    rig.metadata.finish_work = finish
    return finished


def item(number, objects):
    return WorkItem(number, VnodeId(0), WorkKind.DELETE, 1, 0, tuple(ObjectId(o) for o in objects))


async def put_objects(rig, count):
    for number in range(count):
        await rig.inner.put(object_key("c1", ObjectId(number)), [b"x"])


async def keys(rig):
    return [info.key async for info in rig.inner.list("")]


def test_claimed_objects_are_deleted_and_their_items_finished(run):
    async def scenario(rig):
        await put_objects(rig, 20)
        finished = give_work(rig, [item(n, range(2 * n, 2 * n + 2)) for n in range(9)])
        await asyncio.sleep(31)
        assert await keys(rig) == [object_key("c1", ObjectId(n)) for n in (18, 19)]
        assert [(done.id, result.done) for done, result in finished] == [
            (n, (2 * n, 2 * n + 1)) for n in range(9)
        ]
        assert rig.metadata.calls["claim"] <= 5  # three with work, and one per idle interval

    run(scenario)


def test_objects_that_could_not_be_deleted_go_back_with_their_item(run):
    async def scenario(rig):
        await put_objects(rig, 12)
        rig.objects.fail("delete", Fault.PARTIAL)
        finished = give_work(rig, [item(1, range(12))])
        await asyncio.sleep(31)
        ((_, result),) = finished
        left = {object_key("c1", ObjectId(n)) for n in range(12)} - {object_key("c1", n) for n in result.done}
        assert set(await keys(rig)) == left
        assert 0 < len(left) < 12

    run(scenario)


def test_worker_survives_errors_and_tries_again_at_its_own_pace(run):
    async def scenario(rig):
        give_work(rig, [item(1, [0])])
        claim = rig.metadata.claim_work
        failures = 3

        async def failing(*arguments):
            nonlocal failures
            if failures:
                failures -= 1
                raise Unavailable("injected") if failures else RuntimeError("a bug")
            return await claim(*arguments)

        rig.metadata.claim_work = failing
        await put_objects(rig, 1)
        await asyncio.sleep(125)
        assert await keys(rig) == []

    run(scenario)


def test_deletes_that_all_fail_do_not_spin(run):
    async def scenario(rig):
        claims = 0

        async def claim(*_arguments):
            nonlocal claims
            claims += 1
            return [item(1, [0])]

        given_back = give_work(rig, [])
        rig.metadata.claim_work = claim
        rig.objects.fail("delete", *[Fault.BEFORE] * 10_000)
        await asyncio.sleep(600)
        assert 1 < claims <= 21
        assert len(given_back) in (claims, claims - 1)
        assert all(result.done == () for _, result in given_back)

    run(scenario, settings=EngineSettings(delete_interval_ms=30_000))


def test_objects_of_a_deleted_topic_and_orphans_go_and_others_stay(run):
    """From the coordinators' decision to the store, through real homes, leases and grace periods."""

    async def scenario(rig):
        kept = await rig.router.create_topic("kept", partitions=1, config={})
        doomed = rig.ranges[0]
        await rig.append((doomed, rig.batch(["goes"])))
        await rig.append((kept.ranges[0], rig.batch(["stays"])))
        await rig.append((doomed, rig.batch(["shared"])), (kept.ranges[0], rig.batch(["shared"])))
        orphan = object_key("c1", (await rig.metadata.lease_object_ids(1))[0])
        await rig.inner.put(orphan, [b"uploaded, never committed"])
        before = await keys(rig)
        await rig.router.delete_topic(rig.router.topics.by_name("t").id)
        await asyncio.sleep(3600)
        after = await keys(rig)
        assert len(before) == 4
        assert len(after) == 2
        assert orphan not in after
        fresh = rig.open(EngineSettings())
        assert await rig.read_all(kept.ranges[0], log=fresh) == [(0, b"stays"), (1, b"shared")]
        await fresh.close(drain=False)

    run(scenario, seconds=10_000)
