"""What the Kafka front door can be told; filled in by `floe.server` from the settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorSettings:
    """Bounds and habits of the front door. Sizes in bytes, times in milliseconds."""

    request_bytes_max: int = 100 * MIB  # one request
    request_memory_max: int = 256 * MIB  # all requests of all connections that are under way
    connection_requests_max: int = 1024  # requests of one connection that are under way
    connection_bytes_max: int = 64 * MIB  # bytes of those requests, or one request if that is larger
    connection_idle_ms: int = 600_000  # a silent connection is closed after this long
    connections_max: int = 10_000
    response_memory_max: int = 256 * MIB  # answers that peers have not read yet; fetches shrink as it fills
    fetch_bytes_max: int = 55 * MIB  # one Fetch answer, whatever the client asks for
    fetch_sessions_max: int = 1000
    fetch_session_idle_ms: int = 120_000  # a session unused for so long may be replaced by a new one
    batch_bytes_max: int = MIB + 12  # a topic's max.message.bytes where it sets none
    auto_create_topics: bool = True
    partitions_default: int = 1
    topic_config: Mapping[str, str] = field(default_factory=dict)  # of new topics, unless they say otherwise
