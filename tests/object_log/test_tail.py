"""Write, then read at the tail: offsets, bytes, no GET."""

from collections import deque

from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset
from floe.object_log.engine import ReadRequest


def test_what_was_appended_is_read_back_with_its_offsets_and_no_get(run):
    async def scenario(rig):
        one, two = rig.ranges[3], rig.ranges[40]
        results = await rig.append((one, rig.batch(["a", "b"])), (two, rig.batch(["x"])))
        assert [(r.error, r.base_offset) for r in results] == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0)]
        results = await rig.append((one, rig.batch(["c"])))
        assert results[0].base_offset == 2
        assert rig.records(await rig.read(one, 0)) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert rig.records(await rig.read(two, 0)) == [(0, b"x")]
        assert rig.objects.calls["get_range"] == 0

    run(scenario)


def test_reader_woken_by_a_commit_costs_no_get(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        appending = rig.log.append([(range_id, rig.batch(["a"]))])
        assert await rig.metadata.wait({range_id: Offset(0)}, 10_000) == {range_id}
        assert not appending.done()  # the reader hears of it before the writer's engine does
        assert rig.records(await rig.read(range_id, 0)) == [(0, b"a")]
        await appending
        assert rig.objects.calls["get_range"] == 0

    run(scenario)


def test_batches_whose_commit_is_not_known_here_yet_are_read_without_a_get(run):
    """The commit took effect and readers see it, but its answer was lost and the engine is asking again."""

    async def scenario(rig):
        range_id = rig.ranges[0]
        rig.metadata.commit_faults[rig.metadata.vnode_of_range(range_id)] = deque(["after"] * 4)
        appending = rig.log.append([(range_id, rig.batch(["a", "b"])), (rig.ranges[1], rig.batch(["x"]))])
        assert await rig.metadata.wait({range_id: Offset(0)}, 10_000) == {range_id}
        assert rig.records(await rig.read(range_id, 0)) == [(0, b"a"), (1, b"b")]
        assert not appending.done()
        await appending
        assert rig.objects.calls["get_range"] == 0

    run(scenario)


def test_read_now_answers_what_is_cached_and_nothing_else(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        await rig.append((range_id, rig.batch(["a"])), (rig.ranges[1], rig.batch(["b"])))
        reads = [ReadRequest(range_id, Offset(0), 1000), ReadRequest(rig.ranges[2], Offset(0), 1000)]
        results = rig.log.read_now(reads, max_bytes=10_000)
        assert [rig.records(result) for result in results] == [[(0, b"a")], []]
        assert [(r.log_start, r.log_end, r.last_stable) for r in results] == [(0, 1, 1), (0, 0, 0)]
        assert rig.log.read_now([ReadRequest(range_id, Offset(2), 1000)], max_bytes=10_000) is None
        fresh = rig.open(rig.settings)
        assert fresh.read_now([ReadRequest(range_id, Offset(0), 1000)], max_bytes=10_000) is None
        await fresh.close(drain=False)

    run(scenario)
