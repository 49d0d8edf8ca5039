"""Transports of the simulated network: two pipes of bytes per connection, driven by the loop.

Each pipe keeps its order and loses nothing until it is cut. It hands bytes over in fragments, holds at most
a window of bytes between sender and receiver, and therefore passes back-pressure on: a receiver that does not
read makes the sender's buffer grow and its protocol be paused. Written buffers are not copied before they
leave, so a sender that changes one after writing it is found out.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from typing_extensions import override

from floe.testing.sim_loop import SimLoop
from floe.testing.sim_process import PROCESS
from floe.testing.sim_trace import Trace

HIGH_WATER = 64 * 1024
RECEIVE_MAX = 256 * 1024  # what a Protocol is given at most in one call, as asyncio reads sockets

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """How a connection behaves; times in seconds, sizes in bytes."""

    latency: tuple[float, float] = (0.0001, 0.001)
    spike_chance: float = 0.0
    spike_seconds: float = 0.5
    fragment_max: int = 64 * 1024
    tiny_chance: float = 0.0  # of a fragment of 1 to 16 bytes
    window: int = 256 * 1024

    def delay(self, rng: Random) -> float:
        seconds = rng.uniform(*self.latency)
        if self.spike_chance and rng.random() < self.spike_chance:
            seconds += rng.uniform(0, self.spike_seconds)
        return seconds

    def fragment(self, rng: Random) -> int:
        if self.tiny_chance and rng.random() < self.tiny_chance:
            return rng.randint(1, 16)
        return rng.randint(self.fragment_max // 2, self.fragment_max)


class Pipe:
    """One direction of a connection."""

    def __init__(self, loop: SimLoop, rng: Random, conditions: LinkConditions) -> None:
        self._loop = loop
        self._rng = rng
        self._conditions = conditions
        self._outgoing: deque[memoryview] = deque()
        self._arrived: deque[bytes] = deque()
        self._flying = 0  # bytes that left the sender and were not taken by the receiver
        self._last_arrival = 0.0
        self._ends = False  # the sender closes once its buffer is empty
        self._has_ended = False
        self.buffered = 0
        self.is_cut = False
        self.source: SimTransport | None = None
        self.sink: SimTransport | None = None
        self.back: Pipe | None = None  # the other direction

    def push(self, data: Bytes) -> None:
        view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
        self._outgoing.append(view)
        self.buffered += len(view)
        self.pump()

    def pump(self) -> None:
        """Send what the window allows."""
        while self._outgoing and self._flying < self._conditions.window:
            view = self._outgoing[0]
            room = self._conditions.window - self._flying
            size = min(len(view), room, self._conditions.fragment(self._rng))
            self._fly(bytes(view[:size]))
            if size == len(view):
                self._outgoing.popleft()
            else:
                self._outgoing[0] = view[size:]
            self.buffered -= size
            self._flying += size
        if self._ends and not self._outgoing and not self._has_ended:
            self._has_ended = True
            self._schedule(self._arrive_end)
            if self.source is not None:
                self.source.flushed()
        if self.source is not None:
            self.source.buffer_changed()

    def end(self) -> None:
        """Close this direction after everything written has been sent."""
        self._ends = True
        self.pump()

    def drop(self) -> None:
        """Forget what has not left yet."""
        self._outgoing.clear()
        self.buffered = 0

    def reset_sink(self) -> None:
        """Tell the receiver, after what is under way, that the connection is gone."""
        self._schedule(self._arrive_reset)

    def take(self, limit: int) -> bytes:
        """The next bytes for the receiver, at most `limit`; b"" when there are none now."""
        if not self._arrived:
            return b""
        data = self._arrived.popleft()
        if len(data) > limit:
            self._arrived.appendleft(data[limit:])
            data = data[:limit]
        self._flying -= len(data)
        self.pump()
        return data

    @property
    def has_arrived(self) -> bool:
        return bool(self._arrived)

    def _fly(self, data: bytes) -> None:
        self._schedule(self._arrive, data)

    def _schedule(self, event: Any, *args: object) -> None:  # noqa: ANN401
        """Later than everything sent before: order is kept within a pipe."""
        moment = self._loop.time() + self._conditions.delay(self._rng)
        self._last_arrival = max(moment, self._last_arrival + 1e-9)
        self._loop.kernel_at(self._last_arrival, event, *args)

    def _arrive(self, data: bytes) -> None:
        if self.is_cut or self.sink is None:
            return
        if self.sink.is_lost:
            if self.back is not None:
                self.back.reset_sink()
            return
        self._arrived.append(data)
        self.sink.readable()

    def _arrive_end(self) -> None:
        if not self.is_cut and self.sink is not None:
            self.sink.peer_ended()

    def _arrive_reset(self) -> None:
        if not self.is_cut and self.sink is not None:
            self.sink.lose(ConnectionResetError("connection reset by peer"))


class SimSocket:
    """What code may ask of a transport's socket."""

    def __init__(self, local: tuple[str, int], remote: tuple[str, int] | None) -> None:
        self._local = local
        self._remote = remote

    def getsockname(self) -> tuple[str, int]:
        return self._local

    def getpeername(self) -> tuple[str, int] | None:
        return self._remote

    def setsockopt(self, *_options: object) -> None:
        """Options do not change the simulation."""

    def fileno(self) -> int:
        return -1


class SimTransport(asyncio.Transport):
    """One end of a connection; calls its protocol in the context of the process that owns it."""

    def __init__(
        self,
        loop: SimLoop,
        name: str,
        inward: Pipe,
        outward: Pipe,
        context: contextvars.Context,
        trace: Trace,
        extra: dict[str, object],
    ) -> None:
        super().__init__(extra)
        self.name = name
        self.process = context.get(PROCESS)
        self._loop = loop
        self._in = inward
        self._out = outward
        self._context = context
        self._trace = trace
        self._protocol: asyncio.BaseProtocol | None = None
        self._is_reading = True
        self._is_writing_paused = False
        self._is_closing = False
        self.is_lost = False
        self._peer_ended = False
        self._read_scheduled = False
        self._high = HIGH_WATER
        self._low = HIGH_WATER // 4
        inward.sink = self
        outward.source = self

    # Called by the network.

    def made(self, protocol: asyncio.BaseProtocol) -> None:
        """Runs in the owner's context."""
        self._protocol = protocol
        protocol.connection_made(self)
        self.readable()

    def readable(self) -> None:
        if self._read_scheduled or self._is_closing or not self._is_reading or self._protocol is None:
            return
        if self._in.has_arrived or self._peer_ended:
            self._read_scheduled = True
            self._loop.call_soon(self._read, context=self._context)

    def peer_ended(self) -> None:
        self._peer_ended = True
        self.readable()

    def lose(self, error: Exception | None) -> None:
        """The connection is gone for this end; its protocol is told once."""
        if self.is_lost:
            return
        self.is_lost = True
        self._is_closing = True
        self._out.drop()
        self._loop.call_soon(self._tell_lost, error, context=self._context)

    def flushed(self) -> None:
        """Everything written before `close` has been sent."""
        if self._is_closing:
            self.lose(None)

    def buffer_changed(self) -> None:
        if self._is_writing_paused and self._out.buffered <= self._low:
            self._loop.call_soon(self._resume_writing, context=self._context)

    def _read(self) -> None:
        self._read_scheduled = False
        protocol = self._protocol
        if self._is_closing or not self._is_reading or protocol is None:
            return
        if self._in.has_arrived:
            size = self._hand_over(protocol)
            self._trace.add(f"net {self.name} received {size}")
        elif self._peer_ended:
            self._peer_ended = False
            self._trace.add(f"net {self.name} end")
            if not protocol.eof_received():  # type: ignore[attr-defined]
                self.close()
            return
        self.readable()

    def _hand_over(self, protocol: asyncio.BaseProtocol) -> int:
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(-1)).cast("B")
            assert len(buffer) > 0, "get_buffer() returned an empty buffer"
            data = self._in.take(len(buffer))
            buffer[: len(data)] = data
            buffer.release()
            protocol.buffer_updated(len(data))
        else:
            assert isinstance(protocol, asyncio.Protocol)
            data = self._in.take(RECEIVE_MAX)
            protocol.data_received(data)
        return len(data)

    def _tell_lost(self, error: Exception | None) -> None:
        self._trace.add(f"net {self.name} lost {type(error).__name__}")
        if self._protocol is not None:
            self._protocol.connection_lost(error)

    def _resume_writing(self) -> None:
        if self._is_writing_paused and self._out.buffered <= self._low and not self.is_lost:
            self._is_writing_paused = False
            assert self._protocol is not None
            self._protocol.resume_writing()

    # Called by the owner.

    @override
    def write(self, data: Bytes) -> None:
        self.writelines((data,))

    @override
    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        if self.process is not None:
            self.process.enter("send")
        if self._is_closing:
            return
        for data in list_of_data:
            if len(data):
                self._out.push(data)
        if self._out.buffered > self._high and not self._is_writing_paused:
            self._is_writing_paused = True
            assert self._protocol is not None
            self._protocol.pause_writing()

    @override
    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._out.end()

    @override
    def abort(self) -> None:
        if not self.is_lost:
            self._out.drop()
            self._out.reset_sink()
            self.lose(None)

    @override
    def is_closing(self) -> bool:
        return self._is_closing

    @override
    def write_eof(self) -> None:
        self._out.end()

    @override
    def can_write_eof(self) -> bool:
        return True

    @override
    def pause_reading(self) -> None:
        self._is_reading = False

    @override
    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self.readable()

    @override
    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else (HIGH_WATER if low is None else 4 * low)
        self._low = low if low is not None else self._high // 4

    @override
    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    @override
    def get_write_buffer_size(self) -> int:
        return self._out.buffered

    @override
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    @override
    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol
