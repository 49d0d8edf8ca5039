"""Produce and fetch in MB/s, brokers side by side: rounds are interleaved, so that noise hits all alike."""

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks import apache_kafka, load
from benchmarks.brokers import FLOE_SERVE, KAFKA, NULL, PARTITIONS, REFERENCE, Contender
from benchmarks.process import Meter, folder_in, workspace
from benchmarks.results import save, spread

RECORD_BYTES = 1024
BATCHES = {"16 KiB": 16_384, "128 KiB": 131_072, "1 MB": 1_000_000}
RECORDS = {"16 KiB": 100_000, "128 KiB": 300_000, "1 MB": 300_000}


def contenders(*, with_yardsticks: bool) -> tuple[list[Contender], list[str]]:
    """Who takes part, and notes on who could not."""
    taking_part = [FLOE_SERVE, *([NULL, REFERENCE] if with_yardsticks else [])]
    reason = apache_kafka.missing()
    if reason:
        return taking_part, [f"Apache Kafka left out: {reason}"]
    return [*taking_part, KAFKA], [f"Apache Kafka {apache_kafka.version()}"]


def run_produce(rounds: int) -> None:
    """Produce with acks=all: three batch sizes, none and zstd, idempotent or not."""
    cases = [
        (batch, compression, idempotent)
        for batch in BATCHES
        for compression in ("none", "zstd")
        for idempotent in (False, True)
    ]
    taking_part, notes = contenders(with_yardsticks=True)
    rates: dict[tuple[tuple[str, str, bool], str], list[float]] = {}
    cores: dict[tuple[tuple[str, str, bool], str], list[float]] = {}
    with workspace() as space:
        for round_ in range(rounds):
            for contender in taking_part:
                with contender.start(folder_in(space)) as (port, pid):
                    for case in cases:
                        meter = Meter(pid)
                        rate = _produce(port, case, topic=_topic(contender, case))
                        rates.setdefault((case, contender.name), []).append(rate)
                        cores.setdefault((case, contender.name), []).append(meter.cores())
                print(f"round {round_ + 1} of {rounds}: {contender.name} done", flush=True)
    rows = [_produce_row(case, taking_part, rates, cores) for case in cases]
    settings = {"acks": "all", "partitions": PARTITIONS, "record_bytes": RECORD_BYTES, "linger_ms": 5}
    settings |= {"floe": "default settings, folder store, fsync on", "notes": notes}
    save("produce", command="./dev bench produce", settings=settings, rows=rows)


def run_fetch(rounds: int) -> None:
    """Consume what was just produced from the tail cache, and again with every cache cold."""
    taking_part, notes = contenders(with_yardsticks=False)
    rates: dict[tuple[str, str], list[float]] = {}
    with workspace() as space:
        for round_ in range(rounds):
            for contender in taking_part:
                _fetch_round(contender, folder_in(space), rates)
                print(f"round {round_ + 1} of {rounds}: {contender.name} done", flush=True)
    rows: list[dict[str, object]] = []
    for source in ("tail", "cold"):
        row: dict[str, object] = {"from": source}
        for contender in taking_part:
            row[f"{contender.name} MB/s"] = spread(rates[source, contender.name])
        rows.append(row | _ratios(row, taking_part))
    settings = {
        "partitions": PARTITIONS,
        "record_bytes": RECORD_BYTES,
        "batch_bytes": 131_072,
        "notes": notes,
    }
    save("fetch", command="./dev bench fetch", settings=settings, rows=rows)


def _topic(contender: Contender, case: tuple[str, str, bool]) -> str:
    """The yardsticks know one topic only; real brokers get a fresh one per case."""
    if contender in (NULL, REFERENCE):
        return "bench"
    return "bench-" + "-".join(str(part).replace(" ", "") for part in case)


def _produce(port: int, case: tuple[str, str, bool], *, topic: str) -> float:
    batch, compression, idempotent = case
    # A short run first: topics are created and connections opened outside the measurement.
    for records in (2_000, RECORDS[batch]):
        done = load.produce(
            port,
            topic=topic,
            partitions=PARTITIONS,
            records=records,
            size=RECORD_BYTES,
            rdkafka_batch_size=BATCHES[batch],
            rdkafka_compression_codec=compression,
            rdkafka_enable_idempotence=str(idempotent).lower(),
            rdkafka_acks="all",
            rdkafka_linger_ms=5,
        )
    return done["mb_per_s"]


def _produce_row(
    case: tuple[str, str, bool],
    taking_part: Sequence[Contender],
    rates: dict[tuple[tuple[str, str, bool], str], list[float]],
    cores: dict[tuple[tuple[str, str, bool], str], list[float]],
) -> dict[str, object]:
    batch, compression, idempotent = case
    row: dict[str, object] = {"batch": batch, "compression": compression, "idempotent": idempotent}
    for contender in taking_part:
        row[f"{contender.name} MB/s"] = spread(rates[case, contender.name])
        row[f"{contender.name} cores"] = spread(cores[case, contender.name])["median"]
    row |= _ratios(row, taking_part)
    if NULL in taking_part:
        row["null to C reference"] = _ratio(row, NULL, REFERENCE)
    return row


def _ratios(row: dict[str, object], taking_part: Sequence[Contender]) -> dict[str, object]:
    others = [contender for contender in taking_part if contender is not FLOE_SERVE]
    return {f"floe to {other.name}": _ratio(row, FLOE_SERVE, other) for other in others}


def _ratio(row: dict[str, object], above: Contender, below: Contender) -> float:
    rates = [row[f"{contender.name} MB/s"] for contender in (above, below)]
    assert isinstance(rates[0], dict)
    assert isinstance(rates[1], dict)
    return round(float(rates[0]["median"]) / float(rates[1]["median"]), 2)


def _fetch_round(contender: Contender, folder: Path, rates: dict[tuple[str, str], list[float]]) -> None:
    common = {"topic": "bench", "partitions": PARTITIONS}
    small, large = 60_000, 1_000_000
    with contender.start(folder) as (port, _):
        _fill(port, "tail", small)
        tail = load.consume(port, topic="tail", partitions=PARTITIONS, records=small)
        tails = [tail["mb_per_s"]]
        tails += [
            load.consume(port, topic="tail", partitions=PARTITIONS, records=small)["mb_per_s"] for _ in "12"
        ]
        rates.setdefault(("tail", contender.name), []).append(sorted(tails)[1])
        _fill(port, str(common["topic"]), large)
    _drop_page_cache(folder)
    with contender.start(folder) as (port, _):
        cold = load.consume(port, records=large // 2, **common)
        rates.setdefault(("cold", contender.name), []).append(cold["mb_per_s"])


def _fill(port: int, topic: str, records: int) -> None:
    load.produce(
        port,
        topic=topic,
        partitions=PARTITIONS,
        records=records,
        size=RECORD_BYTES,
        rdkafka_batch_size=131_072,
        rdkafka_acks="all",
        rdkafka_linger_ms=5,
    )


def _drop_page_cache(folder: Path) -> None:
    """Make the next reads come from the disk: by file, so that no special rights are needed."""
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
