"""A broker as the whole process: event loop, signals, memory."""

import asyncio
import resource
import signal
import sys
from collections.abc import Callable

from floe.config.settings import Settings
from floe.observability.logs import get_log
from floe.server.assemble import parts_from
from floe.server.broker import Broker
from floe.server.process_memory import keep_freed_memory, settle_objects

_log = get_log("server")
FILES_WANTED = 65_536
# A thread that comes back from a sync waits this long for the interpreter while the loop is busy; five
# milliseconds, Python's default, would be longer than the sync, several times per object.
_SWITCH_SECONDS = 0.0001


def run_broker(settings: Settings, started: Callable[[Broker], None]) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return; a second signal ends at once.

    `started` is called when clients are served. Raises `CannotStart` and `SettingsError`.
    """
    keep_freed_memory()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(settings, started))


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


async def _serve(settings: Settings, started: Callable[[Broker], None]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def asked_to_stop(number: int) -> None:
        if stop.is_set():
            raise SystemExit(128 + number)
        stop.set()

    raise_file_limit()
    sys.setswitchinterval(_SWITCH_SECONDS)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop, number)
    broker = Broker(settings, parts_from(settings))
    await broker.start()
    started(broker)
    settle_objects()
    await stop.wait()
    _log.info("stopping")
    await broker.stop(drain=True)
    _log.info("stopped")


def raise_file_limit() -> None:
    """Connections, objects and RocksDB all hold files; many systems allow a process 1,024 unless it asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
