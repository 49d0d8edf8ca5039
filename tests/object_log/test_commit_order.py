"""What is kept when uploads, vnodes and answers are late, lost or out of order."""

import asyncio
from collections import deque
from random import Random

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.errors import Unavailable
from floe.object_log.cache import Pool
from floe.object_log.engine import EngineSettings
from floe.testing.faulty_objects import Fault

EAGER = EngineSettings(uploads_eager=8, uploads_max=8)  # a buffer closes each turn, uploads overlap
NONE = ErrorCode.NONE


def errors(results):
    return [result.error for result in results]


def hold_uploads(rig, count):
    """The next uploads wait; returns an event for each that lets it go on."""
    gates = [asyncio.Event() for _ in range(count)]
    waiting = deque(gates)

    async def before(op, _key):
        if op == "put" and waiting:
            await waiting.popleft().wait()

    rig.objects.before = before
    return gates


async def append_in_turns(rig, range_id, count, **facts):
    """One object each: every append has a turn of the loop of its own."""
    futures = []
    for n in range(count):
        sequence = {"base_sequence": n} if "producer_id" in facts else {}
        futures.append(rig.log.append([(range_id, rig.batch([f"{n}"], **facts, **sequence))]))
        await asyncio.sleep(0.01)
    return futures


def test_producers_order_is_kept_when_uploads_end_in_reverse(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        gates = hold_uploads(rig, 5)
        futures = await append_in_turns(rig, range_id, 5, producer_id=9, producer_epoch=0)
        for gate in reversed(gates[1:]):
            gate.set()
            await asyncio.sleep(0.05)
        assert not any(future.done() for future in futures)
        assert rig.metadata.commits == []
        gates[0].set()
        await asyncio.wait(futures)
        assert [future.result()[0].base_offset for future in futures] == [0, 1, 2, 3, 4]
        assert rig.metadata.calls["commit"] <= 2  # what waited went together

    run(scenario, settings=EAGER)


def test_held_vnode_delays_only_its_own_ranges(run):
    async def scenario(rig):
        slow, quick = rig.ranges_on_different_vnodes()[:2]
        gate = rig.metadata.held[rig.metadata.vnode_of_range(slow)] = asyncio.Event()
        held = await append_in_turns(rig, slow, 3)
        others = await append_in_turns(rig, quick, 3)
        await asyncio.wait(others)
        assert not any(future.done() for future in held)
        gate.set()
        await asyncio.wait(held)
        assert [future.result()[0].base_offset for future in held] == [0, 1, 2]

    run(scenario, settings=EAGER)


def test_silent_vnode_times_out_its_own_entries_and_neighbours_keep_their_success(run):
    async def scenario(rig):
        slow, quick = rig.ranges_on_different_vnodes()[:2]
        vnode = rig.metadata.vnode_of_range(slow)
        gate = rig.metadata.held[vnode] = asyncio.Event()
        started = rig.clock.monotonic()
        results = await rig.append((slow, rig.batch(["a"])), (quick, rig.batch(["b"])))
        assert errors(results) == [ErrorCode.REQUEST_TIMED_OUT, NONE]
        assert results[1].base_offset == 0
        assert 29 < rig.clock.monotonic() - started < 31
        assert rig.log.pending_bytes == 0
        del rig.metadata.held[vnode]
        gate.set()
        await asyncio.sleep(1)
        # What was sent took effect in the end, and the next append comes after it.
        assert (await rig.append((slow, rig.batch(["c"]))))[0].base_offset == 1
        assert await rig.read_all(slow) == [(0, b"a"), (1, b"c")]

    run(scenario)


def test_object_that_was_never_sent_leaves_the_queue_at_its_deadline(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        vnode = rig.metadata.vnode_of_range(range_id)
        gate = rig.metadata.held[vnode] = asyncio.Event()
        first = rig.log.append([(range_id, rig.batch(["sent"]))])
        await asyncio.sleep(1)
        second = rig.log.append([(range_id, rig.batch(["waits behind it"]))])
        assert errors(await first) == errors(await second) == [ErrorCode.REQUEST_TIMED_OUT]
        del rig.metadata.held[vnode]
        gate.set()
        await asyncio.sleep(1)
        assert await rig.read_all(range_id) == [(0, b"sent")]
        assert len(rig.metadata.commits) == 1

    run(scenario)


@pytest.mark.parametrize("fault", ["before", "after"])
def test_unknown_outcome_is_settled_by_asking_again(run, fault):
    async def scenario(rig):
        range_id = rig.ranges[0]
        vnode = rig.metadata.vnode_of_range(range_id)
        rig.metadata.commit_faults[vnode] = deque([fault] * 5)
        futures = await append_in_turns(rig, range_id, 4, producer_id=9, producer_epoch=0)
        await asyncio.wait(futures)
        assert [errors(future.result()) for future in futures] == [[NONE]] * 4
        assert [future.result()[0].base_offset for future in futures] == [0, 1, 2, 3]
        assert await rig.read_all(range_id) == [(n, b"%d" % n) for n in range(4)]
        assert rig.objects.calls["get_range"] == 0

    run(scenario, settings=EAGER)


def test_nothing_overtakes_an_object_of_unknown_outcome(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        vnode = rig.metadata.vnode_of_range(range_id)
        rig.metadata.commit_faults[vnode] = deque(["before"] * 12)  # more than ten seconds of asking
        first = rig.log.append([(range_id, rig.batch(["first"]))])
        await asyncio.sleep(0.5)
        second = rig.log.append([(range_id, rig.batch(["second"]))])
        await asyncio.sleep(3)
        assert not first.done()
        assert not second.done()
        assert (await first)[0].base_offset == 0
        assert (await second)[0].base_offset == 1

    run(scenario, settings=EAGER)


def test_failed_upload_fails_its_entries_everywhere_and_the_next_object_goes_on(run):
    async def scenario(rig):
        one, two = rig.ranges_on_different_vnodes()[:2]
        rig.objects.fail("put", *[Fault.BEFORE] * 100)
        failing = rig.log.append([(one, rig.batch(["a"])), (two, rig.batch(["b"]))])
        assert errors(await failing) == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
        rig.objects._scripts.clear()
        started = rig.clock.monotonic()
        results = await rig.append((one, rig.batch(["c"])), (two, rig.batch(["d"])))
        assert rig.clock.monotonic() - started < 1
        assert [result.base_offset for result in results] == [0, 0]
        assert rig.log.pending_bytes == 0
        assert all(len(objects) == 1 for _, objects in rig.metadata.commits)

    run(scenario)


def test_idempotent_producer_sees_the_gap_of_a_failed_upload_and_closes_it_by_retrying(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        rig.objects.fail("put", *[Fault.BEFORE] * 100)
        facts = {"producer_id": 9, "producer_epoch": 0}
        first = rig.log.append([(range_id, rig.batch(["0"], **facts, base_sequence=0))])
        await first
        rig.objects._scripts.clear()
        assert (await rig.append((range_id, rig.batch(["0"], **facts, base_sequence=0))))[0].error == NONE
        skipped = await rig.append((range_id, rig.batch(["2"], **facts, base_sequence=2)))
        assert skipped[0].error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for n in (1, 2):
            assert (await rig.append((range_id, rig.batch([f"{n}"], **facts, base_sequence=n))))[
                0
            ].error == NONE
        assert await rig.read_all(range_id) == [(0, b"0"), (1, b"1"), (2, b"2")]

    run(scenario)


def test_second_batch_of_a_new_producer_does_not_take_the_place_of_a_failed_first(run):
    """The coordinator has never heard of the producer, so it would accept any sequence."""

    async def scenario(rig):
        range_id, facts = rig.ranges[0], {"producer_id": 9, "producer_epoch": 0}
        keys = []

        async def before(op, key):
            if op == "put" and keys[:1] in ([], [key]):
                keys.append(key)
                raise Unavailable("the first object never gets through")

        rig.objects.before = before
        first, second, third = await append_in_turns(rig, range_id, 3, **facts)
        assert errors(await first) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert errors(await second) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert errors(await third) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        other = rig.batch(["x"], producer_id=10, producer_epoch=0, base_sequence=7)
        assert errors(await rig.append((range_id, other))) == [NONE]
        for n in range(3):
            batch = rig.batch([f"{n}"], **facts, base_sequence=n)
            assert errors(await rig.append((range_id, batch))) == [NONE]
        assert await rig.read_all(range_id) == [(0, b"x"), (1, b"0"), (2, b"1"), (3, b"2")]

    run(scenario, settings=EAGER)


def test_put_whose_answer_was_lost_is_taken_for_our_own(run):
    async def scenario(rig):
        rig.objects.fail("put", Fault.AFTER)
        results = await rig.append((rig.ranges[0], rig.batch(["a"])))
        assert errors(results) == [NONE]
        fresh = rig.open(rig.settings)
        assert await rig.read_all(rig.ranges[0], log=fresh) == [(0, b"a")]
        await fresh.close(drain=False)

    run(scenario)


def test_upload_that_never_ends_is_given_up_without_holding_the_queue(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        (gate,) = hold_uploads(rig, 1)
        stuck = rig.log.append([(range_id, rig.batch(["stuck"]))])
        await asyncio.sleep(1)
        behind = rig.log.append([(range_id, rig.batch(["behind"]))])
        assert errors(await stuck) == [ErrorCode.REQUEST_TIMED_OUT]
        assert (await behind)[0].base_offset == 0
        assert rig.log.pending_bytes > 0  # the upload still reads the bytes
        gate.set()
        await asyncio.sleep(1)
        assert rig.log.pending_bytes == 0
        assert await rig.read_all(range_id) == [(0, b"behind")]

    run(scenario, settings=EAGER)


def test_appends_that_find_no_upload_to_leave_with_are_answered_in_time_and_never_written(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        gates = hold_uploads(rig, 100)  # each attempt of an upload waits
        stuck = await append_in_turns(rig, range_id, 2)
        await asyncio.sleep(1)
        started = rig.clock.monotonic()
        waiting = await append_in_turns(rig, range_id, 3)
        await asyncio.sleep(20)
        late = rig.log.append([(range_id, rig.batch(["late"]))])
        assert errors(await waiting[2]) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert rig.clock.monotonic() - started < 31
        assert not late.done()
        assert [errors(future.result()) for future in stuck] == [[ErrorCode.REQUEST_TIMED_OUT]] * 2
        for gate in gates:
            gate.set()
        assert errors(await late) == [NONE]
        assert await rig.read_all(range_id) == [(0, b"late")]
        assert rig.log.pending_bytes == 0

    run(scenario, settings=EngineSettings(uploads_eager=2, uploads_max=2))


def test_duplicate_gets_its_first_offset_and_its_bytes_are_not_served_twice(run):
    async def scenario(rig):
        range_id = rig.ranges[0]
        batch = rig.batch(["a"], producer_id=9, producer_epoch=0, base_sequence=0)
        first, again = await rig.append((range_id, batch)), await rig.append((range_id, batch))
        assert (again[0].base_offset, again[0].is_duplicate) == (first[0].base_offset, True)
        assert await rig.read_all(range_id) == [(0, b"a")]
        other = rig.open(rig.settings)
        assert (await other.append([(range_id, batch)]))[0].is_duplicate
        assert other.cache.bytes_of(Pool.HOT) == 0
        await other.close(drain=True)

    run(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_order_and_completeness_survive_random_delays_and_lost_answers(run, seed):
    """Idempotent producers with five requests under way: nothing is lost, doubled or moved."""

    async def scenario(rig):
        random = Random(seed)

        async def before(op, _key):
            await asyncio.sleep(random.choice([0, 0, 0.01, 0.2, 2.0]))

        rig.objects.before = before
        commit = rig.metadata.commit

        async def faulty_commit(vnode, commits):
            await asyncio.sleep(random.choice([0, 0, 0.01, 0.3]))
            if random.random() < 0.2:
                rig.metadata.commit_faults[vnode] = deque([random.choice(["before", "after"])])
            return await commit(vnode, commits)

        rig.metadata.commit = faulty_commit

        async def producer(number):
            facts = {"producer_id": 100 + number, "producer_epoch": 0}
            range_id = rig.ranges[number * 7 % 16]
            pending: deque = deque()
            for n in range(30):
                batch = rig.batch([f"{number}-{n}"], **facts, base_sequence=n)
                pending.append(rig.log.append([(range_id, batch)]))
                await asyncio.sleep(random.choice([0, 0.005, 0.1]))
                if len(pending) == 5:
                    assert errors(await pending.popleft()) == [NONE]
            for future in pending:
                assert errors(await future) == [NONE]
            return range_id

        touched = await asyncio.gather(*(producer(number) for number in range(6)))
        found = [value.decode() for r in sorted(set(touched)) for _, value in await rig.read_all(r)]
        for number in range(6):
            mine = [value for value in found if value.startswith(f"{number}-")]
            assert mine == [f"{number}-{n}" for n in range(30)]

    run(scenario, settings=EAGER, seed=seed)
