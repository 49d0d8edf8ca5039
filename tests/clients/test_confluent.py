"""confluent-kafka (librdkafka) against a real broker process."""

import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

pytestmark = pytest.mark.clients
MIB = 1 << 20


def producer(broker, **options):
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "message.max.bytes": 12 * MIB,
            "linger.ms": 2,
            **{key.replace("_", "."): value for key, value in options.items()},
        }
    )


def consumer(broker, **options):
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 12 * MIB,
            "enable.partition.eof": True,
            **options,
        }
    )


def send(broker, topic, records, **options):
    """Produce and return the offsets in order."""
    sending = producer(broker, **options)
    reports = []
    for key, value, headers in records:
        sending.produce(
            topic, value, key, headers=headers, partition=0, on_delivery=lambda *r: reports.append(r)
        )
    assert sending.flush(60) == 0
    assert [error for error, _ in reports] == [None] * len(records)
    return [message.offset() for _, message in reports]


def read(broker, topic, partition=0, offset=OFFSET_BEGINNING):
    """Every record of a partition up to its end."""
    reading = consumer(broker)
    reading.assign([TopicPartition(topic, partition, offset)])
    found, deadline = [], time.monotonic() + 60
    while time.monotonic() < deadline:
        message = reading.poll(1)
        if message is None:
            continue
        if message.error() is None:
            found.append(message)
        elif message.error().code() == KafkaError._PARTITION_EOF:
            break
        else:
            raise KafkaException(message.error())
    reading.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_with_every_codec(broker, topic, records, codec):
    records = [(None, None, []), *records]  # other clients refuse to send a record of nothing
    offsets = send(broker, topic, records, compression_type=codec)
    assert offsets == list(range(len(records)))
    found = read(broker, topic)
    assert [(m.key(), m.value(), m.headers() or []) for m in found] == records
    assert [m.offset() for m in found] == offsets


def test_idempotent_producer_keeps_order_over_many_batches(broker, topic):
    sending = producer(broker, enable_idempotence=True, batch_num_messages=10, linger_ms=0)
    for i in range(1000):
        sending.produce(topic, b"%d" % i, partition=0)
        sending.poll(0)
    assert sending.flush(60) == 0
    assert [m.value() for m in read(broker, topic)] == [b"%d" % i for i in range(1000)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(broker, topic, acks):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    sending = producer(broker, acks=acks)
    for i in range(50):
        sending.produce(topic, b"%d" % i, partition=0)
    assert sending.flush(30) == 0
    deadline = time.monotonic() + 30
    while len(found := read(broker, topic)) < 50 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [m.value() for m in found] == [b"%d" % i for i in range(50)]


def test_topics_are_created_grown_and_deleted(broker, topic):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 3, config={"retention.ms": "86400000"})])[topic].result(30)
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 3
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(topic, 3)])[topic].result(30)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(30)
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 6
    admin.delete_topics([topic])[topic].result(30)
    assert topic not in admin.list_topics(timeout=30).topics


def test_offsets_by_end_and_time(broker, topic):
    sending = producer(broker)
    for i in range(10):
        sending.produce(topic, b"x", partition=0, timestamp=1_600_000_000_000 + i * 1000)
    sending.flush(30)
    reading = consumer(broker)
    assert reading.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (0, 10)
    (found,) = reading.offsets_for_times([TopicPartition(topic, 0, 1_600_000_004_500)], timeout=30)
    assert found.offset == 5
    (found,) = reading.offsets_for_times([TopicPartition(topic, 0, 1_700_000_000_000)], timeout=30)
    assert found.offset in (OFFSET_END, 10)
    reading.close()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = {TopicPartition(topic, 0): OffsetSpec.max_timestamp()}
    (told,) = admin.list_offsets(asked).values()
    assert (told.result(30).offset, told.result(30).timestamp) == (9, 1_600_000_009_000)


def test_reading_goes_on_while_records_arrive(broker, topic):
    send(broker, topic, [(None, b"0", [])])
    reading = consumer(broker, **{"enable.partition.eof": False})
    reading.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    sending = producer(broker)
    found = []
    for i in range(1, 20):
        deadline = time.monotonic() + 30
        while len(found) < i and time.monotonic() < deadline:
            message = reading.poll(1)
            if message is not None:
                assert message.error() is None
                found.append(message.value())
        sending.produce(topic, b"%d" % i, partition=0)
        sending.flush(30)
    reading.close()
    assert found[:19] == [b"%d" % i for i in range(19)]


def test_too_large_batch_is_refused(broker, topic):
    sending = producer(broker, message_max_bytes=30 * MIB)
    reports = []
    sending.produce(topic, b"x" * (17 * MIB), partition=0, on_delivery=lambda *r: reports.append(r))
    sending.flush(60)
    assert reports[0][0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_transactions_are_refused_at_once(broker):
    sending = producer(broker, transactional_id="tx")
    with pytest.raises(KafkaException) as refused:
        sending.init_transactions(20)
    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
