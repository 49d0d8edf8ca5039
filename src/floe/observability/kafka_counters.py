"""Counts of the Kafka front door as plain numbers, turned into metrics only when somebody asks.

The front door adds to these on every request; a labelled counter of a metrics library would cost more than
the request's own dispatch.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class LatencyCounts:
    """How long calls of one kind took, by bucket; the length of the sum of counts is the number of calls."""

    __slots__ = ("buckets", "total_seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(SECONDS) + 1)
        self.total_seconds = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(SECONDS, seconds)] += 1
        self.total_seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.buckets)


class KafkaCounters:
    """Everything the front door counts; written by one event loop."""

    def __init__(self) -> None:
        self.latency: dict[str, LatencyCounts] = {}
        self.errors: dict[str, int] = {}  # by reason, from a fixed set in the code
        self.bytes_in = 0
        self.bytes_out = 0
        self.records_in = 0
        self.connections = 0
        self.connections_total = 0
        self.request_memory_source: Callable[[], int] = int  # bytes of requests held now
        self.paused_connections = 0

    def latency_of(self, api: str) -> LatencyCounts:
        """The counts of one API; kept by the caller, so that a request costs no look-up."""
        return self.latency.setdefault(api, LatencyCounts())

    def error(self, reason: str) -> None:
        self.errors[reason] = self.errors.get(reason, 0) + 1


class KafkaCollector(Collector):
    """Shows `KafkaCounters` to a metrics registry."""

    def __init__(self, counters: KafkaCounters) -> None:
        self._counters = counters

    @override
    def collect(self) -> Iterable[Metric]:
        counts = self._counters
        yield from self._calls(counts)
        errors = CounterMetricFamily(
            "floe_kafka_request_errors",
            "Requests refused or connections closed, by reason",
            labels=["reason"],
        )
        for reason, count in counts.errors.items():
            errors.add_metric([reason], count)
        yield errors
        yield CounterMetricFamily("floe_kafka_received_bytes", "Bytes received", value=counts.bytes_in)
        yield CounterMetricFamily("floe_kafka_sent_bytes", "Bytes sent", value=counts.bytes_out)
        yield CounterMetricFamily(
            "floe_kafka_produced_records", "Records acknowledged to producers", value=counts.records_in
        )
        yield CounterMetricFamily(
            "floe_kafka_connections_opened", "Connections accepted", value=counts.connections_total
        )
        yield GaugeMetricFamily("floe_kafka_connections", "Open connections", value=counts.connections)
        yield GaugeMetricFamily(
            "floe_kafka_paused_connections",
            "Connections not read for want of room",
            counts.paused_connections,
        )
        yield GaugeMetricFamily(
            "floe_kafka_request_memory_bytes", "Bytes of requests held", value=counts.request_memory_source()
        )

    def _calls(self, counts: KafkaCounters) -> Iterable[Metric]:
        requests = CounterMetricFamily("floe_kafka_requests", "Requests answered", labels=["api"])
        seconds = HistogramMetricFamily("floe_kafka_request_seconds", "Time to answer", labels=["api"])
        for api, latency in counts.latency.items():
            requests.add_metric([api], latency.count)
            seconds.add_metric([api], _cumulative(latency), latency.total_seconds)
        yield requests
        yield seconds


def _cumulative(latency: LatencyCounts) -> list[tuple[str, float]]:
    total = 0
    rows: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, SECONDS), "+Inf"), latency.buckets, strict=True):
        total += count
        rows.append((bound, total))
    return rows
