"""A broker process that can be killed, and load on it from real idempotent clients."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from floe.testing.sim_history import FinalLog, History, Outcome, Poll, Send

READY_SECONDS = 30
TOPIC = "crash"
PARTITIONS = 4


def free_port():
    """Not one that the system gives to clients, of which one could connect to itself while no broker runs."""
    for port in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


class BrokerProcess:
    """`floe serve` on one folder, over its deaths."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.log = (folder / "broker.log").open("ab")

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def start(self, crash_at=""):
        environment = {**os.environ, "FLOE_CRASH_AT": crash_at}
        command = [sys.executable, "-m", "floe.cli.main", "serve", "--listen", self.bootstrap]
        command += ["--data", str(self.folder / "data")]
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.log, stderr=subprocess.STDOUT, cwd=self.folder
        )

    def wait_ready(self):
        """True when it accepts connections, False when it died before."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return True
            except OSError:
                time.sleep(0.02)
        raise AssertionError(f"not ready after {READY_SECONDS} s:\n{self.tail()}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def wait_dead(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.log.close()

    def tail(self):
        return (self.folder / "broker.log").read_text(errors="replace")[-3000:]


class Writer(threading.Thread):
    """One idempotent librdkafka producer; every value is its name and number."""

    def __init__(self, name, bootstrap, history):
        super().__init__(daemon=True)
        self.label = name
        self.history = history
        self.errors = []
        self.stopping = threading.Event()
        history.gapless[name] = True
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "log_level": 0,
                "error_cb": self._failed,
            }
        )

    def _failed(self, error):
        if error.fatal():
            self.errors.append(str(error))

    def run(self):
        number = 0
        while not self.stopping.is_set():
            for _ in range(20):
                self._send(f"{self.label}.{number}", number % PARTITIONS)
                number += 1
            self.producer.poll(0.02)

    def _send(self, value, partition):
        send = Send(self.label, (TOPIC, partition), (value,), time.monotonic())
        while True:
            try:
                self.producer.produce(
                    TOPIC,
                    value=value + "|" + "x" * 200,
                    partition=partition,
                    on_delivery=lambda error, message: self._delivered(send, error, message),
                )
            except BufferError:
                self.producer.poll(0.1)
                continue
            self.history.sends.append(send)
            return

    def _delivered(self, send, error, message):
        send.ended = time.monotonic()
        if error is None:
            send.outcome, send.base_offset = Outcome.OK, message.offset()
        else:
            self.errors.append(f"{send.values[0]}: {error}")

    def finish(self):
        """Stop sending and wait until everything is acknowledged."""
        self.stopping.set()
        self.join()
        left = self.producer.flush(120)
        assert left == 0, f"{left} records of {self.label} not acknowledged"
        self.producer = None


class Reader(threading.Thread):
    """Reads every partition from the beginning, all the time."""

    def __init__(self, bootstrap, history):
        super().__init__(daemon=True)
        self.history = history
        self.stopping = threading.Event()
        self.errors = []
        self.consumer = open_consumer(bootstrap, "reader")
        self.positions = dict.fromkeys(range(PARTITIONS), 0)

    def run(self):
        while not self.stopping.is_set():
            for message in self.consumer.consume(500, 0.1):
                if message.error():
                    if message.error().code() == KafkaError.OFFSET_OUT_OF_RANGE:
                        self.errors.append(str(message.error()))
                    continue
                self._seen(message)
        self.consumer.close()

    def _seen(self, message):
        now, partition, offset = time.monotonic(), message.partition(), message.offset()
        record = (offset, value_of(message))
        self.history.polls.append(
            Poll("reader", (TOPIC, partition), self.positions[partition], (record,), now, now, True)
        )
        self.positions[partition] = offset + 1

    def finish(self):
        self.stopping.set()
        self.join()


def open_consumer(bootstrap, group):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "fetch.wait.max.ms": 100,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])
    return consumer


def value_of(message):
    return message.value().decode().partition("|")[0]


def create_topic(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, config={"retention.ms": "-1"})
    admin.create_topics([topic])[TOPIC].result(30)


def read_everything(bootstrap, history):
    """The final log of every partition, as a consumer that has just come reads it."""
    consumer = open_consumer(bootstrap, "final")
    ends = {
        index: consumer.get_watermark_offsets(TopicPartition(TOPIC, index), timeout=30)
        for index in range(PARTITIONS)
    }
    found = {index: [] for index in range(PARTITIONS)}
    deadline = time.monotonic() + 120
    while any(ends[index][1] > len(found[index]) + ends[index][0] for index in ends):
        assert time.monotonic() < deadline, f"only { ({i: len(f) for i, f in found.items()}) } of {ends}"
        for message in consumer.consume(1000, 0.5):
            if not message.error():
                found[message.partition()].append((message.offset(), value_of(message)))
    consumer.close()
    for index, records in found.items():
        history.logs.append(FinalLog((TOPIC, index), *ends[index], tuple(records)))


class Load:
    """All clients of a test and what they did."""

    def __init__(self, bootstrap, writers=3):
        self.bootstrap = bootstrap
        self.history = History()
        self.writers = [Writer(f"w{n}", bootstrap, self.history) for n in range(writers)]
        self.reader = Reader(bootstrap, self.history)

    def start(self):
        for client in (*self.writers, self.reader):
            client.start()

    def finish(self):
        for client in (*self.writers, self.reader):
            client.finish()
        assert [error for client in (*self.writers, self.reader) for error in client.errors] == []
        return self.history


@pytest.fixture
def broker(tmp_path):
    process = BrokerProcess(tmp_path)
    yield process
    process.close()


@pytest.fixture
def load(broker):
    broker.start()
    assert broker.wait_ready(), broker.tail()
    create_topic(broker.bootstrap)
    clients = Load(broker.bootstrap)
    clients.read_everything = read_everything
    clients.start()
    return clients
