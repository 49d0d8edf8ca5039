"""Settings in, parts out: the only place that chooses adapters."""

import random
from dataclasses import replace
from pathlib import Path

from floe.config.errors import SettingsError
from floe.config.settings import Settings
from floe.kafka.settings import DoorSettings
from floe.metadata.store.local import LocalStore
from floe.metadata.store.memory import MemoryStore
from floe.metadata.store.port import Store
from floe.model.errors import FloeError
from floe.object_log.settings import EngineSettings
from floe.observability.clock import Clock, SystemClock
from floe.observability.metrics import Metrics
from floe.server.data_folder import DataFolder
from floe.server.errors import CannotStart
from floe.server.parts import Parts
from floe.storage.kv.rocks import RocksKeyValue
from floe.storage.objects.open import open_objects


def parts_from(settings: Settings) -> Parts:
    """Open the adapters that the settings name; raises `CannotStart` or `SettingsError`.

    Blocks for as long as it takes to open the metadata.
    """
    clock: Clock = SystemClock()
    metrics = Metrics()
    chance = random.SystemRandom()
    is_memory = settings.store.metadata == "memory"
    url = settings.objects_url
    if is_memory and settings.store.url is None:
        url = "memory://"
    if is_memory and not url.startswith("memory:"):
        raise SettingsError(
            f"metadata.store=memory with store.url={url}: the objects would outlive all knowledge of them",
            hint="leave metadata.store at local, or use store.url=memory://",
        )
    folder = None if is_memory else DataFolder(settings.broker.data_dir.absolute())
    try:
        objects = open_objects(url, clock=clock, random=chance, metrics=metrics)
        store = MemoryStore() if folder is None else _local(folder.metadata_path)
    except ValueError as error:
        raise SettingsError(str(error), hint="for example --store s3://bucket/prefix") from error
    return Parts(clock=clock, random=chance, objects=objects, store=store, metrics=metrics, folder=folder)


def _local(path: Path) -> Store:
    try:
        return LocalStore(RocksKeyValue(path))
    except (FloeError, OSError) as error:
        raise CannotStart(f"cannot open the metadata in {path}: {error}", hint="check the disk") from error


def engine_settings(settings: Settings) -> EngineSettings:
    """The engine's settings: defaults by the kind of store, then what was said."""
    base = EngineSettings.for_cloud() if settings.store.is_cloud else EngineSettings.for_files()
    produce, consume = settings.produce, settings.consume
    given = {
        "uploads_eager": produce.uploads_eager,
        "uploads_max": produce.uploads_max,
        "commit_min_interval_ms": produce.commit_min_interval_ms,
        "commit_interval_ms": produce.commit_interval_ms,
        "buffer_bytes_max": produce.buffer_bytes_max,
        "produce_timeout_ms": produce.timeout_ms,
        "hot_cache_bytes": consume.cache_bytes_max,
        "cold_cache_bytes": consume.cold_cache_bytes_max,
        "delete_interval_ms": settings.background.cleaner_interval_ms,
    }
    # The front door stops reading first; appends are refused only when it could not hold them back.
    pending = max(base.pending_bytes_max, 2 * settings.sockets.request_memory_max)
    known = {name: value for name, value in given.items() if value is not None}
    return replace(base, pending_bytes_max=pending, **known)


def door_settings(settings: Settings) -> DoorSettings:
    """The Kafka front door's settings."""
    sockets, topics = settings.sockets, settings.topics
    return DoorSettings(
        request_bytes_max=sockets.request_bytes_max,
        request_memory_max=sockets.request_memory_max,
        connection_requests_max=sockets.connection_requests_max,
        connection_bytes_max=sockets.connection_bytes_max,
        connection_idle_ms=sockets.connection_idle_ms,
        connections_max=sockets.connections_max,
        response_memory_max=sockets.response_memory_max,
        fetch_bytes_max=sockets.fetch_bytes_max,
        fetch_sessions_max=sockets.fetch_sessions_max,
        batch_bytes_max=topics.message_bytes_max,
        auto_create_topics=topics.auto_create,
        partitions_default=topics.partitions,
        topic_config=_topic_config(settings),
    )


def _topic_config(settings: Settings) -> dict[str, str]:
    """What new topics get unless they say otherwise: only what was set here."""
    given = settings.topics.model_fields_set
    config: dict[str, str] = {}
    if "retention_ms" in given:
        config["retention.ms"] = str(settings.topics.retention_ms)
    if "retention_bytes" in given:
        config["retention.bytes"] = str(settings.topics.retention_bytes)
    return config
