"""What every adapter of the metadata store port must do; a test class of each adapter inherits this suite.

An adapter's class says how to open a fresh store and how to crash one: `crashed` loses what was not durable
and returns the next incarnation on what was.
"""

import asyncio
import random

import pytest

from floe.metadata.store.port import Store
from floe.model.errors import Fenced, FloeError
from floe.model.ids import Term, VnodeId

V0, V1, V2 = VnodeId(0), VnodeId(1), VnodeId(2)
VNODES = 4
HIGH = b"\xff" * 8  # above every key of these tests


async def terms_of(store: Store) -> dict[VnodeId, Term]:
    """The term of every vnode, once the store leads them all."""
    terms: dict[VnodeId, Term] = {}
    async for leadership in store.lead():
        assert leadership.term is not None
        terms[leadership.vnode] = leadership.term
        if len(terms) == store.vnode_count:
            break
    return terms


class StoreContract:
    """The suite. Tests open stores through `opened` only, and close them."""

    def fresh(self, vnode_count: int) -> Store:
        raise NotImplementedError

    def crashed(self, store: Store) -> Store:
        raise NotImplementedError

    async def opened(self) -> tuple[Store, dict[VnodeId, Term]]:
        store = self.fresh(VNODES)
        return store, await terms_of(store)

    async def test_leads_every_vnode_from_the_start(self) -> None:
        store, terms = await self.opened()
        assert sorted(terms) == list(range(VNODES))
        await store.close()

    async def test_committed_pairs_are_read_back_and_deleted_ones_are_gone(self) -> None:
        store, terms = await self.opened()
        await store.commit(V0, terms[V0], [(b"a", b"1"), (b"b", b""), (b"c", b"3")])
        await store.commit(V0, terms[V0], [(b"a", None), (b"missing", None)])
        assert await store.get(V0, terms[V0], b"a") is None
        assert await store.get(V0, terms[V0], b"b") == b""
        assert await store.scan(V0, terms[V0], b"", HIGH, 10) == [(b"b", b""), (b"c", b"3")]
        await store.close()

    async def test_later_write_of_a_key_in_one_commit_wins(self) -> None:
        store, terms = await self.opened()
        await store.commit(V0, terms[V0], [(b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"b", None)])
        assert await store.scan(V0, terms[V0], b"", HIGH, 10) == [(b"a", b"2")]
        await store.close()

    async def test_scan_keeps_order_bounds_and_limit(self) -> None:
        store, terms = await self.opened()
        keys = [b"\x00", b"a", b"a\x00", b"aa", b"b", b"\xfe", b"\xff"]
        await store.commit(V1, terms[V1], [(key, key) for key in reversed(keys)])
        assert [k for k, _ in await store.scan(V1, terms[V1], b"", HIGH, 10)] == keys
        assert [k for k, _ in await store.scan(V1, terms[V1], b"a", b"b", 10)] == [b"a", b"a\x00", b"aa"]
        assert [k for k, _ in await store.scan(V1, terms[V1], b"a", b"b", 2)] == [b"a", b"a\x00"]
        assert await store.scan(V1, terms[V1], b"a", b"a", 10) == []
        assert await store.scan(V1, terms[V1], b"b", b"a", 10) == []
        assert await store.scan(V1, terms[V1], b"a", b"b", 0) == []
        await store.close()

    async def test_floor_finds_the_greatest_key_at_or_below(self) -> None:
        store, terms = await self.opened()
        await store.commit(V1, terms[V1], [(b"b", b"1"), (b"d", b"2")])
        assert await store.floor(V1, terms[V1], b"c", b"") == (b"b", b"1")
        assert await store.floor(V1, terms[V1], b"d", b"") == (b"d", b"2")
        assert await store.floor(V1, terms[V1], HIGH, b"d") == (b"d", b"2")
        assert await store.floor(V1, terms[V1], b"c", b"c") is None
        assert await store.floor(V1, terms[V1], b"a", b"") is None
        assert await store.floor(V1, terms[V1], b"a", b"b") is None
        await store.close()

    async def test_vnodes_do_not_see_each_other(self) -> None:
        store, terms = await self.opened()
        await store.commit(V0, terms[V0], [(b"k", b"0")])
        await store.commit(V2, terms[V2], [(b"k", b"2")])
        assert await store.get(V1, terms[V1], b"k") is None
        assert await store.scan(V1, terms[V1], b"", HIGH, 10) == []
        assert await store.floor(V1, terms[V1], HIGH, b"") is None
        assert await store.scan(V0, terms[V0], b"", HIGH, 10) == [(b"k", b"0")]
        assert await store.floor(V2, terms[V2], HIGH, b"") == (b"k", b"2")
        await store.close()

    async def test_call_with_a_term_that_is_not_the_vnodes_own_is_fenced(self) -> None:
        store, terms = await self.opened()
        wrong = Term(terms[V0] + 1)
        for call in (
            store.commit(V0, wrong, [(b"a", b"1")]),
            store.get(V0, wrong, b"a"),
            store.scan(V0, wrong, b"", HIGH, 1),
            store.floor(V0, wrong, b"a", b""),
        ):
            with pytest.raises(Fenced):
                await call
        assert await store.get(V0, terms[V0], b"a") is None
        await store.close()

    async def test_vnode_that_does_not_exist_is_refused(self) -> None:
        store, terms = await self.opened()
        with pytest.raises(FloeError):
            await store.commit(VnodeId(VNODES), terms[V0], [(b"a", b"1")])
        with pytest.raises(FloeError):
            await store.get(VnodeId(-1), terms[V0], b"a")
        await store.close()

    async def test_terms_rise_at_each_opening_and_old_ones_are_fenced(self) -> None:
        store, old = await self.opened()
        await store.commit(V0, old[V0], [(b"a", b"1")])
        store = self.crashed(store)
        new = await terms_of(store)
        assert all(new[vnode] > old[vnode] for vnode in old)
        with pytest.raises(Fenced):
            await store.commit(V0, old[V0], [(b"a", b"2")])
        assert await store.get(V0, new[V0], b"a") == b"1"
        await store.close()

    async def test_commits_of_one_vnode_become_durable_in_call_order(self) -> None:
        store, terms = await self.opened()
        calls = [store.commit(V0, terms[V0], [(b"a", b"%d" % i), (b"%03d" % i, b"")]) for i in range(20)]
        await asyncio.gather(*calls)
        assert await store.get(V0, terms[V0], b"a") == b"19"
        assert len(await store.scan(V0, terms[V0], b"0", b"1", 100)) == 20
        await store.close()

    async def test_cancelled_commit_does_not_hurt_its_neighbours(self) -> None:
        store, terms = await self.opened()
        first = asyncio.ensure_future(store.commit(V0, terms[V0], [(b"a", b"1")]))
        second = asyncio.ensure_future(store.commit(V1, terms[V1], [(b"b", b"1")]))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert await store.get(V1, terms[V1], b"b") == b"1"
        await store.commit(V0, terms[V0], [(b"c", b"1")])
        await store.close()

    async def test_closed_store_refuses_calls_and_ends_its_feed(self) -> None:
        store = self.fresh(VNODES)
        await store.close()
        told = [leadership async for leadership in store.lead()]
        assert {leadership.vnode for leadership in told} == set(range(VNODES))
        with pytest.raises(FloeError):
            await store.commit(V0, Term(1), [(b"a", b"1")])
        with pytest.raises(FloeError):
            await store.get(V0, Term(1), b"a")

    @pytest.mark.parametrize("seed", range(5))
    async def test_crash_keeps_a_prefix_of_each_vnode_with_all_that_was_answered(self, seed: int) -> None:
        """Writers number their commits, readers look on; then the machine stops."""
        rng = random.Random(seed)  # noqa: S311 - not for secrets
        store, terms = await self.opened()
        answered = dict.fromkeys(terms, 0)

        async def write(vnode: VnodeId) -> None:
            for number in range(1, 1000):
                value = b"%04d" % number
                await store.commit(vnode, terms[vnode], [(b"n", value), (b"row" + value, value)])
                answered[vnode] = number

        async def read(vnode: VnodeId) -> None:
            while True:
                before = answered[vnode]
                one = int(await store.get(vnode, terms[vnode], b"n") or 0)
                rows = await store.scan(vnode, terms[vnode], b"row", b"rox", 2000)
                last = await store.floor(vnode, terms[vnode], b"row9999", b"row")
                assert before <= one <= len(rows) <= (int(last[1]) if last else 0) <= answered[vnode] + 1
                await asyncio.sleep(rng.random() * 0.001)

        tasks = [asyncio.create_task(work(vnode)) for vnode in terms for work in (write, read)]
        last = rng.randint(1, 150)  # However slow the disk, the machine stops after so many answers.
        while sum(answered.values()) < last:  # noqa: ASYNC110 - many tasks raise it
            await asyncio.sleep(0.001)
        store = self.crashed(store)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [outcome for outcome in outcomes if isinstance(outcome, AssertionError)]
        terms = await terms_of(store)
        for vnode in terms:
            rows = await store.scan(vnode, terms[vnode], b"row", b"rox", 2000)
            count = int(await store.get(vnode, terms[vnode], b"n") or 0)
            assert [int(value) for _, value in rows] == list(range(1, count + 1))
            assert count >= answered[vnode]
        await store.close()
