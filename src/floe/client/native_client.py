"""A client of the native port: typed unary calls, many at a time over one connection.

A call that gets no answer because the connection ended raises `Unavailable`; its outcome is then unknown.
Calls that a broker refuses raise `Rejected` with Kafka's code and the broker's sentence.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Self, TypeVar, cast

from typing_extensions import override

from floe.model.coordinates import RangeView
from floe.model.errors import FloeError, Unavailable
from floe.model.ids import Offset, RangeId
from floe.model.topic import Topic
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.wire.native import ClientHandshake, Frame, Kind, Method, NativeDecoder, NativeEncoder
from floe.wire.native.calls import (
    ClaimWork,
    ClaimWorkReply,
    ClusterInfo,
    ClusterInfoReply,
    DescribeTopics,
    DescribeTopicsReply,
    Find,
    FindItem,
    FindReply,
    FindTimestamp,
    FindTimestampReply,
    FinishWork,
    ListOffsets,
    ListOffsetsReply,
    RangeEnds,
    decode_error,
    decode_reply,
    encode_payload,
)
from floe.wire.native.frames import CALL_ID_MAX
from floe.wire.native.handshake import NONCE_SIZE
from floe.wire.native.values import WireValue, WorkItemValue

CONNECT_SECONDS = 10.0
CALL_SECONDS = 30.0
Reply = TypeVar("Reply", bound=WireValue)


class NativeClient:
    """One connection to one broker's native port."""

    def __init__(self, connection: "_Connection") -> None:
        self._connection = connection

    @classmethod
    async def connect(
        cls, host: str, port: int, secret: bytes, *, nonce: Callable[[int], bytes] = os.urandom
    ) -> "NativeClient":
        """Connect and prove that both sides know the secret; raises `Rejected` or `Unavailable`."""
        loop = asyncio.get_running_loop()
        handshake = ClientHandshake(secret, nonce(NONCE_SIZE))
        connection = _Connection(handshake, loop.create_future())
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(lambda: connection, host, port)
                await connection.ready
        except (OSError, TimeoutError) as error:
            connection.close()
            raise Unavailable(f"cannot reach the native port at {host}:{port}: {error}") from error
        return cls(connection)

    async def close(self) -> None:
        self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_reason: object) -> None:
        await self.close()

    async def cluster_info(self) -> ClusterInfoReply:
        return await self._call(Method.CLUSTER_INFO, ClusterInfo(), ClusterInfoReply)

    async def describe_topics(self, names: Sequence[str] | None = None) -> list[Topic]:
        """The named topics that exist; all of them for None."""
        request = DescribeTopics(None if names is None else tuple(names))
        reply = await self._call(Method.DESCRIBE_TOPICS, request, DescribeTopicsReply)
        return [topic.value() for topic in reply.topics]

    async def find(
        self, requests: Sequence[tuple[RangeId, Offset, int]], *, wait_ms: int = 0
    ) -> list[RangeView]:
        """(range, offset, about how many bytes of rows) to views, in order."""
        items = tuple(FindItem(range_id, offset, max_bytes) for range_id, offset, max_bytes in requests)
        reply = await self._call(Method.FIND, Find(items, wait_ms), FindReply, wait_ms=wait_ms)
        return [view.value() for view in reply.views]

    async def find_timestamp(self, range_id: RangeId, timestamp: int) -> RangeView:
        reply = await self._call(
            Method.FIND_TIMESTAMP, FindTimestamp(range_id, timestamp), FindTimestampReply
        )
        return reply.view.value()

    async def ends(self, ranges: Sequence[RangeId]) -> tuple[RangeEnds, ...]:
        """Both ends of each range, in order."""
        reply = await self._call(Method.LIST_OFFSETS, ListOffsets(tuple(ranges)), ListOffsetsReply)
        return reply.ends

    async def claim_work(self, worker: str, kinds: Sequence[WorkKind], limit: int) -> list[WorkItem]:
        request = ClaimWork(worker, tuple(kinds), limit)
        reply = await self._call(Method.CLAIM_WORK, request, ClaimWorkReply)
        return [item.value() for item in reply.items]

    async def finish_work(self, item: WorkItem, result: WorkResult) -> None:
        request = FinishWork(WorkItemValue.of(item), tuple(result.done))
        await self._call(Method.FINISH_WORK, request, WireValue)

    async def _call(
        self, method: Method, request: WireValue, reply_type: type[Reply], *, wait_ms: int = 0
    ) -> Reply:
        try:
            async with asyncio.timeout(CALL_SECONDS + wait_ms / 1000):
                frame = await self._connection.call(method, encode_payload(request))
        except TimeoutError as error:
            raise Unavailable(f"no answer to {method.name} in time") from error
        if frame.kind is Kind.ERROR:
            raise decode_error(frame.payload).error()
        reply = decode_reply(method, frame.payload)
        assert isinstance(reply, reply_type)
        return reply


class _Connection(asyncio.Protocol):
    """The handshake and the calls under way."""

    def __init__(self, handshake: ClientHandshake, ready: asyncio.Future[None]) -> None:
        self.ready = ready
        self._handshake = handshake
        self._encoder: NativeEncoder | None = None
        self._decoder: NativeDecoder | None = None
        self._transport: asyncio.Transport | None = None
        self._answers: dict[int, asyncio.Future[Frame]] = {}
        self._last_id = 0
        self._end: FloeError | None = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def call(self, method: Method, payload: bytes) -> Frame:
        """Send a request and wait for its response or error."""
        if self._end is not None or self._encoder is None or self._transport is None:
            raise self._end or Unavailable("the connection is not open")
        self._last_id = self._last_id + 1 if self._last_id < CALL_ID_MAX else 1
        call_id = self._last_id
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._answers[call_id] = answer
        try:
            self._transport.write(self._encoder.encode(Kind.REQUEST, method, call_id, payload))
            return await answer
        finally:
            self._answers.pop(call_id, None)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has all of asyncio.Transport, but does not derive from it.
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        try:
            if self._decoder is None:
                data = self._shake_hands(data)
            frames = self._decoder.feed(data) if self._decoder is not None and data else []
        except FloeError as error:
            self._fail(error)
            return
        for frame in frames:
            answer = self._answers.get(frame.call_id)
            if answer is not None and not answer.done():
                answer.set_result(frame)
        if self._decoder is not None and self._decoder.failure is not None:
            self._fail(self._decoder.failure)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(Unavailable("the connection to the broker ended"))

    def _shake_hands(self, data: bytes) -> bytes:
        handshake = self._handshake
        answer = handshake.receive(data)
        if answer and self._transport is not None:
            self._transport.write(answer)
        if handshake.failure is not None:
            raise handshake.failure
        if handshake.session is None:
            return b""
        self._encoder = handshake.session.encoder()
        self._decoder = handshake.session.decoder()
        if not self.ready.done():
            self.ready.set_result(None)
        return handshake.leftover

    def _fail(self, error: FloeError) -> None:
        if self._end is not None:
            return
        self._end = error
        if not self.ready.done():
            self.ready.set_exception(error)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)
        self.close()
