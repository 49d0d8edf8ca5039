"""Counters never give a value twice, whatever crashes or fails."""

import asyncio
import random

from floe.metadata.coordinators.counters import FIRST_PRODUCER_ID, Counter, Counters
from floe.metadata.store.memory import CommitFault, MemoryStore
from floe.metadata.vnode import Vnode
from floe.model.errors import Unavailable
from floe.model.ids import Term, VnodeId


def vnode_on(store):
    vnode = Vnode(store, VnodeId(0))
    vnode.led(Term(store.disk.terms[0]))
    return vnode


async def test_values_come_from_memory_once_a_block_is_durable():
    store = MemoryStore(1)
    counters = Counters(vnode_on(store))
    commits = []
    store.faults = lambda vnode, writes: commits.append(writes)
    ids = [await counters.take_producer_id() for _ in range(1000)]
    assert ids == list(range(FIRST_PRODUCER_ID, FIRST_PRODUCER_ID + 1000))
    assert len(commits) == 1
    assert await counters.take_producer_id() == FIRST_PRODUCER_ID + 1000
    assert len(commits) == 2


async def test_runs_are_consecutive_and_may_be_larger_than_a_block():
    counter = Counter(vnode_on(MemoryStore(1)), "n", first=5, block=10)
    assert await counter.take(4) == 5
    assert await counter.take(25) == 15
    assert await counter.take(5) == 40
    assert await counter.take(1) == 45


async def test_counters_do_not_share_values():
    counters = Counters(vnode_on(MemoryStore(1)))
    assert list(await counters.take_range_ids(3)) == [8, 9, 10]
    assert await counters.take_producer_id() == FIRST_PRODUCER_ID


async def test_nothing_is_given_twice_across_crashes_failures_and_callers():
    given, rng = [], random.Random(7)
    disk = None
    for _ in range(20):
        store = MemoryStore(1, disk=disk)
        vnode = vnode_on(store)
        counter = Counter(vnode, "n", first=0, block=4)
        store.faults = lambda vnode, writes: rng.choice([None, *CommitFault])

        async def client(store=store, vnode=vnode, counter=counter):
            for _ in range(5):
                count = rng.randint(1, 6)
                try:
                    first = await counter.take(count)
                    given.extend(range(first, first + count))
                except Unavailable:
                    vnode.led(Term(store.disk.terms[0]))

        await asyncio.gather(*(client() for _ in range(3)))
        disk = store.crash()
    assert len(given) > 100
    assert len(set(given)) == len(given)
