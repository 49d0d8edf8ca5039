"""The local store keeps the port's contract on both maps, shares one sync and survives a failing disk."""

import asyncio
import random
import shutil
import threading

import pytest

from floe.metadata.store.local import LocalStore
from floe.model.errors import Fenced, Rejected, Unavailable
from floe.model.ids import VnodeId
from floe.observability.metrics import Metrics
from floe.storage.kv.memory import MemoryKeyValue
from floe.storage.kv.rocks import RocksKeyValue
from floe.testing.contracts.store import StoreContract, terms_of

V0, V1 = VnodeId(0), VnodeId(1)


class SlowKeyValue(MemoryKeyValue):
    """A map whose sync takes time, counts, waits for a gate, and fails on demand."""

    def __init__(self):
        super().__init__()
        self.syncs = 0
        self.gate = threading.Event()
        self.gate.set()
        self.failure = None

    def sync(self):
        self.gate.wait(10)
        self.syncs += 1
        if self.failure:
            raise self.failure
        super().sync()


class TestLocalStoreOnMemory(StoreContract):
    def fresh(self, vnode_count):
        return LocalStore(MemoryKeyValue(), vnode_count)

    def crashed(self, store):
        kv = store._kv
        keep = random.Random(kv.unsynced_writes).randint(0, kv.unsynced_writes)
        return LocalStore(kv.crash(keep), store.vnode_count)


class TestLocalStoreOnRocks(StoreContract):
    """A crash is a copy of the database folder while it is in use: what a killed process leaves behind."""

    @pytest.fixture(autouse=True)
    async def _folder(self, tmp_path):
        self.path = tmp_path / "0"
        self.left_behind = []
        yield
        for store in self.left_behind:
            await store.close()

    def fresh(self, vnode_count):
        return LocalStore(RocksKeyValue(self.path), vnode_count)

    def crashed(self, store):
        self.left_behind.append(store)
        copy = self.path.with_name(str(len(self.left_behind)))
        shutil.copytree(self.path, copy)
        self.path = copy
        return LocalStore(RocksKeyValue(copy), store.vnode_count)


async def test_commits_of_all_vnodes_in_one_turn_share_one_sync():
    kv, metrics = SlowKeyValue(), Metrics()
    store = LocalStore(kv, 16, metrics=metrics)
    terms = await terms_of(store)
    before = kv.syncs
    await asyncio.gather(*(store.commit(v, terms[v], [(b"a", b"1")]) for v in terms))
    assert kv.syncs == before + 1
    assert metrics.registry.get_sample_value("floe_group_commit_writes_count_sum") == 16
    await store.close()


async def test_commits_that_arrive_during_a_sync_share_the_next():
    kv = SlowKeyValue()
    store = LocalStore(kv, 16)
    terms = await terms_of(store)
    before = kv.syncs
    kv.gate.clear()
    first = asyncio.create_task(store.commit(V0, terms[V0], [(b"a", b"1")]))
    await asyncio.sleep(0.01)
    rest = [asyncio.create_task(store.commit(v, terms[v], [(b"b", b"1")])) for v in terms]
    await asyncio.sleep(0.01)
    assert not first.done()
    kv.gate.set()
    await asyncio.gather(first, *rest)
    assert kv.syncs == before + 2
    await store.close()


async def test_failed_sync_fences_the_store_for_good_and_says_why():
    kv = SlowKeyValue()
    store = LocalStore(kv, 2)
    terms = await terms_of(store)
    kv.gate.clear()
    kv.failure = Unavailable("disk on fire")
    commit = asyncio.create_task(store.commit(V0, terms[V0], [(b"a", b"1")]))
    await asyncio.sleep(0.01)
    late = asyncio.create_task(store.commit(V1, terms[V1], [(b"a", b"1")]))
    await asyncio.sleep(0.01)
    kv.gate.set()
    for task in (commit, late):
        with pytest.raises(Unavailable, match="disk on fire"):
            await task
    with pytest.raises(Fenced):
        await store.get(V1, terms[V1], b"a")
    assert [told.term for told in [told async for told in store.lead()]] == [None, None]
    await store.close()


async def test_failed_write_fences_the_store():
    kv = SlowKeyValue()
    store = LocalStore(kv, 2)
    terms = await terms_of(store)
    kv.close()
    with pytest.raises(Unavailable):
        await store.commit(V0, terms[V0], [(b"a", b"1")])
    with pytest.raises(Fenced):
        await store.commit(V1, terms[V1], [(b"a", b"1")])


async def test_close_waits_for_the_commits_under_way():
    kv = SlowKeyValue()
    store = LocalStore(kv, 2)
    terms = await terms_of(store)
    commits = [asyncio.create_task(store.commit(v, terms[v], [(b"a", b"1")])) for v in terms]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*commits)


async def test_store_refuses_another_number_of_vnodes_than_it_was_born_with():
    kv = MemoryKeyValue()
    LocalStore(kv, 16)
    with pytest.raises(Rejected, match="16 vnodes"):
        LocalStore(kv, 8)
