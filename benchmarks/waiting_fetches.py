"""What it costs to let consumers wait: 1,000 fetches over 16,000 ranges in which nothing happens.

Connections, topic and fetches are made first; then nothing happens but waiting, and the broker's CPU time is
taken. At the end one record is produced: it must wake the one fetch that waits for its partition, no other.
"""

import select
import socket
import struct
import tempfile
import time
from pathlib import Path

from benchmarks.brokers import FLOE_SERVE
from benchmarks.process import Meter
from benchmarks.results import save
from floe.wire import records
from floe.wire.kafka.apis import API, ApiKey
from floe.wire.kafka.framing import read_response_header, request_frame
from floe.wire.kafka.messages import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
    decode_response,
)
from floe.wire.kafka.schema.fields import Struct

FETCHES = 1_000
RANGES = 16_000
SECONDS = 20.0
WAIT_MS = 240_000
VERSIONS = {ApiKey.CREATE_TOPICS: 5, ApiKey.FETCH: 11, ApiKey.PRODUCE: 8}
TOPIC = "idle"
ANSWER_SECONDS = 120.0


def run_waiting_fetches() -> None:
    """CPU share of a broker that has nothing to do, without and with fetches that wait."""
    with tempfile.TemporaryDirectory(dir=".") as folder, FLOE_SERVE.start(Path(folder)) as (port, pid):
        with _connect(port) as admin:
            _create_topic(admin)
            time.sleep(5)
            idle = _cores(pid)
            waiting = [_connect(port) for _ in range(FETCHES)]
            for number, connection in enumerate(waiting):
                _send(connection, ApiKey.FETCH, _fetch(number))
            time.sleep(5)
            busy = _cores(pid)
            assert not _readable(waiting, 0), "a fetch was answered although nothing had happened"
            woken_seconds = _wake_one(admin, waiting)
        for connection in waiting:
            connection.close()
    rows: list[dict[str, object]] = [
        {"state": "no fetch", "% of a core": round(100 * idle, 2)},
        {"state": f"{FETCHES} fetches wait over {RANGES} ranges", "% of a core": round(100 * busy, 2)},
        {"state": "one record wakes its fetch, and no other", "after ms": round(1000 * woken_seconds, 1)},
    ]
    settings: dict[str, object] = {"seconds": SECONDS, "ranges_per_fetch": RANGES // FETCHES}
    save("waiting_fetches", command="./dev bench waiting_fetches", settings=settings, rows=rows)
    for row in rows:
        print(*row.values(), sep=": ")


def _cores(pid: int) -> float:
    meter = Meter(pid)
    time.sleep(SECONDS)
    return meter.cores()


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)


def _send(connection: socket.socket, key: ApiKey, message: Struct) -> None:
    connection.sendall(b"".join(request_frame(API[key], VERSIONS[key], 1, "bench", message)))


def _receive(connection: socket.socket, key: ApiKey) -> object:
    (length,) = struct.unpack(">i", _exactly(connection, 4))
    view = memoryview(_exactly(connection, length))
    _, position = read_response_header(API[key], VERSIONS[key], view)
    return decode_response(key, VERSIONS[key], view[position:])


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionError("the broker closed the connection")
        received += part
    return bytes(received)


def _create_topic(connection: socket.socket) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=RANGES, replication_factor=1)
    _send(connection, ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=120_000))
    answer = _receive(connection, ApiKey.CREATE_TOPICS)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message


def _fetch(number: int) -> FetchRequest:
    each = RANGES // FETCHES
    partitions = [
        FetchPartition(partition=number * each + index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(each)
    ]
    return FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=partitions)],
    )


def _wake_one(admin: socket.socket, waiting: list[socket.socket]) -> float:
    """Produce to the last partition; seconds until its fetch, and only that, is answered."""
    batch = records.encode([records.Record(0, 1_700_000_000_000, None, b"news")])
    partition = PartitionProduceData(index=RANGES - 1, records=memoryview(batch))
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[partition])]
    )
    started = time.monotonic()
    _send(admin, ApiKey.PRODUCE, request)
    woken = _readable(waiting, 10)
    seconds = time.monotonic() - started
    time.sleep(1)
    assert woken == _readable(waiting, 0) == [waiting[-1]], "the record woke other fetches than its own"
    return seconds


def _readable(connections: list[socket.socket], seconds: float) -> list[socket.socket]:
    """Those with an answer, within so many seconds."""
    poll = select.poll()
    by_number = {connection.fileno(): connection for connection in connections}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(seconds * 1000)]


if __name__ == "__main__":
    run_waiting_fetches()
