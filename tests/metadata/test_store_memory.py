"""The memory store keeps the port's contract, and fails as its tests ask."""

import asyncio
import random

import pytest

from floe.metadata.store.memory import CommitFault, MemoryDisk, MemoryStore
from floe.model.errors import Fenced, Unavailable
from floe.model.ids import VnodeId
from floe.testing.contracts.store import StoreContract, terms_of
from floe.testing.sim_loop import SimLoop

V0, V1 = VnodeId(0), VnodeId(1)


class TestMemoryStore(StoreContract):
    def fresh(self, vnode_count):
        return MemoryStore(vnode_count)

    def crashed(self, store):
        return MemoryStore(disk=store.crash())


class TestSlowMemoryStore(StoreContract):
    def fresh(self, vnode_count):
        return MemoryStore(vnode_count, random=random.Random(1))

    def crashed(self, store):
        return MemoryStore(disk=store.crash(), random=random.Random(2))


async def test_vnodes_parts_become_durable_in_random_order():
    orders = set()
    for seed in range(20):
        store = MemoryStore(4, random=random.Random(seed))
        terms = await terms_of(store)
        done = []

        async def commit(vnode, store=store, terms=terms, done=done):
            await store.commit(vnode, terms[vnode], [(b"a", b"1")])
            done.append(vnode)

        await asyncio.gather(*(commit(vnode) for vnode in terms))
        orders.add(tuple(done))
    assert len(orders) > 10


def test_crash_between_parts_leaves_some_vnodes_without_theirs():
    """On virtual time, so that the crash comes in the middle however busy the machine is."""

    async def durable_after_crash(seed):
        store = MemoryStore(8, random=random.Random(seed))
        terms = await terms_of(store)
        calls = [asyncio.create_task(store.commit(v, terms[v], [(b"a", b"1")])) for v in terms]
        await asyncio.sleep(0.001)
        disk = store.crash()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        durable = [vnode for vnode in terms if disk.vnodes[vnode].get(b"a")]
        assert all(vnode in durable for vnode in terms if outcomes[vnode] is None)
        return len(durable)

    counts = set()
    for seed in range(20):
        loop = SimLoop(random.Random(seed))
        counts.add(loop.run(durable_after_crash(seed)))
        loop.close()
    assert len(counts) > 2


@pytest.mark.parametrize(
    ("fault", "error", "value"),
    [
        (CommitFault.LOST, Unavailable, None),
        (CommitFault.APPLIED, Unavailable, b"1"),
        (CommitFault.FENCED, Fenced, None),
    ],
)
async def test_failed_commit_costs_the_term_and_the_next_term_sees_the_outcome(fault, error, value):
    store = MemoryStore(2)
    terms = await terms_of(store)
    store.faults = lambda vnode, writes: fault if vnode == V0 else None
    with pytest.raises(error):
        await store.commit(V0, terms[V0], [(b"a", b"1")])
    with pytest.raises(Fenced):
        await store.get(V0, terms[V0], b"a")
    await store.commit(V1, terms[V1], [(b"a", b"1")])
    told = await anext(store.lead())
    assert told.vnode == V0
    assert told.term == terms[V0] + 1
    assert await store.get(V0, told.term, b"a") == value
    await store.close()


async def test_deposed_vnode_fences_the_commit_under_way():
    store = MemoryStore(2, random=random.Random(0))
    terms = await terms_of(store)
    call = asyncio.create_task(store.commit(V0, terms[V0], [(b"a", b"1")]))
    await asyncio.sleep(0)
    store.depose(V0)
    with pytest.raises(Fenced):
        await call
    assert store.disk.vnodes[V0].get(b"a") is None


async def test_next_incarnation_fences_the_one_before_it():
    disk = MemoryDisk(2)
    old = MemoryStore(disk=disk)
    terms = await terms_of(old)
    MemoryStore(disk=disk)
    with pytest.raises(Fenced):
        await old.commit(V0, terms[V0], [(b"a", b"1")])


async def test_feed_tells_only_the_newest_change_of_a_vnode():
    store = MemoryStore(2)
    for _ in range(5):
        store.depose(V0)
    terms = await terms_of(store)
    assert terms == {V0: 6, V1: 1}
