"""Many requests of one connection under way: answers in order, nobody held up who need not be."""

import asyncio

from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    ApiVersionsRequest,
    CreatableTopic,
    CreateTopicsRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
)

LONG_MS = 60_000


async def test_pipelined_requests_of_all_kinds_are_answered_in_order(wire, make_produce, make_fetch):
    await wire.create("t")
    ends = ListOffsetsRequest(topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])])
    for _ in range(20):
        wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"]))
        wire.send(ApiKey.METADATA, 12, MetadataRequest([]))
        wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"], acks=0))
        wire.asked.pop()
        wire.send(ApiKey.FETCH, 12, make_fetch([("t", 0, 0)]))
        wire.send(ApiKey.LIST_OFFSETS, 7, ends)
        wire.send(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("a", "1"))
    for turn in range(20):
        produced, _, fetched, listed, _ = [await wire.receive() for _ in range(5)]
        assert produced.responses[0].partition_responses[0].base_offset == 2 * turn
        # What was asked later sees what was asked before, as when a connection has one request under way.
        assert fetched.responses[0].partitions[0].high_watermark >= 2 * turn + 2
        assert listed.topics[0].partitions[0].offset >= 2 * turn + 2


async def test_produces_of_one_connection_are_under_way_together(house, make_produce):
    wire = await house.connect()
    await wire.create("t")
    house.objects.gate.clear()
    for i in range(10):
        wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"%d" % i]))
    while house.broker.engine.pending_bytes < 10 * 60:
        await asyncio.sleep(0.001)
    house.objects.gate.set()
    offsets = [(await wire.receive()).responses[0].partition_responses[0].base_offset for _ in range(10)]
    assert offsets == list(range(10))


async def test_produce_behind_a_waiting_fetch_is_done_at_once_and_answered_after_it(
    house, make_produce, make_fetch
):
    wire, other = await house.connect(), await house.connect()
    await wire.create("t", 2)
    wire.send(ApiKey.FETCH, 12, make_fetch([("t", 0, 0)], max_wait_ms=LONG_MS))
    wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"], partition=1))
    while await other.end_offset("t", 1) == 0:
        await asyncio.sleep(0.001)
    assert wire.reader._buffer == b""
    await other.produce("t", [b"wake"], partition=0)
    fetched, produced = await wire.receive(), await wire.receive()
    assert fetched.responses[0].partitions[0].high_watermark == 1
    assert produced.responses[0].partition_responses[0].base_offset == 0


async def test_produce_behind_a_create_topics_sees_the_topic(wire, make_produce):
    for i in range(5):
        wire.send(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic(f"t{i}", 1, 1)]))
        wire.send(ApiKey.PRODUCE, 9, make_produce(f"t{i}", [b"a"]))
    for _ in range(5):
        created, produced = await wire.receive(), await wire.receive()
        assert created.topics[0].error_code == 0
        assert produced.responses[0].partition_responses[0].error_code == 0


async def test_waiting_fetches_do_not_delay_other_connections(house, make_fetch):
    waiting = [await house.connect() for _ in range(20)]
    wire = await house.connect()
    await wire.create("t")
    await wire.create("idle")
    for one in waiting:
        one.send(ApiKey.FETCH, 12, make_fetch([("idle", 0, 0)], max_wait_ms=LONG_MS))
    for i in range(20):
        part = await asyncio.wait_for(wire.produce("t", [b"a"]), 5)
        assert part.base_offset == i
        assert len((await wire.fetch("t", i)).records) > 0
    assert all(one.reader._buffer == b"" for one in waiting)


async def test_connection_that_goes_away_leaves_nothing_behind(house, make_produce, make_fetch):
    wire, other = await house.connect(), await house.connect()
    await other.create("t", 2)
    house.objects.gate.clear()
    wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"]))
    wire.send(ApiKey.FETCH, 12, make_fetch([("t", 1, 0)], max_wait_ms=LONG_MS))
    wire.send(ApiKey.METADATA, 12, MetadataRequest([]))
    while not house.broker.engine.pending_bytes:
        await asyncio.sleep(0.001)
    wire.writer.transport.abort()
    while house.metrics.kafka.connections > 1:
        await asyncio.sleep(0.001)
    house.objects.gate.set()
    # What was taken is carried out: the client cannot know whether it was.
    while await other.end_offset("t") == 0:
        await asyncio.sleep(0.001)
    assert house.metrics.kafka.request_memory_source() == 0
