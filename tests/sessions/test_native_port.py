"""The native port with its own client: authenticated unary calls."""

import asyncio

import pytest

from floe.client.native_client import NativeClient
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import Offset, RangeId
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.sessions.connection import CALLS_MAX
from floe.sessions.listener import CONNECTIONS_MAX
from floe.testing import EmbeddedBroker
from floe.wire.native.calls import Find, FindItem, Method, encode_payload


@pytest.fixture
async def broker(tmp_path):
    async with EmbeddedBroker(data_dir=tmp_path, settings={"native.listen": "127.0.0.1:0"}) as running:
        running.secret = (tmp_path / "native.secret").read_bytes().strip()
        yield running.broker, running.secret


@pytest.fixture
async def client(broker):
    running, secret = broker
    address = running.native_address
    async with await NativeClient.connect(address.host, address.port, secret) as connected:
        yield connected


async def add_topic(running, name="t", partitions=2):
    return await running.metadata.create_topic(name, partitions=partitions, config={"retention.ms": "5"})


async def test_cluster_is_described(broker, client):
    running, _ = broker
    told = await client.cluster_info()
    assert told.cluster_id == running.cluster_id
    (address,) = told.brokers
    assert (address.host, address.kafka_port) == ("127.0.0.1", running.address.port)
    assert address.native_port == running.native_address.port
    assert told.objects_url.startswith("file:///")


async def test_topics_are_described(broker, client):
    running, _ = broker
    topic = await add_topic(running)
    await add_topic(running, "u")
    assert await client.describe_topics(["t", "missing"]) == [topic]
    assert [found.name for found in await client.describe_topics()] == ["t", "u"]


async def test_rows_and_ends_are_found(broker, client, tmp_path):
    from confluent_kafka import Producer

    running, _ = broker
    topic = await add_topic(running)
    producer = Producer({"bootstrap.servers": str(running.address)})
    for i in range(3):
        producer.produce("t", b"x" * 100, partition=0, timestamp=1000 + i)
    await asyncio.to_thread(producer.flush, 30)
    (view,) = await client.find([(topic.ranges[0], Offset(0), 1 << 20)])
    assert (view.error, view.log_start, view.log_end) == (0, 0, 3)
    assert view.rows[0].first == 0
    first, second = await client.ends(list(topic.ranges))
    assert (first.log_start, first.log_end, second.log_end) == (0, 3, 0)
    by_time = await client.find_timestamp(topic.ranges[0], 1002)
    assert by_time.rows[0].last >= 2
    (unknown,) = await client.ends([RangeId(999_999)])
    assert unknown.error != 0


async def test_find_waits_for_records(broker, client):
    from confluent_kafka import Producer

    running, _ = broker
    topic = await add_topic(running)
    waiting = asyncio.create_task(client.find([(topic.ranges[0], Offset(0), 1 << 20)], wait_ms=60_000))
    await client.cluster_info()  # other calls go on meanwhile
    assert not waiting.done()
    producer = Producer({"bootstrap.servers": str(running.address)})
    producer.produce("t", b"x", partition=0)
    await asyncio.to_thread(producer.flush, 30)
    (view,) = await asyncio.wait_for(waiting, 10)
    assert view.log_end == 1


async def test_work_is_claimed_and_a_finish_of_what_is_gone_changes_nothing(client):
    assert await client.claim_work("me", [WorkKind.DELETE], 10) == []
    await client.finish_work(WorkItem(1, 0, WorkKind.DELETE, 7, 0, ()), WorkResult(()))
    with pytest.raises(Rejected, match="home"):
        await client.finish_work(WorkItem(1, 99, WorkKind.DELETE, 7, 0, ()), WorkResult(()))


async def test_wrong_secret_is_refused_with_a_sentence(broker):
    running, secret = broker
    address = running.native_address
    with pytest.raises(Rejected, match="secret") as refused:
        await NativeClient.connect(address.host, address.port, secret[::-1])
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_port_where_nobody_listens_is_named(broker):
    _, secret = broker
    with pytest.raises(Unavailable, match="cannot reach"):
        await NativeClient.connect("127.0.0.1", 1, secret)


@pytest.mark.parametrize(
    "data", [b"\xff" * 2000, b"GET / HTTP/1.1\r\n\r\n", b"\x00\x01x", b"\x04\x01" + b"x" * 1025]
)
async def test_garbage_is_refused_and_others_go_on(broker, client, data):
    running, _ = broker
    reader, writer = await asyncio.open_connection("127.0.0.1", running.native_address.port)
    writer.write(data)
    await asyncio.wait_for(reader.read(), 20)
    writer.close()
    assert (await client.cluster_info()).cluster_id == running.cluster_id


async def test_calls_beyond_the_bound_wait_their_turn(broker, client):
    running, _ = broker
    topic = await add_topic(running)
    asked = [(topic.ranges[0], Offset(0), 1)]
    waiting = [asyncio.create_task(client.find(asked, wait_ms=300)) for _ in range(CALLS_MAX + 8)]
    done, _ = await asyncio.wait(waiting, timeout=30)
    assert len(done) == CALLS_MAX + 8
    assert all(task.result()[0].error == 0 for task in done)


async def test_malformed_call_is_answered_with_an_error(client):
    frame = await client._connection.call(Method.FIND, b"\xc1")
    assert frame.kind.name == "ERROR"
    frame = await client._connection.call(99, b"")
    assert frame.kind.name == "ERROR"
    too_many = Find(tuple(FindItem(1, 0, 0) for _ in range(10_001)))
    frame = await client._connection.call(Method.FIND, encode_payload(too_many))
    assert frame.kind.name == "ERROR"


async def test_connections_are_bounded(broker):
    running, secret = broker
    port = running.native_address.port
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
    with pytest.raises((Unavailable, Rejected)):
        await NativeClient.connect("127.0.0.1", port, secret)
    for _, writer in silent:
        writer.close()


async def test_calls_of_a_lost_connection_fail(broker, client):
    running, _ = broker
    topic = await add_topic(running)
    waiting = asyncio.create_task(client.find([(topic.ranges[0], Offset(0), 1)], wait_ms=60_000))
    await client.cluster_info()
    await client.close()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(waiting, 10)
