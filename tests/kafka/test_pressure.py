"""Bounded memory: what is held, who waits, and that everybody gets on again."""

import asyncio

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import MetadataRequest

KIB, MIB = 1 << 10, 1 << 20


def held(house):
    return house.metrics.kafka.request_memory_source()


async def settled(house):
    """Wait until the amount held stops growing."""
    before = -1
    while held(house) != before:
        before = held(house)
        await asyncio.sleep(0.05)
    return before


async def test_requests_of_many_connections_stay_within_the_budget(open_house, make_produce):
    limit = 4 * MIB
    house = await open_house(
        queued_max_request_bytes=limit, socket_request_max_bytes=2 * MIB, message_max_bytes=2 * MIB
    )
    wires = [await house.connect() for _ in range(12)]
    await wires[0].create("t")
    house.objects.gate.clear()
    value = b"x" * (900 * KIB)
    for wire in wires:
        for _ in range(3):
            wire.send(ApiKey.PRODUCE, 9, make_produce("t", [value]))
    # 36 requests of 0.9 MiB are on their way; 4 fit, or parts of more, of which one may be completed.
    assert 3 * MIB < await settled(house) <= limit + MIB
    house.objects.gate.set()
    offsets = []
    for _ in range(3):
        for wire in wires:
            answer = await asyncio.wait_for(wire.receive(), 30)
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
    assert sorted(offsets) == list(range(36))
    assert held(house) == 0


async def test_announced_requests_cost_others_nothing(open_house, make_produce):
    house = await open_house(queued_max_request_bytes=4 * MIB, socket_request_max_bytes=4 * MIB)
    for _ in range(20):
        announcing = await house.connect()
        announcing.writer.write((4 * MIB - 100).to_bytes(4, "big") + b"x" * 10)
    wire = await house.connect()
    await wire.create("t")
    for i in range(5):
        part = await asyncio.wait_for(wire.produce("t", [b"x" * (500 * KIB)]), 10)
        assert part.base_offset == i
    assert held(house) <= 4 * MIB


async def test_requests_that_fill_the_budget_half_way_all_get_through(open_house, make_produce):
    """Goal: parts of many requests fill the budget, and none is complete; yet all are served, one by one."""
    limit = 2 * MIB
    house = await open_house(
        queued_max_request_bytes=limit, socket_request_max_bytes=limit, message_max_bytes=limit
    )
    wires = [await house.connect() for _ in range(10)]
    await wires[0].create("t")
    sends = []
    for wire in wires:
        wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"x" * (MIB + 512 * KIB)]))
        sends.append(asyncio.create_task(wire.writer.drain()))
    peak = 0
    for wire in wires:
        receiving = asyncio.create_task(wire.receive())
        while not receiving.done():
            peak = max(peak, held(house))
            await asyncio.sleep(0)
        assert receiving.result().responses[0].partition_responses[0].error_code == 0
    await asyncio.gather(*sends)
    assert peak <= 2 * limit
    assert held(house) == 0


async def test_small_requests_pass_the_budget_by_one_read_at_most(open_house, make_produce):
    house = await open_house(queued_max_request_bytes=1 * MIB, socket_request_max_bytes=1 * MIB,
                             message_max_bytes=100 * KIB, connection_max_requests=10_000)  # fmt: skip
    wires = [await house.connect() for _ in range(4)]
    await wires[0].create("t")
    house.objects.gate.clear()
    for wire in wires:
        for _ in range(500):
            wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"x" * KIB]))
    assert 900 * KIB < await settled(house) <= MIB + 4 * 128 * KIB
    house.objects.gate.set()
    for wire in wires:
        for _ in range(500):
            answer = await asyncio.wait_for(wire.receive(), 30)
            assert answer.responses[0].partition_responses[0].error_code == 0
    assert held(house) == 0


async def test_one_connection_has_a_bounded_number_of_requests_under_way(open_house, make_produce):
    house = await open_house(connection_max_requests=8)
    wire, other = await house.connect(), await house.connect()
    await wire.create("t")
    house.objects.gate.clear()
    for i in range(100):
        wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"%d" % i]))
    size = len(make_produce("t", [b"1"]).topic_data[0].partition_data[0].records)
    assert await settled(house) < 8 * (size + 200)
    assert (await other.end_offset("t")) == 0  # others are served meanwhile
    house.objects.gate.set()
    for i in range(100):
        answer = await asyncio.wait_for(wire.receive(), 30)
        assert answer.responses[0].partition_responses[0].base_offset == i


async def test_connection_with_room_for_one_request_goes_on_after_each(open_house, make_produce):
    house = await open_house(connection_max_requests=1)
    wire = await house.connect()
    await wire.create("t")
    for _ in range(3):
        for _ in range(5):
            wire.send(ApiKey.METADATA, 12, MetadataRequest([]))
            wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"]))
        for _ in range(10):
            await asyncio.wait_for(wire.receive(), 10)
    assert await wire.end_offset("t") == 15


async def test_request_that_fills_its_connection_and_is_refused_at_once_leaves_room(open_house):
    house = await open_house(connection_max_bytes=64 * KIB)
    wire = await house.connect()
    await wire.create("t")
    for _ in range(3):
        part = await asyncio.wait_for(wire.produce("missing", [b"x" * (200 * KIB)]), 10)
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await asyncio.wait_for(wire.produce("t", [b"a"]), 10)).error_code == 0


async def test_one_connection_has_bounded_bytes_under_way(open_house, make_produce):
    house = await open_house(connection_max_bytes=256 * KIB)
    wire = await house.connect()
    await wire.create("t")
    house.objects.gate.clear()
    for _ in range(20):
        wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"x" * (100 * KIB)]))
    assert await settled(house) <= 500 * KIB
    house.objects.gate.set()
    for i in range(20):
        answer = await asyncio.wait_for(wire.receive(), 30)
        assert answer.responses[0].partition_responses[0].base_offset == i


@pytest.mark.parametrize("size", [100, 20 * KIB, 300 * KIB])
async def test_waiting_connection_that_goes_away_makes_room(open_house, make_produce, size):
    house = await open_house(queued_max_request_bytes=1 * MIB, socket_request_max_bytes=1 * MIB,
                             message_max_bytes=1 * MIB)  # fmt: skip
    first, second, third = [await house.connect() for _ in range(3)]
    await first.create("t")
    house.objects.gate.clear()
    first.send(ApiKey.PRODUCE, 9, make_produce("t", [b"x" * (900 * KIB)]))
    await settled(house)
    second.send(ApiKey.PRODUCE, 9, make_produce("t", [b"x" * (500 * KIB)]))
    third.send(ApiKey.PRODUCE, 9, make_produce("t", [b"x" * size]))
    await settled(house)
    second.writer.transport.abort()
    house.objects.gate.set()
    for wire in (first, third):
        answer = await asyncio.wait_for(wire.receive(), 30)
        assert answer.responses[0].partition_responses[0].error_code == 0
    while held(house):  # that of the one that is gone, until it is read and the end is seen
        await asyncio.sleep(0.001)


async def test_consumer_that_does_not_read_holds_one_answer_and_fetches_shrink(open_house, make_fetch):
    house = await open_house(response_memory_max_bytes=8 * MIB, message_max_bytes=2 * MIB)
    producer, lazy, busy = [await house.connect() for _ in range(3)]
    await producer.create("t")
    for _ in range(16):
        assert (await producer.produce("t", [b"x" * MIB])).error_code == 0
    wanted = make_fetch([("t", 0, 0)], partition_max_bytes=64 * MIB, max_bytes=64 * MIB)
    lazy.writer.transport.pause_reading()
    for _ in range(50):
        lazy.send(ApiKey.FETCH, 12, wanted)
    await asyncio.sleep(0.3)
    sent = house.metrics.kafka.bytes_out
    answer = await busy.call(ApiKey.FETCH, 12, wanted)
    assert len(answer.responses[0].partitions[0].records) <= 2 * MIB + 200
    # The lazy one's answers stopped at what the kernel and one more answer hold, far from 50 of them.
    assert sent < 16 * MIB + 20 * MIB
    lazy.writer.transport.resume_reading()
    for _ in range(50):
        part = (await asyncio.wait_for(lazy.receive(), 30)).responses[0].partitions[0]
        assert part.error_code == 0
