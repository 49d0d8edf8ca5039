"""One native connection: a handshake, then calls that run side by side and are answered as they finish.

Invariants:
- Before its proof a peer holds one small buffer, for a bounded time.
- At most `CALLS_MAX` calls are under way; further frames are not read, and not while the peer leaves
  answers unread.
"""

import asyncio
from typing import Protocol, cast

from typing_extensions import override

from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError
from floe.observability.logs import get_log
from floe.sessions.calls import Calls
from floe.wire.native import ErrorReply, Frame, Kind, NativeDecoder, NativeEncoder, ServerHandshake
from floe.wire.native.calls import decode_call, encode_payload

_log = get_log("native")
CALLS_MAX = 32
HANDSHAKE_SECONDS_MAX = 10.0


class Home(Protocol):
    """The listener that a connection belongs to."""

    calls: Calls

    def admit(self, connection: "NativeConnection") -> bool: ...

    def forget(self, connection: "NativeConnection") -> None: ...


class NativeConnection(asyncio.Protocol):
    """The protocol object of one native client."""

    def __init__(self, home: Home, handshake: ServerHandshake) -> None:
        self._home = home
        self._handshake = handshake
        self._encoder: NativeEncoder | None = None
        self._decoder: NativeDecoder | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[Frame] = []  # decoded and not started, from one read at most
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_choked = False
        self._peer = "?"

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has all of asyncio.Transport, but does not derive from it.
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self._peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "?"
        if not self._home.admit(self):
            self._transport.abort()
            return
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS_MAX, self.abort)
        self._transport.write(self._handshake.greeting)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._home.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        self._waiting.clear()

    @override
    def pause_writing(self) -> None:
        self._is_choked = True
        self._match_flow()

    @override
    def resume_writing(self) -> None:
        self._is_choked = False
        self._start_waiting()

    @override
    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            if self._decoder is None:
                data = self._shake_hands(data, transport)
            if self._decoder is not None and data:
                self._waiting += self._decoder.feed(data)
        except FloeError as error:
            self._refuse(error)
            return
        self._start_waiting()
        if self._decoder is not None and self._decoder.failure is not None:
            self._refuse(self._decoder.failure)

    def _shake_hands(self, data: bytes, transport: asyncio.Transport) -> bytes:
        """Go on with the handshake; the bytes that belong to the first frames."""
        handshake = self._handshake
        answer = handshake.receive(data)
        if answer:
            transport.write(answer)
        if handshake.failure is not None:
            raise handshake.failure
        if handshake.session is None:
            return b""
        if self._timer is not None:
            self._timer.cancel()
        self._encoder = handshake.session.encoder()
        self._decoder = handshake.session.decoder()
        return handshake.leftover

    def _refuse(self, error: FloeError) -> None:
        _log.warning("native connection refused", peer=self._peer, reason=str(error))
        if self._transport is not None:
            self._transport.close()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._tasks) < CALLS_MAX and not self._is_choked:
            frame = self._waiting.pop(0)
            task = asyncio.get_running_loop().create_task(self._run(frame))
            self._tasks.add(task)
            task.add_done_callback(self._done)
        self._match_flow()

    def _match_flow(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._waiting or self._is_choked:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("native call failed", peer=self._peer, exc_info=error)
            self.abort()
            return
        self._start_waiting()

    async def _run(self, frame: Frame) -> None:
        kind = Kind.RESPONSE
        try:
            reply = encode_payload(await self._home.calls.answer(decode_call(frame.method, frame.payload)))
        except FloeError as error:
            kind, reply = Kind.ERROR, encode_payload(ErrorReply.of(error))
        self._send(kind, frame, reply)

    def _send(self, kind: Kind, frame: Frame, payload: bytes) -> None:
        transport, encoder = self._transport, self._encoder
        if transport is None or encoder is None or transport.is_closing():
            return
        try:
            data = encoder.encode(kind, frame.method, frame.call_id, payload)
        except FloeError:
            refusal = ErrorReply(ErrorCode.MESSAGE_TOO_LARGE, "the reply is too long; ask for less at once")
            data = encoder.encode(Kind.ERROR, frame.method, frame.call_id, encode_payload(refusal))
        transport.write(data)
