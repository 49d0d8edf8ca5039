"""What all connections and handlers of one broker's Kafka front door share."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from floe.kafka.call import Route
from floe.kafka.fetch_session import FetchSessions
from floe.kafka.kept_answers import KeptAnswers
from floe.kafka.memory_budget import MemoryBudget
from floe.kafka.settings import MIB, DoorSettings
from floe.kafka.topic_lookup import TopicLookup
from floe.metadata.api import Metadata
from floe.observability.clock import Clock
from floe.observability.kafka_counters import KafkaCounters
from floe.observability.logs import Sparing

if TYPE_CHECKING:
    from floe.kafka.connection import Connection
    from floe.object_log.engine import ObjectLog

_FETCH_BYTES_MIN = MIB  # what a fetch may always have, however much peers leave unread


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """How this broker is known to clients."""

    broker_id: int
    cluster_id: str
    host: str
    port: int
    rack: str | None = None


class IdSource(Protocol):
    """Where session ids come from: a seeded `random.Random`."""

    def getrandbits(self, k: int, /) -> int: ...


class Door:
    """The shared state of one front door; belongs to one event loop."""

    def __init__(
        self,
        *,
        settings: DoorSettings,
        facts: BrokerFacts,
        metadata: Metadata,
        log: "ObjectLog",
        clock: Clock,
        random: IdSource,
        counters: KafkaCounters,
        routes: Mapping[int, Route],
    ) -> None:
        self.settings = settings
        self.facts = facts
        self.metadata = metadata
        self.log = log
        self.clock = clock
        self.counters = counters
        self.routes = routes
        self.loop = asyncio.get_running_loop()
        self.budget = MemoryBudget(settings.request_memory_max)
        self.topics = TopicLookup(metadata.topics, settings.batch_bytes_max)
        self.fetch_sessions = FetchSessions(
            limit=settings.fetch_sessions_max, idle_ms=settings.fetch_session_idle_ms, random=random
        )
        self.answers = KeptAnswers()
        self.unread_bytes = 0  # answers that peers have not read yet
        self.sparing = Sparing()
        self.connections: dict[Connection, None] = {}  # a set, oldest first
        self._none_left: asyncio.Event | None = None

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection; False when there are too many."""
        self.counters.connections_total += 1
        if len(self.connections) >= self.settings.connections_max:
            return False
        self.connections[connection] = None
        self.counters.connections = len(self.connections)
        return True

    def forget(self, connection: "Connection") -> None:
        self.connections.pop(connection, None)
        self.counters.connections = len(self.connections)
        if not self.connections and self._none_left is not None:
            self._none_left.set()

    async def all_gone(self) -> None:
        """Return when no connection is left."""
        if self.connections:
            self._none_left = asyncio.Event()
            await self._none_left.wait()

    def fetch_allowance(self, asked: int) -> int:
        """How many bytes a Fetch answer may have: less as unread answers pile up, which bounds them."""
        room = (self.settings.response_memory_max - self.unread_bytes) // 4
        return max(0, min(asked, self.settings.fetch_bytes_max, max(room, _FETCH_BYTES_MIN)))
