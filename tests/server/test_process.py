"""A broker process over its life: data stays, health is told, memory is small."""

import json
import socket
import stat
import threading
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from floe.testing.broker_process import BrokerProcess

MIB = 1 << 20


def produce(broker, values, topic="t"):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def consume(broker, count, topic="t"):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "x", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found, deadline = [], time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += [m.value() for m in consumer.consume(count, 1) if m.error() is None]
    consumer.close()
    return found


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_records_outlive_the_process(tmp_path, how):
    values = [b"%d" % i for i in range(200)]
    broker = BrokerProcess(tmp_path)
    with broker:
        produce(broker, values)
        getattr(broker, how)()
    with broker:
        assert consume(broker, 200) == values
        produce(broker, [b"more"])
        assert consume(broker, 201)[-1] == b"more"


def test_health_and_metrics_over_http(tmp_path):
    with BrokerProcess(tmp_path) as broker:
        produce(broker, [b"a"] * 10)
        assert broker.get("/healthz") == (200, "ok\n")
        assert broker.get("/readyz") == (200, "ready\n")
        status, text = broker.get("/metrics")
        assert status == 200
        assert "floe_kafka_produced_records_total 10.0" in text
        assert 'floe_kafka_requests_total{api="Produce"}' in text
        assert 'floe_kafka_request_seconds_bucket{api="Produce",le="+Inf"}' in text
        assert "floe_object_store_requests_total" in text
        status, text = broker.get("/nothing")
        assert status == 404
        assert "/metrics" in text


def test_stopping_broker_is_not_ready_and_answers_what_it_took(tmp_path):
    """Goal: SIGTERM under load loses no acknowledgement that was on its way."""
    with BrokerProcess(tmp_path) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "retries": 0})
        outcomes = []
        stop = threading.Event()

        def load():
            i = 0
            while not stop.is_set():
                producer.produce("t", b"%d" % i, on_delivery=lambda e, m: outcomes.append((e, m.value())))
                producer.poll(0)
                i += 1
                time.sleep(0.0005)

        thread = threading.Thread(target=load)
        thread.start()
        while len(outcomes) < 200:
            time.sleep(0.01)
        assert broker.stop() == 0
        stop.set()
        thread.join()
        producer.purge()
        producer.flush(5)
        acknowledged = [value for error, value in outcomes if error is None]
    with broker:
        stored = consume(broker, len(acknowledged))
        assert set(acknowledged) <= set(stored)


def test_idle_broker_is_small(tmp_path):
    with BrokerProcess(tmp_path) as broker:
        produce(broker, [b"a"])
        assert broker.resident_bytes() < 150 * MIB


def test_native_secret_is_made_once_and_private(tmp_path):
    secret = tmp_path / "data" / "native.secret"
    broker = BrokerProcess(tmp_path)
    with broker:
        first = secret.read_bytes()
        broker.stop()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert len(first.strip()) == 64
    with broker:
        assert secret.read_bytes() == first
        assert first.strip().decode() not in broker.output


def test_data_folder_and_store_of_different_clusters_are_refused(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    with BrokerProcess(one) as broker:
        broker.stop()
    identity = json.loads((one / "data" / "objects" / "cluster.json").read_text())
    store = (one / "data" / "objects").as_uri()
    with pytest.raises(AssertionError) as refused:
        BrokerProcess(two, "--store", store).start()
    assert identity["cluster_id"] in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_half_open_and_hostile_peers_do_not_disturb_a_process(tmp_path):
    with BrokerProcess(tmp_path) as broker:
        host, port = broker.bootstrap.split(":")
        peers = [socket.create_connection((host, int(port))) for _ in range(50)]
        for i, peer in enumerate(peers):
            if i % 3 == 1:
                peer.send((90 * MIB).to_bytes(4, "big") + b"x" * 100)
            elif i % 3 == 2:
                peer.send(b"\xff" * 1000)
        values = [b"%d" % i for i in range(100)]
        produce(broker, values)
        assert consume(broker, 100) == values
        # Nothing was given to the requests that were only announced.
        assert broker.resident_bytes() < 150 * MIB
        for peer in peers:
            peer.close()
