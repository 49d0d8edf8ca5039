"""The trace: one line per external event, in order, with its virtual time.

Two runs are the same run exactly when their traces have the same digest. Only the last lines are kept in
memory; all of them can be written to a file while the run goes on.
"""

import hashlib
from collections import deque
from collections.abc import Callable
from typing import TextIO


class Trace:
    """An append-only list of events with a running digest."""

    def __init__(self, now: Callable[[], float], *, keep: int = 400, sink: TextIO | None = None) -> None:
        self._now = now
        self._hash = hashlib.sha256()
        self._sink = sink
        self.tail: deque[str] = deque(maxlen=keep)
        self.count = 0

    def add(self, event: str) -> None:
        line = f"{self._now():.6f} {event}\n"
        self._hash.update(line.encode())
        self.tail.append(line)
        self.count += 1
        if self._sink is not None:
            self._sink.write(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
