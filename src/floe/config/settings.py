"""Every setting of a broker: its key, type, bounds, default and what it is for.

A setting has one dotted key, Kafka's own where Kafka has the same thing. The key's last word is its unit.
What nobody should tune is a constant in the code instead.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from floe.config.address import Address, ListenAddress, OptionalAddress
from floe.config.units import Bytes, Ms

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
DAY_MS = 24 * 3_600_000


def setting(
    key: str, default: object, text: str, *, least: int | None = None, most: int | None = None
) -> Any:  # noqa: ANN401 - as pydantic's own
    """One setting; `text` is its paragraph in the reference."""
    return Field(default, alias=key, description=text, ge=least, le=most)


class Group(BaseModel):
    """Settings of one concern."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class BrokerSettings(Group):
    """The broker and its folder."""

    data_dir: Path = setting(
        "data.dir",
        Path(".floe"),
        "Folder for the broker's own files: metadata, and objects unless `store.url` says otherwise. One "
        "broker at a time.",
    )
    node_id: int = setting("node.id", 1, "The broker's number, as clients see it.", least=0, most=2**31 - 1)
    rack: str | None = setting(
        "broker.rack", None, "The zone of this broker, told to clients. By default none."
    )
    drain_ms: Ms = setting(
        "shutdown.drain.ms",
        10_000,
        "How long a stopping broker goes on answering what it has taken.",
        least=0,
        most=600_000,
    )


class ListenerSettings(Group):
    """Ports."""

    kafka: ListenAddress = setting(
        "listeners",
        Address("127.0.0.1", 9092),
        "Where Kafka clients connect: `HOST:PORT`, or `PLAINTEXT://HOST:PORT`. Port 0 takes a free one. "
        "There is no authentication, so the default is reachable from this machine only.",
    )
    advertised: OptionalAddress = setting(
        "advertised.listeners",
        None,
        "The address that clients are told to connect to. By default the listener's own, or this "
        "machine's name when it listens on every interface.",
    )
    http: OptionalAddress = setting(
        "http.listen",
        Address("127.0.0.1", 8080),
        "Where `/metrics`, `/healthz` and `/readyz` are served; `off` for nowhere. When the default port "
        "is taken a free one is used; a port that was asked for must be free.",
    )
    native: OptionalAddress = setting(
        "native.listen",
        Address("127.0.0.1", 9192),
        "Where native clients connect (command line, Spark, other brokers); `off` for nowhere. Taken "
        "ports are handled as for `http.listen`.",
    )
    native_secret_file: Path | None = setting(
        "native.secret.file",
        None,
        "File with the secret that native clients must know. By default `native.secret` in the data "
        "folder, made at the first start.",
    )


class StoreSettings(Group):
    """Where records and metadata rest."""

    url: str | None = setting(
        "store.url",
        None,
        "Object store: `file:///folder`, `s3://bucket/prefix`, `gs://…`, `az://…` or `memory://`. By "
        "default the folder `objects` in the data folder. Credentials come from the store's own "
        "variables, such as `AWS_ACCESS_KEY_ID`.",
    )
    metadata: Literal["local", "memory"] = setting(
        "metadata.store",
        "local",
        "`local` keeps metadata in RocksDB in the data folder; `memory` forgets it at the end.",
    )

    @property
    def is_cloud(self) -> bool:
        """Whether PUTs are billed and take tens of milliseconds, so that defaults differ."""
        return self.url is not None and not self.url.startswith(("file:", "memory:"))


class TopicSettings(Group):
    """Defaults for topics."""

    partitions: int = setting(
        "num.partitions", 1, "Partitions of a topic that is created without a number.", least=1, most=100_000
    )
    auto_create: bool = setting(
        "auto.create.topics.enable", True, "Whether asking for a topic that does not exist creates it."
    )
    message_bytes_max: Bytes = setting(
        "message.max.bytes",
        MIB + 12,
        "Largest record batch, as sent; a topic may set its own `max.message.bytes`.",
        least=KIB,
        most=GIB,
    )
    retention_ms: Ms = setting(
        "log.retention.ms",
        7 * DAY_MS,
        "How long records are kept; -1 keeps them. A topic may set its own `retention.ms`.",
        least=-1,
    )
    retention_bytes: Bytes = setting(
        "log.retention.bytes",
        -1,
        "How much of a partition is kept; -1 for all. A topic may set its own `retention.bytes`.",
        least=-1,
    )


class SocketSettings(Group):
    """Bounds of the Kafka port."""

    request_bytes_max: Bytes = setting(
        "socket.request.max.bytes",
        100 * MIB,
        "Largest request; a longer one ends its connection before any memory is given to it.",
        least=KIB,
        most=2**31 - 1,
    )
    request_memory_max: Bytes = setting(
        "queued.max.request.bytes",
        256 * MIB,
        "Bytes of requests under way, over all connections. When they are spent, connections are not read "
        "until there is room, in turn. It is passed by at most one read (128 KiB) of each connection.",
        least=MIB,
    )
    connection_requests_max: int = setting(
        "connection.max.requests",
        1024,
        "Requests of one connection under way at once.",
        least=1,
        most=100_000,
    )
    connection_bytes_max: Bytes = setting(
        "connection.max.bytes",
        64 * MIB,
        "Bytes of requests of one connection under way at once; the last one may pass it.",
        least=KIB,
    )
    connections_max: int = setting(
        "max.connections", 10_000, "Open connections; more are closed at once.", least=1
    )
    connection_idle_ms: Ms = setting(
        "connections.max.idle.ms",
        600_000,
        "A connection without requests is closed after this time.",
        least=10_000,
    )
    response_memory_max: Bytes = setting(
        "response.memory.max.bytes",
        256 * MIB,
        "Answers that clients have not read yet. As this fills, fetches return less; each may always have "
        "1 MiB.",
        least=MIB,
    )
    fetch_bytes_max: Bytes = setting(
        "fetch.max.bytes",
        55 * MIB,
        "Largest Fetch answer, whatever the client asks for; one batch may be larger.",
        least=KIB,
    )
    fetch_sessions_max: int = setting(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Fetch sessions remembered; other consumers send full requests.",
        least=0,
    )


class ProduceSettings(Group):
    """How records are gathered into objects."""

    commit_interval_ms: Ms = setting(
        "produce.commit.interval.ms",
        250,
        "A buffer is closed and uploaded at the latest after this time.",
        least=1,
        most=60_000,
    )
    commit_min_interval_ms: Ms | None = setting(
        "produce.commit.min.interval.ms",
        None,
        "Least time between two uploads: the knob for the bill of a store that charges for each PUT. By "
        "default 0 for a folder, 100 for a cloud store.",
        least=0,
        most=60_000,
    )
    uploads_eager: int | None = setting(
        "produce.uploads.eager",
        None,
        "While fewer uploads than this are under way, a buffer is closed at once rather than filled. By "
        "default 1 for a folder, 4 for a cloud store.",
        least=1,
        most=256,
    )
    uploads_max: int | None = setting(
        "produce.uploads.max",
        None,
        "Uploads under way at once. By default 4 for a folder, 16 for a cloud store.",
        least=1,
        most=256,
    )
    buffer_bytes_max: Bytes = setting(
        "produce.buffer.max.bytes",
        8 * MIB,
        "A buffer is closed when it holds this much; about the size of an object under load.",
        least=64 * KIB,
        most=GIB,
    )
    timeout_ms: Ms = setting(
        "produce.timeout.ms",
        30_000,
        "A request whose outcome is unknown after this time is answered REQUEST_TIMED_OUT.",
        least=100,
        most=600_000,
    )


class ConsumeSettings(Group):
    """How records are read back."""

    cache_bytes_max: Bytes = setting(
        "consume.cache.max.bytes",
        256 * MIB,
        "Memory for what was written or read lately, so that tail reads cost no GET.",
        least=MIB,
    )
    cold_cache_bytes_max: Bytes | None = setting(
        "consume.cold.cache.max.bytes",
        None,
        "Memory for readers far behind, who do not touch the other cache. By default 128 MiB for a folder, "
        "256 MiB for a cloud store.",
        least=MIB,
    )


class BackgroundSettings(Group):
    """Work that goes on by itself."""

    producer_expiry_ms: Ms = setting(
        "producer.id.expiration.ms",
        DAY_MS,
        "An idempotent producer that wrote nothing for so long is forgotten.",
        least=1000,
    )
    delete_grace_ms: Ms = setting(
        "file.delete.delay.ms",
        60_000,
        "An object that no partition needs is deleted after this time, so that readers under way finish.",
        least=0,
    )
    retention_interval_ms: Ms = setting(
        "log.retention.check.interval.ms",
        300_000,
        "Time between two looks for records that retention may drop.",
        least=100,
    )
    cleaner_interval_ms: Ms = setting(
        "file.cleaner.interval.ms",
        30_000,
        "Time between two looks for objects that may be deleted, when there were none.",
        least=100,
    )


class LoggingSettings(Group):
    """The broker's own log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "logging.level", "info", "Least severe events that are written."
    )
    format: Literal["auto", "json", "text"] = setting(
        "logging.format", "auto", "`auto` writes text to a terminal and JSON elsewhere."
    )


class Settings(BaseModel):
    """All settings of one broker, checked. Made by `floe.config.load`, or by `Settings.of` in tests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    broker: BrokerSettings = BrokerSettings()
    listeners: ListenerSettings = ListenerSettings()
    store: StoreSettings = StoreSettings()
    topics: TopicSettings = TopicSettings()
    sockets: SocketSettings = SocketSettings()
    produce: ProduceSettings = ProduceSettings()
    consume: ConsumeSettings = ConsumeSettings()
    background: BackgroundSettings = BackgroundSettings()
    logging: LoggingSettings = LoggingSettings()

    @model_validator(mode="after")
    def _agree(self) -> "Settings":
        request, memory = self.sockets.request_bytes_max, self.sockets.request_memory_max
        batch = self.topics.message_bytes_max
        if request > memory:
            raise ValueError(
                f"socket.request.max.bytes ({request}) is larger than queued.max.request.bytes ({memory}): "
                "such a request could never be taken"
            )
        if batch > request:
            raise ValueError(
                f"message.max.bytes ({batch}) is larger than socket.request.max.bytes ({request}): such a "
                "batch could never be sent"
            )
        return self

    @classmethod
    def of(cls, values: Mapping[str, object] | None = None) -> "Settings":
        """Settings from dotted keys, with defaults for the rest; raises pydantic's ValidationError."""
        parts: dict[str, dict[str, object]] = {}
        for key, value in (values or {}).items():
            parts.setdefault(KEYS[key][0], {})[key] = value
        return cls.model_validate(parts)

    @property
    def objects_url(self) -> str:
        """The object store's URL, with the default worked out."""
        return self.store.url or (self.broker.data_dir.absolute() / "objects").as_uri()


def _keys() -> Iterator[tuple[str, tuple[str, str, FieldInfo]]]:
    for group, field in Settings.model_fields.items():
        model: Any = field.annotation
        for name, info in model.model_fields.items():
            assert info.alias is not None
            yield info.alias, (group, name, info)


KEYS: dict[str, tuple[str, str, FieldInfo]] = dict(_keys())
"""Every dotted key with its group, attribute and description, in the order of this file."""
