"""A real broker inside a test or a notebook.

    with EmbeddedBroker() as broker:              # in a thread of its own
        producer = Producer({"bootstrap.servers": broker.bootstrap})

    async with EmbeddedBroker() as broker:        # in the running event loop
        ...

By default nothing touches the disk and everything is gone at the end; with a `data_dir` records stay, and
the next broker on that folder has them.
"""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import structlog

from floe.config.settings import Settings
from floe.observability.logs import configure_logs
from floe.server.assemble import parts_from
from floe.server.broker import Broker
from floe.server.run import new_loop

START_SECONDS_MAX = 60.0


class EmbeddedBroker:
    """A sync and async context manager; `bootstrap` is what Kafka clients take as bootstrap.servers.

    `settings` are dotted keys as in docs/reference/settings.md, for example {"num.partitions": 8}.
    """

    def __init__(
        self, *, data_dir: str | Path | None = None, settings: Mapping[str, object] | None = None
    ) -> None:
        values: dict[str, object] = {"listeners": "127.0.0.1:0", "http.listen": "off", "native.listen": "off"}
        if data_dir is None:
            values["metadata.store"] = "memory"
        else:
            values["data.dir"] = Path(data_dir)
        self._settings = Settings.of({**values, **(settings or {})})
        self._broker: Broker | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    @property
    def broker(self) -> Broker:
        """The broker itself; it belongs to its event loop."""
        assert self._broker is not None, "the broker is not running"
        return self._broker

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the Kafka port."""
        return str(self.broker.address)

    # In the running event loop.

    async def __aenter__(self) -> Self:
        if not structlog.is_configured():
            configure_logs(level="warning")
        self._broker = Broker(self._settings, parts_from(self._settings))
        await self._broker.start()
        return self

    async def __aexit__(self, *_reason: object) -> None:
        broker, self._broker = self.broker, None
        await broker.stop(drain=True)

    # In a thread of its own.

    def __enter__(self) -> Self:
        started: Started = Started()
        self._thread = threading.Thread(target=self._run, args=(started,), name="floe-broker", daemon=True)
        self._thread.start()
        if not started.event.wait(START_SECONDS_MAX):
            raise TimeoutError("the broker did not start in time")
        if started.error is not None:
            self._thread.join()
            raise started.error
        return self

    def __exit__(self, *_reason: object) -> None:
        assert self._loop is not None
        assert self._stopping is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self, started: "Started") -> None:
        loop = new_loop()
        try:
            loop.run_until_complete(self._serve(started))
        finally:
            loop.close()

    async def _serve(self, started: "Started") -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            await self.__aenter__()
        except Exception as error:  # noqa: BLE001 - the thread's boundary: raised again by whoever started it
            started.error = error
            started.event.set()
            return
        started.event.set()
        await self._stopping.wait()
        await self.__aexit__()


class Started:
    """How a thread tells that its broker is up, or why it is not."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.error: Exception | None = None
