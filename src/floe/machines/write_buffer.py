"""When a broker's write buffer closes and becomes an object.

A buffer closes as soon as
- fewer than `uploads_eager` uploads are under way and `min_interval` has passed since the last close, or
- it holds `buffer_bytes_max`, or
- its first request is `commit_interval` old.

The first rule alone gives group commit: while uploads are under way requests gather, and the end of one lets
the next leave. `min_interval` bounds the bill for PUTs. No rule starts more than `uploads_max` uploads: full
buffers then queue up, and `pending_bytes` grows until the front door stops reading.

Time comes in as seconds on any clock that never goes back. The machine counts; the driver holds the requests,
in order of arrival, and takes from the front as many as `close` says.

Invariants:
- Requests leave in order of arrival, and no request is split over two objects.
- `pending_bytes` counts each byte from `add` to `settle`, once.
"""

from collections import deque

import msgspec


class BufferLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, sizes in bytes."""

    uploads_eager: int
    uploads_max: int
    min_interval: float
    commit_interval: float
    buffer_bytes_max: int
    pending_bytes_max: int

    def __post_init__(self) -> None:
        assert 1 <= self.uploads_eager <= self.uploads_max
        assert self.min_interval >= 0
        assert self.commit_interval > 0
        assert 0 < self.buffer_bytes_max <= self.pending_bytes_max


class WriteBuffer:
    """The open buffer, the full ones that wait for an upload to end, and what is under way."""

    __slots__ = (
        "_full",
        "_last_close",
        "_limits",
        "_open_bytes",
        "_open_count",
        "_opened_at",
        "pending_bytes",
        "uploads",
    )

    def __init__(self, limits: BufferLimits) -> None:
        self.pending_bytes = 0  # buffered, uploading or waiting for a commit
        self.uploads = 0  # under way
        self._limits = limits
        self._full: deque[int] = deque()  # requests per full buffer that has not closed yet
        self._open_count = 0
        self._open_bytes = 0
        self._opened_at = 0.0
        self._last_close = float("-inf")

    @property
    def buffered_count(self) -> int:
        """Requests that have not left yet."""
        return sum(self._full) + self._open_count

    def admits(self, size: int) -> bool:
        """Whether a request may join: always when nothing is pending, else within the hard bound."""
        return self.pending_bytes == 0 or self.pending_bytes + size <= self._limits.pending_bytes_max

    def add(self, now: float, size: int) -> bool:
        """A request joined the open buffer; returns whether that made it full."""
        if not self._open_count:
            self._opened_at = now
        self._open_count += 1
        self._open_bytes += size
        self.pending_bytes += size
        if self._open_bytes < self._limits.buffer_bytes_max:
            return False
        self._full.append(self._open_count)
        self._open_count = self._open_bytes = 0
        return True

    def due(self, now: float) -> float | None:
        """The time from which the front buffer may close; None: not before an upload ends or more arrives."""
        limits = self._limits
        if self.uploads >= limits.uploads_max:
            return None
        if self._full:
            return now
        if not self._open_count:
            return None
        by_age = self._opened_at + limits.commit_interval
        if self.uploads >= limits.uploads_eager:
            return by_age
        return min(by_age, self._last_close + limits.min_interval)

    def close(self, now: float) -> int:
        """The front buffer's upload starts; returns how many requests it takes."""
        assert self.uploads < self._limits.uploads_max
        self._last_close = now
        self.uploads += 1
        if self._full:
            return self._full.popleft()
        count = self._open_count
        assert count > 0
        self._open_count = self._open_bytes = 0
        return count

    def upload_ended(self) -> None:
        """One upload is no longer under way, whatever became of it."""
        assert self.uploads > 0
        self.uploads -= 1

    def settle(self, size: int) -> None:
        """Bytes whose outcome is known, or that were given up, and that are no longer held."""
        assert size <= self.pending_bytes
        self.pending_bytes -= size
