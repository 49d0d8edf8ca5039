"""What breaks the protocol ends its own connection and harms nobody else."""

import asyncio
import random

import pytest

from floe.kafka.listener import SWEEP_SECONDS
from floe.wire.kafka.apis import API, ApiKey
from floe.wire.kafka.framing import request_frame
from floe.wire.kafka.messages import MetadataRequest

GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "ten gigabytes": (10 << 30 & 0xFFFFFFFF).to_bytes(4, "big") + b"x" * 100,
    "negative length": b"\xff\xff\xff\xff" + b"x" * 100,
    "largest length": b"\x7f\xff\xff\xff" + b"x" * 100,
    "just over the limit": (100 * (1 << 20) + 1).to_bytes(4, "big"),
    "empty frame": b"\x00\x00\x00\x00",
    "short header": b"\x00\x00\x00\x05" + b"\x00\x03\x00\x09\x00",
    "client id past the end": b"\x00\x00\x00\x0a" + b"\x00\x03\x00\x00\x00\x00\x00\x01\x7f\xff",
    "no tags after the client id": b"\x00\x00\x00\x0a" + b"\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff",
    "endless tags": b"\x00\x00\x00\x10" + b"\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff" + b"\xff" * 6,
    "body cut off": b"\x00\x00\x00\x0d" + b"\x00\x03\x00\x09\x00\x00\x00\x01\xff\xff\x00\x7f\x01",
    "array of billions": b"\x00\x00\x00\x0e\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff\x7f\xff\xff\xff",
    "unknown api": b"\x00\x00\x00\x0a" + b"\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff",
    "negative version": b"\x00\x00\x00\x0a" + b"\x00\x12\xff\xff\x00\x00\x00\x01\xff\xff",
    "tls": bytes.fromhex("16030100c8010000c40303") + b"\x55" * 190,
}  # fmt: skip


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_closes_the_connection_and_no_other(house, name):
    good, bad = await house.connect(), await house.connect()
    await good.create("t")
    bad.writer.write(GARBAGE[name])
    assert await bad.is_closed()
    assert (await good.produce("t", [b"a"])).error_code == 0
    assert sum(house.metrics.kafka.errors.values()) == 1
    assert house.metrics.kafka.request_memory_source() == 0


async def test_random_bytes_never_harm(house):
    rng = random.Random(7)
    good = await house.connect()
    await good.create("t")
    request = b"".join(request_frame(API[ApiKey.METADATA], 12, 1, "x", MetadataRequest([])))
    for _ in range(100):
        bad = await house.connect()
        data = bytearray(request)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        bad.writer.write(bytes(data) + rng.randbytes(rng.randrange(20)))
        bad.writer.write_eof()
        await asyncio.wait_for(bad.reader.read(), 5)
        bad.close()
    assert (await good.produce("t", [b"a"])).error_code == 0
    assert house.metrics.kafka.request_memory_source() == 0


async def test_answers_before_the_bad_request_are_still_sent(wire):
    wire.send(ApiKey.METADATA, 12, MetadataRequest([]))
    wire.writer.write(GARBAGE["unknown api"])
    assert (await wire.receive()).controller_id == 1
    assert await wire.is_closed()


async def test_truncated_frame_holds_memory_only_until_the_peer_is_gone(house):
    bad = await house.connect()
    bad.writer.write((1 << 20).to_bytes(4, "big") + b"x" * 1000)
    while not house.metrics.kafka.request_memory_source():
        await asyncio.sleep(0.001)
    assert house.metrics.kafka.request_memory_source() == 1 << 20
    bad.writer.transport.abort()
    while house.metrics.kafka.request_memory_source():
        await asyncio.sleep(0.001)


async def test_stalled_request_is_given_up_and_a_waiting_fetch_is_not(house, make_fetch):
    stalled, waiting, idle = [await house.connect() for _ in range(3)]
    await idle.create("t")
    stalled.writer.write((1 << 20).to_bytes(4, "big") + b"x" * 1000)
    waiting.send(ApiKey.FETCH, 12, make_fetch([("t", 0, 0)], max_wait_ms=60_000))
    while not house.metrics.kafka.request_memory_source():
        await asyncio.sleep(0.001)
    for _ in range(5):
        house.broker.listener.sweep()  # what a timer does every SWEEP_SECONDS
    assert SWEEP_SECONDS * 5 < 600
    assert await stalled.is_closed()
    assert house.metrics.kafka.errors == {"stalled request": 1}
    assert (await idle.produce("t", [b"a"])).error_code == 0
    assert len((await waiting.receive()).responses[0].partitions[0].records) > 0


async def test_silent_connection_is_closed_after_its_time(open_house):
    house = await open_house(connections_max_idle_ms=30_000)
    silent, live = await house.connect(), await house.connect()
    await silent.create("t")
    for _ in range(4):
        await live.end_offset("t")
        house.broker.listener.sweep()
    assert await silent.is_closed()
    assert await live.end_offset("t") == 0
    assert house.metrics.kafka.errors == {}


async def test_too_many_connections_are_closed_at_once(open_house):
    house = await open_house(max_connections=3)
    wires = [await house.connect() for _ in range(3)]
    assert await (await house.connect()).is_closed()
    await wires[0].create("t")
    wires[1].close()
    while house.metrics.kafka.connections > 2:
        await asyncio.sleep(0.001)
    late = await house.connect()
    assert await late.end_offset("t") == 0
