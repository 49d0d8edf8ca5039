"""The receiving half of a connection: bytes in, whole requests out, in bounded memory.

Theory of operation. Every read lands in one of two places. Between requests it is the scratch, one piece of
memory that all connections of a listener share: a read is parsed before the next one starts, complete
requests leave the scratch as copies of their own, and what is left of the last one, always short, stays
with the connection as its rest. A longer request that is not complete gets memory of its own; the socket
fills it directly, and the engine keeps views of it without a copy. It is counted in the broker-wide budget
step by step as it arrives, and read only as far as it is counted: pages that nothing was written to are
not resident, so a peer that announces much and sends little holds little.

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
STEP_BYTES = 1 << 20  # counted for a request before it arrives; later steps are as much as has arrived
TIGHT_STEP_BYTES = 64 << 10  # the same while the budget is more than half spent
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
        self._counted = 0  # bytes of the frame that the budget has counted
        self._awaited = 0  # size of the frame that waits for its first step
        self._awaited_step = 0
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
        if self.is_over:
            return
        self.is_over = True
        self._rest = b""
        self._frame = None
        self._budget.leave(self._counted, self._granted)
        self._counted = 0

    # Called by the transport.

    @override
    def get_buffer(self, sizehint: int) -> Any:
        if self._frame is not None:
            return self._frame[self._filled : self._counted]
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
            if self._filled < self._counted:
                return
            if self._filled < len(frame):
                self._take_step(len(frame))
            else:
                self._frame = None
                self._counted = 0
                self._budget.complete(len(frame), self._granted)
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
        step = self._step(size, len(begun))
        if self._budget.try_take(step, self._granted):
            self._counted = step
            self._begin_frame(begun, size)
            return True
        self._awaited = size
        self._wait(step)
        return False

    def _begin_frame(self, begun: memoryview, size: int) -> None:
        self._frame = frame_memory(size)
        self._filled = len(begun)
        self._frame[: self._filled] = begun

    def _step(self, size: int, arrived: int) -> int:
        """How many more bytes of a frame to count, so that it can go on arriving."""
        least = TIGHT_STEP_BYTES if self._budget.is_tight else STEP_BYTES
        return min(size, arrived + max(least, arrived)) - self._counted

    def _take_step(self, size: int) -> None:
        step = self._step(size, self._filled)
        if self._budget.try_take(step, self._granted):
            self._counted += step
        else:
            self._wait(step)

    def _wait(self, step: int) -> None:
        self._awaited_step = step
        self._is_waiting = True
        self._budget.wait(step, self._granted)

    def _hold_back(self) -> None:
        """Stop reading. When only the budget is spent, one read at a time is admitted in turn."""
        if self.is_over:
            return
        if not (self.is_full or self._is_waiting) and self._frame is None:
            self._wait(0)
        self.match_flow()

    def _granted(self) -> None:
        """The budget has counted the awaited step for this connection."""
        self._is_waiting = False
        self._counted += self._awaited_step
        size, self._awaited = self._awaited, 0
        if size:
            rest, self._rest = self._rest, b""
            self._begin_frame(memoryview(rest)[_LENGTH_BYTES:], size)
        self.read_on()
