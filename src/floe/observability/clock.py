"""The one source of time; everything that needs time takes a `Clock`."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall and monotonic time. Sleeping and timers belong to the event loop."""

    def now_ms(self) -> int:
        """Wall clock in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.monotonic)  # called for every request, so without a call in between

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
