"""Small requests: how many a second, and how long an acknowledgement takes."""

import time

from benchmarks import load
from benchmarks.brokers import PARTITIONS, Contender
from benchmarks.process import Meter, folder_in, workspace
from benchmarks.results import save, spread
from benchmarks.throughput import contenders
from floe.wire import records
from floe.wire.kafka.apis import API, ApiKey
from floe.wire.kafka.framing import request_frame
from floe.wire.kafka.messages import PartitionProduceData, ProduceRequest, TopicProduceData

SMALL_BYTES = 100
RATES = {"one at a time": 0, "1,000 a second": 1_000, "10,000 a second": 10_000}


def run_small(rounds: int, seconds: float) -> None:
    """One record of 100 bytes per request, 64 connections, one request under way on each."""
    taking_part, notes = contenders(with_yardsticks=False)
    measured: dict[str, list[dict[str, float]]] = {}
    cores: dict[str, list[float]] = {}
    with workspace() as space:
        for contender in taking_part * rounds:
            with contender.start(folder_in(space)) as (port, pid):
                _create(port)
                meter = Meter(pid)
                done = load.replay(port, request(), connections=64, in_flight=1, seconds=seconds)
                measured.setdefault(contender.name, []).append(done)
                cores.setdefault(contender.name, []).append(meter.cores())
    rows = [
        _small_row(contender, measured[contender.name], cores[contender.name]) for contender in taking_part
    ]
    settings: dict[str, object] = {
        "record_bytes": SMALL_BYTES,
        "connections": 64,
        "in_flight": 1,
        "notes": notes,
    }
    save("small", command="./dev bench small", settings=settings, rows=rows)


def run_latency(rounds: int, seconds: float) -> None:
    """Acknowledgement time of a lone synchronous producer, and at a steady rate."""
    taking_part, notes = contenders(with_yardsticks=False)
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    with workspace() as space:
        for contender in taking_part * rounds:
            with contender.start(folder_in(space)) as (port, _pid):
                _create(port)
                for name, rate in RATES.items():
                    measured.setdefault((name, contender.name), []).append(_paced(port, rate, seconds))
    rows: list[dict[str, object]] = []
    for name in RATES:
        row: dict[str, object] = {"load": name}
        for contender in taking_part:
            runs = measured[name, contender.name]
            row[f"{contender.name} p50 ms"] = spread([run["p50_ms"] for run in runs])
            row[f"{contender.name} p99 ms"] = spread([run["p99_ms"] for run in runs])
        rows.append(row)
    settings: dict[str, object] = {"record_bytes": SMALL_BYTES, "acks": "all", "notes": notes}
    save("latency", command="./dev bench latency", settings=settings, rows=rows)


def request(partition: int = 0) -> bytes:
    """A framed Produce request of one small record, in a version that every broker here knows."""
    now_ms = time.time_ns() // 1_000_000  # an old one would be dropped by retention at once
    record = records.Record(offset=0, timestamp=now_ms, key=None, value=b"x" * SMALL_BYTES, headers=())
    data = PartitionProduceData(index=partition, records=memoryview(records.encode([record])))
    topic = TopicProduceData(name="bench", partition_data=[data])
    message = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    pieces = request_frame(API[ApiKey.PRODUCE], 7, 0, "replay", message)
    return b"".join(pieces)


def _create(port: int) -> None:
    load.produce(
        port, topic="bench", partitions=PARTITIONS, records=100, size=SMALL_BYTES, rdkafka_acks="all"
    )


def _paced(port: int, rate: int, seconds: float) -> dict[str, float]:
    records_count = int(rate * seconds) if rate else int(100 * seconds)
    return load.produce(
        port,
        topic="bench",
        partitions=PARTITIONS,
        records=records_count,
        size=SMALL_BYTES,
        rate=rate,
        sync=0 if rate else 1,
        rdkafka_acks="all",
        rdkafka_linger_ms=0,
        rdkafka_batch_num_messages=1,
    )


def _small_row(contender: Contender, runs: list[dict[str, float]], cores: list[float]) -> dict[str, object]:
    return {
        "broker": contender.name,
        "requests/s": spread([run["requests_per_s"] for run in runs]),
        "p50 ms": spread([run["p50_ms"] for run in runs]),
        "p99 ms": spread([run["p99_ms"] for run in runs]),
        "broker cores": spread(cores),
    }
