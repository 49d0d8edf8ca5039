"""kafka-python against a real broker process."""

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the client's own imports
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import NewPartitions, NewTopic

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
MIB = 1 << 20


def read(broker, topic, count):
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        enable_auto_commit=False,
        consumer_timeout_ms=30_000,
        max_partition_fetch_bytes=12 * MIB,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = []
    for message in consumer:
        found.append(message)
        if len(found) == count:
            break
    consumer.close()
    return found


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_with_every_codec(broker, topic, records, codec):
    sent = [(key, value, [h for h in headers if h[1] is not None]) for key, value, headers in records]
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, compression_type=codec, max_request_size=12 * MIB
    )
    futures = [producer.send(topic, value, key, headers=headers, partition=0) for key, value, headers in sent]
    producer.flush(60)
    assert [future.get(30).offset for future in futures] == list(range(len(sent)))
    producer.close()
    found = read(broker, topic, len(sent))
    assert [(m.key, m.value, list(m.headers)) for m in found] == sent


def test_idempotent_producer(broker, topic):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True, acks="all")
    for i in range(500):
        producer.send(topic, b"%d" % i, partition=0)
    producer.flush(60)
    producer.close()
    assert [m.value for m in read(broker, topic, 500)] == [b"%d" % i for i in range(500)]


def test_topics_are_created_grown_and_deleted(broker, topic):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    assert topic in admin.list_topics()
    admin.create_partitions({topic: NewPartitions(total_count=4)})
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    assert consumer.partitions_for_topic(topic) == {0, 1, 2, 3}
    consumer.close()
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    admin.close()


def test_offsets_by_end_and_time(broker, topic):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for i in range(10):
        producer.send(topic, b"x", partition=0, timestamp_ms=1_600_000_000_000 + i * 1000)
    producer.flush(60)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    partition = TopicPartition(topic, 0)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    found = consumer.offsets_for_times({partition: 1_600_000_004_500})[partition]
    assert (found.offset, found.timestamp) == (5, 1_600_000_005_000)
    assert consumer.offsets_for_times({partition: 1_700_000_000_000}) == {partition: None}
    consumer.close()
