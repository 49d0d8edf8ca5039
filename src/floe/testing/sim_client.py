"""A small Kafka client for the simulator: one connection, pipelined requests, answers in order.

It speaks the wire format through `floe.wire.kafka`, at versions drawn from the seed, and knows nothing of the
broker. What an unanswered request did is unknown to it, as to any client.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from struct import Struct
from typing import Any

from typing_extensions import override

from floe.model.errors import Corrupt
from floe.model.ids import TopicId
from floe.testing.sim_history import History
from floe.testing.sim_loop import SimLoop
from floe.testing.sim_trace import Trace
from floe.wire.kafka.apis import SERVED, ApiKey
from floe.wire.kafka.framing import read_response_header, request_frame
from floe.wire.kafka.messages import decode_response

_LENGTH = Struct(">i")
CONNECT_SECONDS = 5.0
RETRY_SECONDS = 0.2


class LinkLost(Exception):
    """The connection is gone; what the unanswered requests did is unknown."""


@dataclass(slots=True)
class ClientEnv:
    """What all clients of a world share."""

    loop: SimLoop
    history: History
    trace: Trace
    host: str
    port: int
    request_seconds: float = 5.0  # a request unanswered for so long is given up with its connection
    slowness: float = 1.0  # stretches the pauses of every client
    delete_records: Callable[[str, int, int], Awaitable[bool]] | None = None  # while the door has no such API
    topics: dict[str, TopicId] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # answers that no correct broker gives

    def name_of(self, topic_id: TopicId) -> str:
        """The topic's name, or "" for an id that this world never saw."""
        return next((name for name, known in self.topics.items() if known == topic_id), "")

    def problem(self, text: str) -> None:
        self.trace.add(f"problem {text}")
        self.problems.append(f"{self.loop.time():.3f} {text}")


class KafkaLink(asyncio.Protocol):
    """One connection. Requests wait in order of sending; an answer out of order is a problem."""

    def __init__(self, env: ClientEnv, client_id: str) -> None:
        self._env = env
        self._client_id = client_id
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: deque[tuple[int, ApiKey, int, asyncio.Future[Any]]] = deque()
        self._correlation = 0
        self.is_lost = False

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            size = _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < 4 + size:
                return
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self._answered(frame)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        waiting, self._waiting = self._waiting, deque()
        for *_, answer in waiting:
            _lose(answer, str(exc))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def request(self, api: ApiKey, version: int, message: Any) -> asyncio.Future[Any]:  # noqa: ANN401
        """The future of the decoded answer; fails with `LinkLost`."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.is_lost or self._transport is None:
            _lose(answer, "not connected")
            return answer
        self._correlation += 1
        self._waiting.append((self._correlation, api, version, answer))
        pieces = request_frame(SERVED[api], version, self._correlation, self._client_id, message)
        self._transport.write(b"".join(pieces))
        return answer

    def _answered(self, frame: bytes) -> None:
        view = memoryview(frame)
        if not self._waiting:
            self._complain("an answer that nobody waits for")
            return
        expected, api, version, answer = self._waiting.popleft()
        try:
            correlation, position = read_response_header(SERVED[api], version, view)
            message = decode_response(api, version, view[position:])
        except Corrupt as failure:
            self._complain(f"an answer to {SERVED[api].name} v{version} that does not decode: {failure}")
            return
        if correlation != expected:
            self._complain(f"answer {correlation} where {expected} is next")
        elif not answer.done():
            answer.set_result(message)

    def _complain(self, what: str) -> None:
        self._env.problem(f"{self._client_id} got {what}")
        self.close()


def _lose(answer: asyncio.Future[Any], why: str) -> None:
    if not answer.done():
        answer.set_exception(LinkLost(why))
        answer.exception()  # retrieved here, since the asker may have gone


class SimClient:
    """A client with at most one connection, opened again when it is lost."""

    def __init__(self, env: ClientEnv, name: str, rng: Random) -> None:
        self.env = env
        self.name = name
        self.rng = rng
        self._link: KafkaLink | None = None
        self._versions: dict[ApiKey, int] = {}

    @property
    def now(self) -> float:
        return self.env.loop.time()

    def version(self, api: ApiKey) -> int:
        """Drawn once per client and API."""
        if api not in self._versions:
            spec = SERVED[api]
            self._versions[api] = self.rng.randint(spec.min_version, spec.max_version)
        return self._versions[api]

    async def link(self) -> KafkaLink:
        """The live connection, or a new one; raises `LinkLost`."""
        if self._link is not None and not self._link.is_lost:
            return self._link
        self._link = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, link = await self.env.loop.create_connection(
                    lambda: KafkaLink(self.env, self.name), self.env.host, self.env.port
                )
        except (OSError, TimeoutError) as failure:
            raise LinkLost(str(failure)) from None
        assert isinstance(link, KafkaLink)
        self._link = link
        return link

    def drop_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    async def ask(self, api: ApiKey, message: Any, *, version: int | None = None) -> Any:  # noqa: ANN401
        """One request and its answer; raises `LinkLost`, after which the connection is gone."""
        link = await self.link()
        answer = link.request(api, self.version(api) if version is None else version, message)
        try:
            async with asyncio.timeout(self.env.request_seconds):
                return await answer
        except TimeoutError:
            self.drop_link()
            raise LinkLost("no answer in time") from None

    async def pause(self, seconds: float) -> None:
        """Between two operations; long during a lull."""
        await asyncio.sleep(seconds * self.env.slowness)

    async def rest(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, RETRY_SECONDS))

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.drop_link()
