"""Everything works when nothing stays in memory: caches are never the truth."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from floe.testing.shard import Shard, sequenced


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40))
def test_results_do_not_depend_on_what_is_cached(appends):
    async def run(capacity: int):
        shard = Shard()
        for cache in (shard.ranges._ranges._decided, shard.ranges._ranges._views):
            cache._capacity = capacity
        shard.ranges._producers._decided._capacity = capacity
        await shard.create(*range(5))
        sent: dict[tuple[int, int], int] = {}
        results = []
        for range_id, producer in appends:
            sequence = sent.get((range_id, producer), 0)
            sent[range_id, producer] = sequence + 1
            results += await shard.put(
                sequenced(range_id, sequence, producer=producer), sequenced((range_id + 1) % 5, 0, producer=9)
            )
        views = [await shard.find(range_id, 0) for range_id in range(5)]
        assert len(shard.ranges._ranges._decided) <= capacity
        return results, views

    assert asyncio.run(run(1)) == asyncio.run(run(1000))
