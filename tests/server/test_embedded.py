"""EmbeddedBroker: a real broker in a few lines."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from floe.server.errors import CannotStart
from floe.testing import EmbeddedBroker


def produce(bootstrap, value):
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("t", value)
    assert producer.flush(30) == 0


def first(bootstrap):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x"})
    consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    message = consumer.poll(30)
    consumer.close()
    return message.value()


def test_broker_in_a_thread_of_its_own():
    with EmbeddedBroker() as broker:
        produce(broker.bootstrap, b"hello")
        assert first(broker.bootstrap) == b"hello"


async def test_broker_in_the_running_loop():
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async with EmbeddedBroker(settings={"num.partitions": 3}) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        await producer.start()
        assert await producer.partitions_for("t") == {0, 1, 2}
        await producer.send_and_wait("t", b"hello", partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer("t", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        assert (await consumer.getone()).value == b"hello"
        await consumer.stop()


def test_data_folder_keeps_records(tmp_path):
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        produce(broker.bootstrap, b"kept")
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert first(broker.bootstrap) == b"kept"


def test_failure_to_start_is_raised_where_it_was_started(tmp_path):
    with EmbeddedBroker(data_dir=tmp_path), pytest.raises(CannotStart, match="in use"):
        EmbeddedBroker(data_dir=tmp_path).__enter__()


def test_two_brokers_do_not_know_each_other():
    with EmbeddedBroker() as one, EmbeddedBroker() as two:
        produce(one.bootstrap, b"one")
        produce(two.bootstrap, b"two")
        assert (first(one.bootstrap), first(two.bootstrap)) == (b"one", b"two")
