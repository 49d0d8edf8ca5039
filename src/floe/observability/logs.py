"""Logs: one event per line with its facts as key and value; JSON when nobody is looking at a terminal."""

import logging
import sys
from typing import Protocol, TextIO, cast

import structlog


class Log(Protocol):
    """What code may call; `event` is a short fixed phrase, facts are keywords."""

    def debug(self, event: str, **facts: object) -> None: ...

    def info(self, event: str, **facts: object) -> None: ...

    def warning(self, event: str, **facts: object) -> None: ...

    def error(self, event: str, **facts: object) -> None: ...

    def exception(self, event: str, **facts: object) -> None: ...


def get_log(area: str) -> Log:
    """A log whose events carry `area`; cheap, made once per module."""
    return cast("Log", structlog.get_logger(area=area))


def configure_logs(*, level: str = "info", stream: TextIO | None = None, as_json: bool | None = None) -> None:
    """Send logs of this process to `stream`; called by the command line, never by an embedded broker."""
    out = stream or sys.stderr
    machine_reads = not out.isatty() if as_json is None else as_json
    number = logging.getLevelNamesMapping()[level.upper()]
    render: structlog.typing.Processor
    if machine_reads:
        render = structlog.processors.JSONRenderer(default=str)
        traces: list[structlog.typing.Processor] = [structlog.processors.format_exc_info]
    else:
        render = structlog.dev.ConsoleRenderer(colors=out.isatty())
        traces = []
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *traces,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=True,
    )


class Sparing:
    """Lets through a bounded number of events per window, so that a hostile peer cannot fill a disk.

    The first event of a new window carries how many were left out before it.
    """

    __slots__ = ("_count", "_left_out", "_limit", "_window", "_window_seconds")

    def __init__(self, *, limit: int = 10, window_seconds: float = 10.0) -> None:
        self._limit = limit
        self._window_seconds = window_seconds
        self._window = -1
        self._count = 0
        self._left_out = 0

    def admits(self, now_seconds: float) -> bool:
        """Whether one more event may be written at this time."""
        window = int(now_seconds / self._window_seconds)
        if window != self._window:
            self._window = window
            self._count = 0
        self._count += 1
        if self._count <= self._limit:
            return True
        self._left_out += 1
        return False

    def left_out(self) -> int:
        """Events left out since this was asked last."""
        count, self._left_out = self._left_out, 0
        return count
