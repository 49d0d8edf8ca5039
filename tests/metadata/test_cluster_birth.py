"""A cluster is born once; metadata and objects that do not belong together never work together."""

import json
from random import Random

import pytest

from floe.metadata.cluster_birth import OBJECT_KEY, ClusterBirth
from floe.metadata.store.memory import CommitFault, MemoryStore
from floe.metadata.vnode import Vnode
from floe.model.errors import Corrupt, Rejected, Unavailable
from floe.model.ids import Term, VnodeId
from floe.observability.clock import SystemClock
from floe.storage.objects.memory import MemoryObjects


def birth(disk, objects, seed=1, vnode_count=2):
    store = MemoryStore(disk=disk)
    vnode = Vnode(store, VnodeId(0))
    vnode.led(Term(store.disk.terms[0]))
    joining = ClusterBirth(vnode, objects, clock=SystemClock(), random=Random(seed), vnode_count=vnode_count)
    return joining, store


def new_disk():
    return MemoryStore(2).disk


async def test_cluster_is_born_once_and_found_again():
    disk, objects = new_disk(), MemoryObjects()
    first = await birth(disk, objects)[0].join()
    again = await birth(disk, objects, seed=2)[0].join()
    assert again == first
    assert len(first.cluster_id) == 22
    stored = json.loads(await objects.get(OBJECT_KEY))
    assert stored["cluster_id"] == first.cluster_id
    assert stored["vnode_count"] == 2
    assert stored["version"] == 1
    assert stored["created_ms"] == first.created_ms > 0


@pytest.mark.parametrize("at", range(2))
@pytest.mark.parametrize("fault", list(CommitFault))
async def test_crash_at_any_commit_is_made_good_by_the_next_start(at, fault):
    disk, objects = new_disk(), MemoryObjects()
    joining, store = birth(disk, objects)
    counted = iter(range(10))
    store.faults = lambda vnode, writes: fault if next(counted) == at else None
    with pytest.raises(Unavailable):
        await joining.join()
    put = await objects.get(OBJECT_KEY) if at == 1 else None
    identity = await birth(disk, objects, seed=2)[0].join()
    assert put is None or json.loads(put)["cluster_id"] == identity.cluster_id
    assert json.loads(await objects.get(OBJECT_KEY))["cluster_id"] == identity.cluster_id
    assert await birth(disk, objects, seed=3)[0].join() == identity


async def test_unknown_outcome_of_the_put_is_made_good_by_the_next_start():
    class Ambiguous(MemoryObjects):
        async def put(self, key, body):
            await super().put(key, body)
            raise Unavailable("no answer")

    disk, objects = new_disk(), Ambiguous()
    with pytest.raises(Unavailable):
        await birth(disk, objects)[0].join()
    identity = await birth(disk, objects, seed=2)[0].join()
    assert json.loads(await objects.get(OBJECT_KEY))["cluster_id"] == identity.cluster_id


async def test_new_metadata_does_not_take_over_another_clusters_objects():
    objects = MemoryObjects()
    other = await birth(new_disk(), objects)[0].join()
    with pytest.raises(Rejected, match=f"belongs to cluster {other.cluster_id}, whose metadata is not here"):
        await birth(new_disk(), objects, seed=2)[0].join()


async def test_metadata_of_one_cluster_and_objects_of_another_are_refused():
    disk, objects, others = new_disk(), MemoryObjects(), MemoryObjects()
    own = await birth(disk, objects)[0].join()
    other = await birth(new_disk(), others, seed=2)[0].join()
    with pytest.raises(Rejected, match="wrong bucket or prefix") as caught:
        await birth(disk, others, seed=3)[0].join()
    assert own.cluster_id in caught.value.message
    assert other.cluster_id in caught.value.message


async def test_empty_store_in_place_of_the_clusters_own_is_refused():
    disk = new_disk()
    await birth(disk, MemoryObjects())[0].join()
    empty = MemoryObjects()
    with pytest.raises(Rejected, match=r"has no cluster\.json"):
        await birth(disk, empty)[0].join()
    assert [each async for each in empty.list("")] == []


async def test_rival_birth_in_the_same_store_is_refused():
    """Another broker, with metadata of its own, puts its identity between our look and our put."""
    rival = MemoryObjects()

    class Overtaken(MemoryObjects):
        async def put(self, key, body):
            await super().put(key, [await rival.get(OBJECT_KEY)])
            await super().put(key, body)

    await birth(new_disk(), rival, seed=9)[0].join()
    with pytest.raises(Rejected, match="wrong bucket or prefix"):
        await birth(new_disk(), Overtaken())[0].join()


async def test_newer_format_and_other_vnode_count_are_refused():
    disk, objects = new_disk(), MemoryObjects()
    identity = await birth(disk, objects)[0].join()
    with pytest.raises(Rejected, match="2 vnodes"):
        await birth(disk, objects, vnode_count=4)[0].join()
    facts = {"cluster_id": identity.cluster_id, "version": 7, "vnode_count": 2, "new field": 1}
    newer = MemoryObjects()
    await newer.put(OBJECT_KEY, [json.dumps(facts).encode()])
    with pytest.raises(Rejected, match="format 7"):
        await birth(disk, newer)[0].join()


@pytest.mark.parametrize("content", [b"", b"not json", b"[]", b'{"cluster_id": 5}'])
async def test_unreadable_identity_is_reported_as_corrupt(content):
    objects = MemoryObjects()
    await objects.put(OBJECT_KEY, [content])
    with pytest.raises(Corrupt):
        await birth(new_disk(), objects)[0].join()
