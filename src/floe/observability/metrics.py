"""Every metric of a broker, by name, unit and label; one `Metrics` per broker, never a global registry."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_BYTES = (1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 23, 1 << 24, 1 << 26)


class Metrics:
    """Components take this object and record; nothing reads it but `/metrics` and tests."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._kafka()
        self._objects()
        self._engine()
        self._metadata()

    def _kafka(self) -> None:
        r = self.registry
        self.connections = Gauge("floe_kafka_connections", "Open Kafka connections", registry=r)
        self.requests = Counter("floe_kafka_requests_total", "Requests", ["api"], registry=r)
        self.request_seconds = Histogram(
            "floe_kafka_request_seconds", "Time to answer", ["api"], buckets=_SECONDS, registry=r
        )
        self.request_errors = Counter(
            "floe_kafka_request_errors_total",
            "Requests refused or closed for a protocol reason",
            ["reason"],
            registry=r,
        )
        self.bytes_in = Counter("floe_kafka_received_bytes_total", "Bytes received", registry=r)
        self.bytes_out = Counter("floe_kafka_sent_bytes_total", "Bytes sent", registry=r)
        self.records_in = Counter("floe_kafka_produced_records_total", "Records committed", registry=r)
        self.request_memory = Gauge("floe_kafka_request_memory_bytes", "Bytes of requests held", registry=r)

    def _objects(self) -> None:
        r = self.registry
        self.object_requests = Counter(
            "floe_object_store_requests_total", "Calls to the store", ["op", "result"], registry=r
        )
        self.object_seconds = Histogram(
            "floe_object_store_request_seconds", "Time of a call", ["op"], buckets=_SECONDS, registry=r
        )
        self.object_bytes = Counter("floe_object_store_bytes_total", "Bytes moved", ["op"], registry=r)
        self.object_retries = Counter("floe_object_store_retries_total", "Repeated calls", ["op"], registry=r)

    def _engine(self) -> None:
        r = self.registry
        self.write_object_bytes = Histogram(
            "floe_write_object_bytes", "Size of written objects", buckets=_BYTES, registry=r
        )
        self.write_object_batches = Histogram(
            "floe_write_object_batches_count",
            "Batches per object",
            buckets=(1, 4, 16, 64, 256, 1024),
            registry=r,
        )
        self.upload_seconds = Histogram("floe_write_upload_seconds", "Upload", buckets=_SECONDS, registry=r)
        self.commit_seconds = Histogram(
            "floe_write_commit_seconds", "Commit of one vnode's part", buckets=_SECONDS, registry=r
        )
        self.cache_requests = Counter(
            "floe_read_cache_requests_total", "Cache look-ups", ["cache", "result"], registry=r
        )
        self.cache_bytes = Gauge("floe_read_cache_bytes", "Bytes held", ["cache"], registry=r)

    def _metadata(self) -> None:
        r = self.registry
        self.coordinator_seconds = Histogram(
            "floe_coordinator_seconds", "Time of a coordinator call", ["op"], buckets=_SECONDS, registry=r
        )
        self.group_commit_writes = Histogram(
            "floe_group_commit_writes_count",
            "Rows per group commit",
            buckets=(1, 4, 16, 64, 256, 1024, 4096),
            registry=r,
        )
        self.retention_lag_seconds = Gauge(
            "floe_retention_lag_seconds", "Age of the oldest overdue drop", registry=r
        )
        self.pending_deletes = Gauge(
            "floe_objects_pending_delete_count", "Objects waiting for deletion", registry=r
        )
        self.last_success = Gauge(
            "floe_last_success_timestamp_seconds", "Last success of a background job", ["job"], registry=r
        )
