"""Reads below the log start: refused whatever the caches hold and whatever the budget was spent on."""

from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset
from floe.object_log.engine import ReadRequest

KIB = 1 << 10


def test_deleted_records_are_not_served_from_a_cache_behind_a_range_that_must_be_looked_up(run):
    """The budget seems spent on the first range until its rows are known, so of the second only the ends are
    asked for; that answer says nothing of the offset."""

    async def scenario(rig):
        looked_up, trimmed = rig.ranges[:2]
        for range_id in (looked_up, trimmed):
            for n in range(5):
                await rig.append((range_id, rig.batch([b"%d" % n + b"x" * KIB])))
        log = rig.open(rig.settings)
        assert len(rig.records(await rig.read(trimmed, 0, log=log))) == 5  # now it is cached
        await rig.metadata.delete_records(trimmed, Offset(3))
        requests = [ReadRequest(range_id, Offset(0), 64 * KIB) for range_id in (looked_up, trimmed)]
        results = await log.read(requests, max_bytes=64 * KIB)
        assert len(rig.records(results[0])) == 5
        assert (results[1].error, results[1].size) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)
        await log.close(drain=False)

    run(scenario)
