"""When what lies behind the door fails: codes that clients know, and no other connection harmed."""

import asyncio

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.errors import Unavailable
from floe.storage.objects.memory import MemoryObjects
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    CreatableTopic,
    CreateTopicsRequest,
    InitProducerIdRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
)

RETRIABLE = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
}


@pytest.fixture
async def fenced(open_house):
    """A broker whose metadata store failed: it leads no vnode any more."""
    house = await open_house(produce_timeout_ms=300)
    wire = await house.connect()
    await wire.create("t")
    await wire.produce("t", [b"a"])
    await house.store.close()
    while house.broker.metadata.is_leading:
        await asyncio.sleep(0.001)
    return house, wire


async def test_lost_metadata_is_told_with_codes_that_clients_retry(fenced):
    house, wire = fenced
    assert (await wire.produce("t", [b"b"])).error_code in RETRIABLE
    assert (await wire.fetch("t", 0, max_wait_ms=0)).error_code in RETRIABLE
    for timestamp in (-1, -3, 5):
        parts = [ListOffsetsPartition(0, -1, timestamp)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic("t", parts)])
        answer = await wire.call(ApiKey.LIST_OFFSETS, 7, request)
        assert answer.topics[0].partitions[0].error_code in RETRIABLE
    answer = await wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("u", 1, 1)]))
    assert answer.topics[0].error_code in RETRIABLE
    answer = await wire.describe("v", create=True)
    assert answer.topics[0].error_code in RETRIABLE | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert house.broker.unready_reason is not None
    assert house.broker.unhealthy_reason is not None


async def test_producer_id_that_cannot_be_had_is_told(fenced):
    _, wire = fenced
    codes = set()
    for _ in range(3):
        answer = await wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000))
        codes.add(answer.error_code)
    assert codes <= RETRIABLE | {0}


async def test_store_that_refuses_uploads_is_told_and_recovers(open_house, monkeypatch):
    house = await open_house(produce_timeout_ms=300)
    wire = await house.connect()
    await wire.create("t")
    with monkeypatch.context() as patch:

        async def fails(_self, _key, _body):
            raise Unavailable("the store is away")

        patch.setattr(MemoryObjects, "put", fails)
        part = await asyncio.wait_for(wire.produce("t", [b"a"]), 20)
        assert part.error_code in RETRIABLE
    deadline = asyncio.get_running_loop().time() + 20
    while (await wire.produce("t", [b"a"])).error_code and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)
    assert await wire.end_offset("t") >= 1


@pytest.mark.parametrize("kind", ["at once", "in a task"])
async def test_bug_in_a_handler_ends_its_connection_only(house, kind):
    wire, other = await house.connect(), await house.connect()

    def at_once(_door, _call):
        raise ZeroDivisionError

    def in_a_task(_door, _call):
        async def work():
            raise ZeroDivisionError

        return work()

    route = house.broker.listener.door.routes[ApiKey.METADATA]
    route.handler = at_once if kind == "at once" else in_a_task
    wire.send(ApiKey.METADATA, 12, MetadataRequest([]))
    assert await wire.is_closed()
    assert house.metrics.kafka.errors == {"handler failed": 1}
    assert house.metrics.kafka.request_memory_source() == 0
    await other.create("t")
