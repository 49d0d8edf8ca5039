"""The receiving half of a connection: bytes in, whole requests out, in bounded memory.

Theory of operation. Every read lands in one of two places. Between requests it is the scratch, one piece of
memory that all connections of a listener share: a read is parsed before the next one starts, complete
requests leave the scratch as copies of their own, and what is left of the last one, always short, stays
with the connection as its rest. A longer request that is not complete gets memory of its own, once the
broker-wide budget has room for it; the socket then fills it directly, and the engine keeps views of it
without a copy.

A connection stops reading while it is full (its line of requests is, or its peer does not read its answers)
and while the budget is spent. It reads on when the reason is gone.

Invariants:
- A length is checked before anything is allocated for it.
- What a connection holds is bounded by the scratch, one request, and what its line admits.
"""

import asyncio
from struct import Struct
from typing import Any

from typing_extensions import override

from floe.kafka.frame_memory import frame_memory
from floe.kafka.memory_budget import MemoryBudget

SCRATCH_BYTES = 128 << 10
OWN_MEMORY_MIN = 16 << 10  # shorter requests are put together in the scratch
_LENGTH_BYTES = 4
_read_length = Struct(">i").unpack_from


class Receiver(asyncio.BufferedProtocol):
    """Splits a stream into length-prefixed frames; a subclass takes them and says when it is full."""

    transport: asyncio.Transport

    def __init__(self, *, scratch: memoryview, budget: MemoryBudget, frame_bytes_max: int) -> None:
        self._scratch = scratch
        self._budget = budget
        self._frame_bytes_max = frame_bytes_max
        self._rest = b""
        self._frame: memoryview | None = None
        self._filled = 0
        self._awaited = 0  # bytes of a frame that waits at the budget
        self._is_waiting = False
        self.is_full = False  # kept by the subclass: no frame may be taken now
        self.is_paused = False
        self.is_over = False
        self.received_bytes = 0

    # For the subclass.

    def frame_received(self, frame: memoryview, size: int) -> None:
        """A whole frame, without its length. Its bytes are counted in the budget; whoever takes the frame
        gives them back."""
        raise NotImplementedError

    def refuse(self, reason: str, **facts: object) -> None:
        """The peer broke the protocol: end the connection."""
        raise NotImplementedError

    @property
    def is_receiving(self) -> bool:
        """Whether part of a frame has arrived; a peer that then falls silent holds memory."""
        return self._frame is not None or bool(self._rest)

    def read_on(self) -> None:
        """Take up reading when everything that stopped it is gone; called whenever something ends."""
        if self._is_waiting or self.is_over or self.is_full:
            return
        rest = self._rest
        if rest:
            self._rest = b""
            self._parse(memoryview(rest), len(rest))
        self.match_flow()

    def match_flow(self) -> None:
        """Read if and only if nothing stands against it."""
        should_pause = self._is_waiting or self.is_full
        if self.is_over or should_pause == self.is_paused:
            return
        self.is_paused = should_pause
        if should_pause:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def stop_receiving(self) -> None:
        """Give back what an unfinished frame holds; nothing more will be received."""
        self.is_over = True
        self._rest = b""
        self._budget.leave(self._granted)
        if self._frame is not None:
            self._budget.give_back(len(self._frame))
            self._frame = None

    # Called by the transport.

    @override
    def get_buffer(self, sizehint: int) -> Any:
        if self._frame is not None:
            return self._frame[self._filled :]
        if self._rest:
            size = len(self._rest)
            self._scratch[:size] = self._rest
            return self._scratch[size:]
        return self._scratch

    @override
    def buffer_updated(self, nbytes: int) -> None:
        if self.is_over:
            return
        self.received_bytes += nbytes
        frame = self._frame
        if frame is None:
            if self._rest:
                nbytes += len(self._rest)
                self._rest = b""
            self._parse(self._scratch, nbytes)
        else:
            self._filled += nbytes
            if self._filled < len(frame):
                return
            self._frame = None
            self.frame_received(frame, len(frame))
        budget = self._budget
        if self.is_full or budget.held > budget.limit or budget.has_waiters:
            self._hold_back()

    # Inside.

    def _parse(self, data: memoryview, end: int) -> None:
        """Take every whole frame of data[:end] while there is room; keep the rest."""
        position = 0
        while end - position >= _LENGTH_BYTES:
            size: int = _read_length(data, position)[0]
            start = position + _LENGTH_BYTES
            if not 0 <= size <= self._frame_bytes_max:
                self.refuse("frame length", length=size, limit=self._frame_bytes_max)
                return
            if start + size > end:
                if size >= OWN_MEMORY_MIN and self._receive_apart(data[start:end], size):
                    return
                break
            if self.is_full:
                break
            self._budget.held += size
            position = start + size
            # A copy: the scratch is about to be written again, and the engine keeps views of records.
            self.frame_received(memoryview(bytes(data[start:position])), size)
            if self.is_over:
                return
        if position != end:
            self._rest = bytes(data[position:end])

    def _receive_apart(self, begun: memoryview, size: int) -> bool:
        """Give the frame memory of its own, or wait for it; whether it has it now."""
        if self._budget.try_take(size):
            self._begin_frame(begun, size)
            return True
        self._awaited = size
        self._is_waiting = True
        self._budget.wait(size, self._granted)
        return False

    def _begin_frame(self, begun: memoryview, size: int) -> None:
        self._frame = frame_memory(size)
        self._filled = len(begun)
        self._frame[: self._filled] = begun

    def _hold_back(self) -> None:
        """Stop reading. When only the budget is spent, one read at a time is admitted in turn."""
        if self.is_over:
            return
        if not (self.is_full or self._is_waiting) and self._frame is None:
            self._is_waiting = True
            self._budget.wait(0, self._granted)
        self.match_flow()

    def _granted(self) -> None:
        """The budget has counted the awaited bytes for this connection."""
        self._is_waiting = False
        size, self._awaited = self._awaited, 0
        if size:
            rest, self._rest = self._rest, b""
            self._begin_frame(memoryview(rest)[_LENGTH_BYTES:], size)
        self.read_on()
