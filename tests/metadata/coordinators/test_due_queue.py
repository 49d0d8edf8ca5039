"""A queue by time gives what is due in order, whatever its hint in memory has been through."""

import asyncio
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from floe.metadata.coordinators.due_queue import DueQueue
from floe.metadata.keys import u64
from floe.testing.shard import Shard

PREFIX = b"zq"

steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 50)),
        st.tuples(st.just("take"), st.integers(0, 60)),
        st.tuples(st.just("look"), st.integers(0, 60)),
        st.tuples(st.just("fail"), st.integers(0, 50)),
        st.tuples(st.just("crash"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(steps, st.integers(1, 4))
def test_queue_agrees_with_a_sorted_list(steps, limit):
    async def check():
        shard = Shard()
        queue = DueQueue(shard.vnode, PREFIX)
        expected: set[bytes] = set()

        async def put(key, tx):
            queue.put(tx, key)

        async def fail(now, tx):
            for key in await queue.due(tx, now, limit):
                tx.delete(key)
            queue.put(tx, PREFIX + u64(0))
            raise ValueError

        async def take(now, tx):
            due = await queue.due(tx, now, limit)
            for key in due:
                tx.delete(key)
            return due

        for i, (what, value) in enumerate(steps):
            key = PREFIX + u64(value) + u64(i)
            due = sorted(k for k in expected if k < PREFIX + u64(value + 1))[:limit]
            if what == "put":
                await shard.vnode.run(lambda tx, key=key: put(key, tx))
                expected.add(key)
            elif what == "take":
                assert await shard.vnode.run(lambda tx, now=value: take(now, tx)) == due
                expected -= set(due)
            elif what == "look":
                assert await shard.vnode.run(lambda tx, q=queue, now=value: q.due(tx, now, limit)) == due
            elif what == "fail":
                with suppress(ValueError):
                    await shard.vnode.run(lambda tx, now=value: fail(now, tx))
            else:
                shard.crash()
                queue = DueQueue(shard.vnode, PREFIX)

    asyncio.run(check())
