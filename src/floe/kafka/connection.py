"""One Kafka connection: requests in, answers out in the order of the requests.

Theory of operation. Requests under way stand in a line. Produce starts on arrival; everything else starts
when it is first in line (`Order` says why). An answer that is ready leaves as soon as all before it have
left. A request's bytes are given back to the broker's budget when its work is done, even if its answer
still waits.

Invariants:
- One answer per request, in order, except for Produce with acks=0.
- The line is bounded by count and bytes; while it is full, or the peer does not read its answers, nothing
  is read.
- A request that cannot be understood ends its own connection and nothing else.
"""

import asyncio
from collections import deque
from typing import cast

from typing_extensions import override

from floe.kafka.call import NO_ANSWER, Call, Order, Pieces, Route
from floe.kafka.door import Door
from floe.kafka.receiver import Receiver
from floe.kafka.request_head import HEAD_SIZE, body_position, peek
from floe.model.errors import FloeError, Rejected
from floe.observability.logs import get_log
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.framing import LENGTH_SIZE

_log = get_log("kafka")
_JOIN_BYTES_MAX = 4096  # one short write costs less than a gathered one
_EMPTY = memoryview(b"")
# Looking up a member of an enum costs more than most of the steps below.
_AT_ONCE, _IN_TURN, _ALONE = Order.AT_ONCE, Order.IN_TURN, Order.ALONE
_API_VERSIONS = int(ApiKey.API_VERSIONS)


class Connection(Receiver):
    """The protocol object of one client."""

    def __init__(self, door: Door, scratch: memoryview) -> None:
        settings = door.settings
        super().__init__(scratch=scratch, budget=door.budget, frame_bytes_max=settings.request_bytes_max)
        self._door = door
        self._counters = door.counters
        self._routes = door.routes
        self._now = door.clock.monotonic
        self._line: deque[Call] = deque()
        self._line_bytes = 0
        self._requests_max = settings.connection_requests_max
        self._line_bytes_max = settings.connection_bytes_max
        self._blockers = 0  # ALONE requests in line that have no answer yet
        self._is_choked = False  # the peer does not read its answers
        self._unread = 0  # bytes counted in the door's unread answers
        self._is_draining = False
        self._outbox: Pieces = []  # short answers on their way out, in order
        self.client_id: str | None = None  # what the first request said; clients do not change it
        self.peer = "?"
        self.swept_bytes = -1  # for the listener's sweep
        self.silent_sweeps = 0

    # Life.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has all of asyncio.Transport, but does not derive from it.
        self.transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "?"
        if not self._door.admit(self):
            self.refuse("too many connections", limit=self._door.settings.connections_max)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_receiving()
        self._door.unread_bytes -= self._unread
        self._unread = 0
        self._door.forget(self)
        for call in tuple(self._line):
            if call.task is not None:
                call.task.cancel()
            if not call.is_started:
                self._settle(call, NO_ANSWER)
        self._line.clear()

    @override
    def eof_received(self) -> None:
        return None

    @override
    def pause_writing(self) -> None:
        self._is_choked = True
        self._unread = self.transport.get_write_buffer_size()
        self._door.unread_bytes += self._unread
        self.is_full = True
        self.match_flow()

    @override
    def resume_writing(self) -> None:
        self._is_choked = False
        self._door.unread_bytes -= self._unread
        self._unread = 0
        self._advance()
        self._make_room()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return not self._line

    @property
    def is_choked(self) -> bool:
        return self._is_choked

    def drain(self) -> None:
        """Take no more requests; end when what has started is answered. Long polls are not waited for."""
        self._is_draining = True
        self.is_full = True
        self.match_flow()
        self._end_if_drained()

    @override
    def refuse(self, reason: str, **facts: object) -> None:
        if self.is_over:
            return
        self._counters.error(reason)
        if self._door.sparing.admits(self._now()):
            left_out = self._door.sparing.left_out()
            _log.warning(
                "connection refused",
                reason=reason,
                peer=self.peer,
                client_id=self.client_id,
                left_out=left_out,
                **facts,
            )
        self.end()

    def end(self) -> None:
        """Close after what was answered has been sent; nothing more is taken or answered."""
        self.stop_receiving()
        self._flush()
        self.transport.close()

    # Requests.

    @override
    def frame_received(self, frame: memoryview, size: int) -> None:
        self._counters.bytes_in += size + LENGTH_SIZE
        self._line_bytes += size
        try:
            api_key, version, correlation_id, client_id_size = peek(frame)
            route = self._routes.get(api_key)
            if route is None or not _serves(route, version):
                self._drop(size, "unsupported request", api_key=api_key, version=version)
                return
            position = body_position(frame, route.spec, version, client_id_size)
        except Rejected as error:
            self._drop(size, "malformed header", error=str(error))
            return
        if self.client_id is None and client_id_size > 0:
            name = bytes(frame[HEAD_SIZE : HEAD_SIZE + client_id_size])
            self.client_id = name.decode("utf-8", "replace")
        call = Call(self, route, version, correlation_id, frame[position:], size, self._now())
        line = self._line
        line.append(call)
        if len(line) >= self._requests_max or self._line_bytes >= self._line_bytes_max:
            self.is_full = True
        order = route.order
        if order is _AT_ONCE:
            if not self._blockers:
                self._begin(call)
                if call.answer is None:
                    return
        elif order is _ALONE:
            self._blockers += 1
        if line[0] is call:
            self._advance()
        if self.is_full and call.answer is not None:
            self._make_room()

    def _drop(self, size: int, reason: str, **facts: object) -> None:
        """A frame that cannot become a call."""
        self._line_bytes -= size
        self._budget.give_back(size)
        self.refuse(reason, **facts)

    def _begin(self, call: Call) -> None:
        call.is_started = True
        try:
            outcome = call.route.handler(self._door, call)
        except FloeError as error:
            self.failed(call, "malformed request", error=str(error))
        except Exception:  # noqa: BLE001 - a request is the boundary: one bad one must not end the listener
            _log.exception("handler failed", api=call.route.spec.name, version=call.version, peer=self.peer)
            self.failed(call, "handler failed")
        else:
            if outcome is None:
                return
            if isinstance(outcome, list):
                self._settle(call, outcome)
                return
            call.task = self._door.loop.create_task(outcome)
            call.task.add_done_callback(lambda task: self._task_done(call, task))

    def _task_done(self, call: Call, task: asyncio.Task[Pieces]) -> None:
        call.task = None
        if task.cancelled():
            self.finished(call, NO_ANSWER)
            return
        error = task.exception()
        if error is None:
            self.finished(call, task.result())
        elif isinstance(error, FloeError):
            self.failed(call, "request failed", error=str(error))
        else:
            _log.error("handler failed", api=call.route.spec.name, peer=self.peer, exc_info=error)
            self.failed(call, "handler failed")

    def failed(self, call: Call, reason: str, **facts: object) -> None:
        """End the connection: Kafka has no answer for this request."""
        self._settle(call, NO_ANSWER)
        self.refuse(reason, api=call.route.spec.name, version=call.version, **facts)

    # Answers.

    def finished(self, call: Call, pieces: Pieces) -> None:
        """The work of a call is done."""
        self._settle(call, pieces)
        line = self._line
        if line and line[0] is call:
            self._advance()
        if self.is_full:
            self._make_room()

    def _settle(self, call: Call, pieces: Pieces) -> None:
        assert call.answer is None
        call.answer = pieces
        call.body = _EMPTY
        self._line_bytes -= call.size
        self._budget.give_back(call.size)
        route = call.route
        route.latency.add(self._now() - call.arrived)
        if route.order is _ALONE:
            self._blockers -= 1

    def _advance(self) -> None:
        """Send what is ready at the front, and start what has come to stand there."""
        line = self._line
        while line and not self.is_over:
            call = line[0]
            pieces = call.answer
            if pieces is None:
                if call.is_started or self._is_choked:
                    break
                self._begin(call)
                continue
            line.popleft()
            if pieces is not NO_ANSWER:
                self._send(pieces)
            if call.route.order is _ALONE:
                self._begin_released()
        if self._is_draining:
            self._end_if_drained()

    def _begin_released(self) -> None:
        """Start the AT_ONCE requests that only waited for an ALONE one."""
        for call in tuple(self._line):
            if call.route.order is _ALONE:
                return
            if call.route.order is _AT_ONCE and not call.is_started:
                self._begin(call)

    def _send(self, pieces: Pieces) -> None:
        """Write a long answer at once; short ones that are ready in one turn of the loop share a write."""
        size = sum(map(len, pieces))
        self._counters.bytes_out += size
        outbox = self._outbox
        if size > _JOIN_BYTES_MAX:
            self.transport.writelines([*outbox, *pieces])
            outbox.clear()
            return
        if not outbox:
            self._door.loop.call_soon(self._flush)
        outbox += pieces

    def _flush(self) -> None:
        outbox = self._outbox
        if outbox and not self.transport.is_closing():
            self.transport.write(b"".join(outbox))
        outbox.clear()

    def _make_room(self) -> None:
        """Read on once the line is half empty; a full one is not refilled request by request."""
        if self._is_choked or self._is_draining or len(self._line) > self._requests_max // 2:
            return
        if self._line_bytes < self._line_bytes_max:
            self.is_full = False
            self.read_on()

    def _end_if_drained(self) -> None:
        if self.is_over:
            return
        if any(call.is_started and call.route.order is not _IN_TURN for call in self._line):
            return
        self.end()


def _serves(route: Route, version: int) -> bool:
    """ApiVersions answers versions that it does not know, so that a newer client can choose again."""
    spec = route.spec
    return spec.min_version <= version <= spec.max_version or (spec.key == _API_VERSIONS and version >= 0)
