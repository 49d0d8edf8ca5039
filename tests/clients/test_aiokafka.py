"""aiokafka against a real broker process."""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

pytestmark = pytest.mark.clients
MIB = 1 << 20


async def read(broker, topic, count):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap, enable_auto_commit=False, max_partition_fetch_bytes=12 * MIB
    )
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_come_back_as_they_were_with_every_codec(broker, topic, records, codec):
    sent = [(key, value, [h for h in headers if h[1] is not None]) for key, value, headers in records]
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap, compression_type=codec, max_request_size=12 * MIB
    )
    await producer.start()
    try:
        offsets = [
            (await producer.send_and_wait(topic, value, key, partition=0, headers=headers)).offset
            for key, value, headers in sent
        ]
    finally:
        await producer.stop()
    assert offsets == list(range(len(sent)))
    found = await read(broker, topic, len(sent))
    assert [(m.key, m.value, list(m.headers)) for m in found] == sent


async def test_idempotent_producer(broker, topic):
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
    await producer.start()
    try:
        futures = [await producer.send(topic, b"%d" % i, partition=0) for i in range(500)]
        assert [(await future).offset for future in futures] == list(range(500))
    finally:
        await producer.stop()
    assert [m.value for m in await read(broker, topic, 500)] == [b"%d" % i for i in range(500)]


async def test_topics_are_created_grown_and_deleted(broker, topic):
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
        assert topic in await admin.list_topics()
        await admin.create_partitions({topic: NewPartitions(total_count=4)})
        (described,) = await admin.describe_topics([topic])
        assert len(described["partitions"]) == 4
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
    finally:
        await admin.close()


async def test_offsets_by_end_and_time(broker, topic):
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
    await producer.start()
    for i in range(10):
        await producer.send_and_wait(topic, b"x", partition=0, timestamp_ms=1_600_000_000_000 + i * 1000)
    await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 10}
        found = (await consumer.offsets_for_times({partition: 1_600_000_004_500}))[partition]
        assert (found.offset, found.timestamp) == (5, 1_600_000_005_000)
    finally:
        await consumer.stop()
