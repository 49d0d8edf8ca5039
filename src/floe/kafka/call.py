"""One request on its way through the front door, and the table entry of its API."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any

from floe.observability.kafka_counters import LatencyCounts
from floe.wire.kafka.apis import ApiSpec
from floe.wire.kafka.framing import frame, response_frame, write_response_header
from floe.wire.kafka.schema.fields import Buffer, Struct

if TYPE_CHECKING:
    from floe.kafka.connection import Connection
    from floe.kafka.door import Door

Pieces = list[Buffer]  # a whole answer with length and header, sent one after the other without copying
Outcome = Pieces | Coroutine[Any, Any, Pieces] | None
"""What a handler returns: the answer; or work that will return it; or None, and `Call.finish` comes later."""

NO_ANSWER: Pieces = []  # Produce with acks=0: the client expects nothing


class Order(Enum):
    """How requests of one API stand to the others of their connection.

    Answers always leave in the order of the requests. A request that starts only when it is first in line
    sees everything that was asked before it, as in Kafka, where a connection has one request under way.
    """

    AT_ONCE = "at once"  # starts on arrival: Produce, whose order the engine keeps
    IN_TURN = "in turn"  # starts when first in line; does not hold up an AT_ONCE request behind it: Fetch
    ALONE = "alone"  # starts when first in line; AT_ONCE requests behind it wait: it may change what they see


class Route:
    """What the connection must know of one API to take a request of it."""

    __slots__ = ("handler", "latency", "order", "spec")

    def __init__(
        self, spec: ApiSpec, order: Order, handler: "Callable[[Door, Call], Outcome]", latency: LatencyCounts
    ) -> None:
        self.spec = spec
        self.order = order
        self.handler = handler
        self.latency = latency


class Call:
    """One request from its arrival to its answer; `answer` is None until then."""

    __slots__ = (
        "answer", "arrived", "body", "connection", "correlation_id", "is_started", "route", "size", "task",
        "version", )  # fmt: skip

    def __init__(
        self,
        connection: "Connection",
        route: Route,
        version: int,
        correlation_id: int,
        body: memoryview,
        size: int,
        arrived: float,
    ) -> None:
        self.connection = connection
        self.route = route
        self.version = version
        self.correlation_id = correlation_id
        self.body = body
        self.size = size
        self.arrived = arrived
        self.answer: Pieces | None = None
        self.is_started = False
        self.task: asyncio.Task[Pieces] | None = None

    def encode(self, message: Struct) -> Pieces:
        """The answer that this message makes."""
        return response_frame(self.route.spec, self.version, self.correlation_id, message)

    def with_head(self, body: Pieces, *, version: int | None = None) -> Pieces:
        """The answer that an encoded body makes."""
        answered = self.version if version is None else version
        return frame([write_response_header(self.route.spec, answered, self.correlation_id), *body])

    def finish(self, pieces: Pieces) -> None:
        """The answer is there; also called, once, when its connection is gone."""
        self.connection.finished(self, pieces)

    def fail(self, reason: str, **facts: object) -> None:
        """End the connection instead of answering."""
        self.connection.failed(self, reason, **facts)
