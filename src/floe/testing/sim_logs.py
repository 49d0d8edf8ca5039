"""Log events of simulated brokers: traced, and errors noted as problems, instead of written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict, WrappedLogger

from floe.testing.sim_process import PROCESS


@contextmanager
def collected_logs(seen: Callable[[str, str], None]) -> Iterator[None]:
    """Call `seen(level, text)` for each event of a living process, and write none."""

    def collect(logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
        process = PROCESS.get()
        if process is None or process.is_alive:
            name = process.name if process else "-"
            trouble = structlog.processors.format_exc_info(logger, level, event).pop("exception", "")
            facts = " ".join(f"{key}={value}" for key, value in event.items() if key != "event")
            seen(level, f"{name} {event['event']} {facts} {trouble}".rstrip())
        raise structlog.DropEvent

    # The list itself is changed, so that loggers which have cached their configuration follow.
    processors = structlog.get_config()["processors"]
    before = list(processors)
    processors[:] = [collect]
    structlog.configure(processors=processors)
    try:
        yield
    finally:
        processors[:] = before
        structlog.configure(processors=processors)
