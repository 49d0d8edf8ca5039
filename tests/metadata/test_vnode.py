"""A vnode decides in order over what is not durable yet, and answers and publishes only what is."""

import asyncio
import random
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.metadata import vnode as vnode_module
from floe.metadata.store.local import LocalStore
from floe.metadata.store.memory import CommitFault, MemoryStore
from floe.metadata.vnode import Vnode
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import Term, VnodeId
from floe.storage.kv.memory import MemoryKeyValue

V0 = VnodeId(0)
HIGH = b"\xff" * 4


class GatedStore(MemoryStore):
    """A memory store whose commits wait at a gate and are counted."""

    def __init__(self, **options):
        super().__init__(1, **options)
        self.gate = asyncio.Event()
        self.gate.set()
        self.commits = []

    async def commit(self, vnode, term, writes):
        await self.gate.wait()
        self.commits.append(list(writes))
        await super().commit(vnode, term, writes)


@asynccontextmanager
async def leading(store):
    """A vnode that follows its store, as a router makes it do."""
    vnode = Vnode(store, V0)

    async def follow():
        async for told in store.lead():
            vnode.led(told.term)

    follower = asyncio.create_task(follow())
    await settled()
    yield vnode
    await store.close()
    await follower


async def settled(turns=10):
    for _ in range(turns):
        await asyncio.sleep(0)


async def put(vnode, key, value):
    async def body(tx):
        tx.put(key, value)
        return value

    return await vnode.run(body)


async def get(vnode, key):
    return await vnode.run(lambda tx: tx.get(key))


async def append(vnode, value, published=None):
    """Append to a list kept in one key: every transaction depends on the one before it."""

    async def body(tx):
        old = await tx.get(b"list") or b""
        tx.put(b"list", old + value)
        if published is not None:
            tx.when_durable(lambda: published.append(value))
        return len(old)

    return await vnode.run(body)


async def test_transaction_sees_what_is_decided_and_is_answered_when_it_is_durable():
    store = GatedStore()
    async with leading(store) as vnode:
        store.gate.clear()
        calls = [asyncio.create_task(append(vnode, b"x")) for _ in range(5)]
        reader = asyncio.create_task(get(vnode, b"list"))
        await settled()
        assert not any(call.done() for call in [*calls, reader])
        store.gate.set()
        assert await asyncio.gather(*calls) == [0, 1, 2, 3, 4]
        assert await reader == b"xxxxx"


async def test_durable_read_waits_only_for_a_commit_under_way_that_its_answer_depends_on():
    store = GatedStore()
    async with leading(store) as vnode:
        for key in (b"b", b"d", b"x", b"y"):
            await put(vnode, key, b"old")
        store.gate.clear()

        async def body(tx):
            tx.put(b"b", b"new")
            tx.put(b"c", b"new")
            tx.delete(b"d")

        commit = asyncio.create_task(vnode.run(body))
        await settled()
        gathering = asyncio.create_task(put(vnode, b"x", b"new"))
        await settled()
        assert await vnode.get_durable(b"x") == b"old"
        assert await vnode.get_durable(b"a") is None
        assert await vnode.scan_durable(b"e", b"z", 5) == [(b"x", b"old"), (b"y", b"old")]
        assert await vnode.scan_durable(b"x", b"z", 1) == [(b"x", b"old")]
        assert await vnode.scan_durable(b"a", b"b", 1) == []
        assert await vnode.floor_durable(b"z", b"a") == (b"y", b"old")
        waiting = [
            asyncio.create_task(call)
            for call in (
                vnode.get_durable(b"b"),
                vnode.get_durable(b"d"),
                vnode.scan_durable(b"a", b"z", 3),
                vnode.floor_durable(b"d", b"a"),
            )
        ]
        await settled()
        assert not any(task.done() for task in [commit, gathering, *waiting])
        store.gate.set()
        assert await asyncio.gather(*waiting) == [
            b"new",
            None,
            [(b"b", b"new"), (b"c", b"new"), (b"x", b"new")],
            (b"c", b"new"),
        ]
        await asyncio.gather(commit, gathering)


async def test_durable_read_that_ends_under_another_term_is_void():
    store = GatedStore()
    async with leading(store) as vnode:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def slow_get(vnode, term, key):
            entered.set()
            await leave.wait()

        store.get = slow_get
        call = asyncio.create_task(vnode.get_durable(b"a"))
        await entered.wait()
        store.depose(V0)
        await settled()
        leave.set()
        with pytest.raises(Unavailable):
            await call


@pytest.mark.parametrize("seed", range(10))
async def test_nothing_that_anybody_read_is_lost_in_a_crash(seed):
    """Readers look at a hot counter and its rows on a map that shows writes before they are synced."""
    rng = random.Random(seed)
    kv = MemoryKeyValue()
    store = LocalStore(kv, 1)
    seen = [0]
    async with leading(store) as vnode:

        async def write():
            for number in range(1, 1000):
                value = b"%04d" % number

                async def body(tx, value=value):
                    tx.put(b"n", value)
                    tx.put(b"row" + value, value)

                await vnode.run(body)

        async def read():
            while True:
                one = int(await vnode.get_durable(b"n") or 0)
                rows = await vnode.scan_durable(b"row", b"rox", 2000)
                last = await vnode.floor_durable(b"row9999", b"row")
                seen.append(max(one, len(rows), int(last[1]) if last else 0))
                await asyncio.sleep(rng.random() * 0.0005)

        tasks = [asyncio.create_task(work()) for work in (write, write, read, read)]
        last = rng.randint(1, 100)
        while max(seen) < last:
            await asyncio.sleep(0.0005)
        survivor = kv.crash(keep=0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    rows = survivor.scan(b"\x00\x00row", b"\x00\x00rox", 2000)
    assert len(rows) >= max(seen)


async def test_writes_that_gather_during_a_commit_share_the_next():
    store = GatedStore()
    async with leading(store) as vnode:
        store.gate.clear()
        first = asyncio.create_task(append(vnode, b"a"))
        await settled()
        rest = [asyncio.create_task(append(vnode, b"b")) for _ in range(10)]
        await settled()
        store.gate.set()
        await asyncio.gather(first, *rest)
        assert [dict(writes) for writes in store.commits] == [
            {b"list": b"a"},
            {b"list": b"a" + b"b" * 10},
        ]


async def test_reader_of_durable_state_is_answered_without_a_commit():
    store = GatedStore()
    async with leading(store) as vnode:
        await put(vnode, b"a", b"1")
        store.gate.clear()
        assert await get(vnode, b"a") == b"1"
        assert len(store.commits) == 1


async def test_publications_come_in_transaction_order_after_durability_and_before_answers():
    store = GatedStore()
    events = []
    async with leading(store) as vnode:

        async def body(tx, number):
            tx.when_decided(lambda: events.append(("decided", number)))
            tx.when_durable(lambda: events.append(("durable", number, store.disk.vnodes[0].get(b"k"))))
            if number != 1:  # The second transaction only reads.
                tx.put(b"k", b"%d" % number)

        async def call(number):
            await vnode.run(lambda tx: body(tx, number))
            events.append(("answered", number))

        await asyncio.gather(*(call(i) for i in range(3)))
    assert events == [
        *[("decided", i) for i in range(3)],
        *[("durable", i, b"2") for i in range(3)],
        *[("answered", i) for i in range(3)],
    ]


async def test_body_that_raises_leaves_no_trace():
    store = GatedStore()
    events = []
    async with leading(store) as vnode:

        async def body(tx):
            tx.put(b"a", b"1")
            tx.when_decided(lambda: events.append(1))
            tx.when_durable(lambda: events.append(2))
            raise Rejected(ErrorCode.INVALID_REQUEST, "no")

        with pytest.raises(Rejected):
            await vnode.run(body)
        assert await get(vnode, b"a") is None
    assert events == []
    assert store.commits == []


async def test_caller_that_gives_up_takes_nothing_with_it():
    store = GatedStore()
    async with leading(store) as vnode:
        store.gate.clear()
        given_up = asyncio.create_task(append(vnode, b"a"))
        other = asyncio.create_task(append(vnode, b"b"))
        await settled()
        given_up.cancel()
        store.gate.set()
        assert await other == 1
        assert await get(vnode, b"list") == b"ab"


@pytest.mark.parametrize("fault", list(CommitFault))
async def test_failed_commit_voids_every_answer_that_hung_on_it(fault):
    store = GatedStore()
    resets, published = [], []
    async with leading(store) as vnode:
        vnode.on_reset(lambda: resets.append(1))
        store.gate.clear()
        first = asyncio.create_task(append(vnode, b"a", published))
        await settled()
        second = asyncio.create_task(append(vnode, b"b", published))
        reader = asyncio.create_task(get(vnode, b"list"))
        await settled()
        store.faults = lambda vnode, writes: fault
        store.gate.set()
        for call in (first, second, reader):
            with pytest.raises(Unavailable):
                await call
        assert resets
        assert published == []
        store.faults = None
        await settled()
        assert await get(vnode, b"list") == (b"a" if fault is CommitFault.APPLIED else None)


async def test_vnode_without_a_term_refuses_work():
    store = GatedStore()
    async with leading(store) as vnode:
        vnode.led(None)
        with pytest.raises(Unavailable):
            await put(vnode, b"a", b"1")
        with pytest.raises(Unavailable):
            await vnode.get_durable(b"a")


async def test_read_that_the_store_fences_ends_the_term():
    store = GatedStore()
    resets = []
    async with leading(store) as vnode:
        vnode.on_reset(lambda: resets.append(1))
        store.disk.terms[0] += 1  # Another broker leads; nobody has told this one yet.
        with pytest.raises(Unavailable):
            await vnode.get_durable(b"a")
        assert vnode.term is None
        assert resets
        with pytest.raises(Unavailable):
            await get(vnode, b"a")
        store.depose(V0)
        await settled()
        assert await get(vnode, b"a") is None


async def test_new_term_during_a_commit_is_kept_when_that_commit_fails():
    store = GatedStore()
    async with leading(store) as vnode:
        store.gate.clear()
        old = asyncio.create_task(put(vnode, b"a", b"old"))
        await settled()
        store.depose(V0)
        await settled()
        new = asyncio.create_task(put(vnode, b"a", b"new"))
        await settled()
        store.gate.set()
        with pytest.raises(Unavailable):
            await old
        assert await new == b"new"
        assert await get(vnode, b"a") == b"new"


@pytest.mark.parametrize("is_failing", [False, True])
async def test_body_running_while_leadership_changes_has_no_effect_and_its_caches_are_forgotten(is_failing):
    store = GatedStore()
    cache = {}
    async with leading(store) as vnode:
        vnode.on_reset(cache.clear)
        entered, leave = asyncio.Event(), asyncio.Event()

        async def body(tx):
            tx.put(b"a", b"1")
            entered.set()
            await leave.wait()
            cache[b"a"] = b"stale"
            assert not is_failing

        call = asyncio.create_task(vnode.run(body))
        await entered.wait()
        store.depose(V0)
        await settled()
        leave.set()
        with pytest.raises(Unavailable):
            await call
        assert cache == {}
        assert await get(vnode, b"a") is None


async def test_cancelled_body_during_a_change_of_leadership_is_forgotten_too():
    store = GatedStore()
    cache = {}
    async with leading(store) as vnode:
        vnode.on_reset(cache.clear)

        async def body(tx):
            try:
                await asyncio.Event().wait()
            finally:
                cache[b"a"] = b"stale"

        call = asyncio.create_task(vnode.run(body))
        await settled()
        store.depose(V0)
        await settled()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        assert cache == {}


async def test_store_with_a_bug_fails_its_callers_instead_of_hanging_them(caplog):
    store = GatedStore()
    async with leading(store) as vnode:

        def explode(vnode, writes):
            raise ZeroDivisionError

        store.faults = explode
        with pytest.raises(Unavailable):
            await put(vnode, b"a", b"1")
        store.faults = None
        store.depose(V0)
        await settled()
        assert await put(vnode, b"a", b"1") == b"1"
    assert "unexpected error" in caplog.text


async def test_publication_with_a_bug_does_not_keep_others_from_theirs(caplog):
    published = []
    async with leading(GatedStore()) as vnode:

        async def body(tx):
            tx.put(b"a", b"1")
            tx.when_durable(lambda: 1 // 0)
            tx.when_durable(lambda: published.append(1))

        await vnode.run(body)
    assert published == [1]
    assert "publication" in caplog.text


async def test_decided_action_with_a_bug_rejects_the_transaction_and_resets():
    resets = []
    async with leading(GatedStore()) as vnode:
        vnode.on_reset(lambda: resets.append(1))

        async def body(tx):
            tx.put(b"a", b"1")
            tx.when_decided(lambda: 1 // 0)

        with pytest.raises(ZeroDivisionError):
            await vnode.run(body)
        assert resets == [1]
        assert await get(vnode, b"a") is None


async def test_overlay_is_bounded_and_full_groups_are_committed_apart(monkeypatch):
    monkeypatch.setattr(vnode_module, "GROUP_WRITES_MAX", 3)
    store = GatedStore()
    async with leading(store) as vnode:
        store.gate.clear()
        calls = [asyncio.create_task(put(vnode, b"%02d" % i, b"")) for i in range(40)]
        await settled(100)
        assert len(vnode._groups) == vnode_module.GROUPS_MAX
        store.gate.set()
        await asyncio.gather(*calls)
        assert max(len(writes) for writes in store.commits) == 3
        assert len(store.disk.vnodes[0].scan(b"", HIGH, 100)) == 40


async def test_close_waits_for_what_is_decided_and_refuses_the_rest():
    store = GatedStore(random=random.Random(0))
    async with leading(store) as vnode:
        calls = [asyncio.create_task(append(vnode, b"x")) for _ in range(3)]
        await settled()
        await vnode.close()
        await asyncio.gather(*calls)
        with pytest.raises(Unavailable):
            await append(vnode, b"y")


KEYS = st.binary(min_size=1, max_size=3).map(lambda raw: bytes(b"\x00ab\xff"[byte % 4] for byte in raw))
OPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.binary(max_size=1)),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("scan"), KEYS, KEYS, st.integers(1, 4)),
    st.tuples(st.just("floor"), KEYS, KEYS),
)


async def apply(tx, op):
    match op:
        case ("put", key, value):
            tx.put(key, value)
        case ("delete", key):
            tx.delete(key)
        case ("get", key):
            return await tx.get(key)
        case ("scan", start, end, limit):
            return await tx.scan(start, end, limit)
        case ("floor", key, low):
            return await tx.floor(key, low)
    return None


def expect(model, op):
    match op:
        case ("put", key, value):
            model[key] = value
        case ("delete", key):
            model.pop(key, None)
        case ("get", key):
            return model.get(key)
        case ("scan", start, end, limit):
            return [(key, model[key]) for key in sorted(model) if start <= key < end][:limit]
        case ("floor", key, low):
            found = max((each for each in model if low <= each <= key), default=None)
            return None if found is None else (found, model[found])
    return None


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.lists(OPS, min_size=1, max_size=6), st.booleans()), max_size=12))
def test_transactions_read_as_if_every_earlier_one_were_stored(program):
    """Each transaction may open the gate before it runs, so overlays of every shape come about."""

    async def main():
        store, model = GatedStore(), {}
        async with leading(store) as vnode:
            calls = []
            for ops, is_flushed in program:
                store.gate.clear()
                seen = []

                async def body(tx, ops=ops, seen=seen):
                    for op in ops:
                        seen.append(await apply(tx, op))

                calls.append(asyncio.create_task(vnode.run(body)))
                await settled(4)
                assert seen == [expect(model, op) for op in ops]
                if is_flushed:
                    store.gate.set()
                    await settled(6)
            store.gate.set()
            await asyncio.gather(*calls)
            assert dict(store.disk.vnodes[0].scan(b"", HIGH, 1000)) == model

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(30))
async def test_with_failing_commits_everything_answered_is_stored_once_and_in_order(seed):
    rng = random.Random(seed)
    store = MemoryStore(1, random=random.Random(seed), delay_seconds_max=0.0002)
    store.faults = lambda vnode, writes: rng.choice(list(CommitFault)) if rng.random() < 0.2 else None
    answered, published = {}, []
    async with leading(store) as vnode:

        async def client(name):
            for number in range(20):
                value = b"%c%02d." % (name, number)
                try:
                    position = await append(vnode, value, published)
                except Unavailable:
                    await asyncio.sleep(0.0001)
                else:
                    answered[value] = position

        await asyncio.gather(*(client(ord("a") + i) for i in range(8)))
        stored = store.disk.vnodes[0].get(b"list") or b""
    for value, position in answered.items():
        assert stored[position : position + 4] == value
        assert stored.count(value) == 1
        assert value in published
    positions = [stored.find(value) for value in published]
    assert positions == sorted(positions)
    assert -1 not in positions
    assert answered


async def test_terms_are_the_only_thing_a_vnode_needs_to_go_on():
    store = MemoryStore(1)
    vnode = Vnode(store, V0)
    assert vnode.term is None
    vnode.led(Term(1))
    await put(vnode, b"a", b"1")
    store = MemoryStore(disk=store.crash())
    vnode = Vnode(store, V0)
    vnode.led(Term(2))
    assert await get(vnode, b"a") == b"1"
