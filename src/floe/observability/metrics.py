"""Every metric of a broker, by name, unit and label; one `Metrics` per broker, never a global registry."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from floe.observability.kafka_counters import SECONDS, KafkaCollector, KafkaCounters

_SECONDS = SECONDS
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
        self.kafka = KafkaCounters()
        self.registry.register(KafkaCollector(self.kafka))

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
        self.write_pending_bytes = Gauge(
            "floe_write_pending_bytes", "Bytes buffered, uploading or waiting for a commit", registry=r
        )
        self.objects_deleted = Counter("floe_objects_deleted_total", "Objects deleted", registry=r)

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
