"""One broker: its parts put together, started in order, stopped in the other.

Start: lead the metadata, join the cluster, start the engine, open the ports; clients reach a broker that can
serve them or none. Stop: take no new requests, answer those taken, close the engine, then the metadata, then
the media. HTTP is up from first to last, so that a probe sees what is going on.
"""

import asyncio
import socket
from dataclasses import replace

from floe.config.address import Address
from floe.config.settings import Settings
from floe.console.http import HttpServer
from floe.console.pages import broker_pages
from floe.kafka.door import BrokerFacts, Door
from floe.kafka.listener import Listener
from floe.kafka.routes import routes
from floe.metadata.api import Metadata
from floe.metadata.router import Router
from floe.metadata.vnode_host import Timing
from floe.model.errors import FloeError, Rejected
from floe.object_log.engine import ObjectLog
from floe.observability.logs import get_log
from floe.server.assemble import door_settings, engine_settings
from floe.server.data_folder import read_secret
from floe.server.errors import CannotStart
from floe.server.parts import Parts
from floe.server.ports import listen
from floe.sessions.calls import Calls, NodeFacts
from floe.sessions.listener import NativeListener

_log = get_log("server")
_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound
_SECRET_BYTES = 32


class Broker:
    """A broker on one event loop; `start` once, `stop` once."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._state = "starting"
        self._http: HttpServer | None = None
        self._native: NativeListener | None = None
        self._listener: Listener | None = None
        self._router: Router | None = None
        self._log: ObjectLog | None = None
        self.cluster_id = ""
        self.address = settings.listeners.kafka
        self.advertised = settings.listeners.kafka
        self.http_address: Address | None = None
        self.native_address: Address | None = None

    @property
    def metadata(self) -> Metadata:
        assert self._router is not None
        return self._router

    @property
    def engine(self) -> ObjectLog:
        assert self._log is not None
        return self._log

    @property
    def listener(self) -> Listener:
        assert self._listener is not None
        return self._listener

    @property
    def unready_reason(self) -> str | None:
        """Why clients cannot be served now, or None."""
        return self.unhealthy_reason if self._state == "ready" else self._state

    @property
    def unhealthy_reason(self) -> str | None:
        """Why clients will not be served again before a restart, or None.

        A store that cannot say what of a failed write is durable fences itself; only opening it anew helps.
        """
        if self._state == "ready" and self._router is not None and not self._router.is_leading:
            return "the metadata store has fenced itself after a failed write"
        return None

    async def start(self) -> None:
        """Return when clients are served; raises `CannotStart`, with everything closed again."""
        try:
            await self._start_http()
            await self._start_engine()
            await self._start_doors()
        except BaseException:
            await self.stop(drain=False)
            raise
        self._state = "ready"
        _log.info("broker ready", cluster_id=self.cluster_id, kafka=str(self.address))

    async def stop(self, *, drain: bool = True) -> None:
        """Stop serving. With `drain` what clients were promised an answer to is answered first."""
        self._state = "stopping"
        seconds = self._settings.broker.drain_ms / 1000 if drain else 0.0
        if self._native is not None:
            await self._native.stop()
        if self._listener is not None:
            await self._listener.stop(drain_seconds=seconds)
        if self._log is not None:
            await self._close_engine(self._log, drain=drain, seconds=seconds)
        if self._router is not None:
            await self._router.close()
        await self._parts.store.close()
        await self._parts.objects.close()
        if self._http is not None:
            await self._http.stop()
        if self._parts.folder is not None:
            self._parts.folder.close()
            self._parts.folder = None

    async def _close_engine(self, log: ObjectLog, *, drain: bool, seconds: float) -> None:
        if drain and seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await log.close(drain=True)
            except TimeoutError:
                _log.warning("some appends had no outcome when the broker stopped")
            else:
                return
        await log.close(drain=False)

    async def _start_http(self) -> None:
        wanted = self._settings.listeners.http
        if wanted is None:
            return
        pages = broker_pages(
            self._parts.metrics.registry,
            unready_reason=lambda: self.unready_reason,
            unhealthy_reason=lambda: self.unhealthy_reason,
        )
        self._http = HttpServer(pages)
        may_move = "http" not in self._settings.listeners.model_fields_set
        self.http_address = await listen(
            self._http.start, wanted, what="HTTP", flag="--http", may_move=may_move
        )

    async def _start_engine(self) -> None:
        parts = self._parts
        background = self._settings.background
        self._router = Router(
            parts.store,
            clock=parts.clock,
            random=parts.random,
            metrics=parts.metrics,
            timing=Timing(
                producer_expiry_ms=background.producer_expiry_ms,
                grace_ms=background.delete_grace_ms,
                retention_interval_ms=background.retention_interval_ms,
            ),
        )
        try:
            await self._router.start()
            identity = await self._router.join_cluster(parts.objects)
        except Rejected as error:
            raise CannotStart(str(error), hint="--data and --store must be of the same cluster") from error
        except FloeError as error:
            raise CannotStart(
                f"the object store or the metadata cannot be used: {error}",
                hint="check --store, the store's credentials and the disk",
            ) from error
        self.cluster_id = identity.cluster_id
        self._log = ObjectLog(
            objects=parts.objects,
            metadata=self._router,
            clock=parts.clock,
            metrics=parts.metrics,
            settings=engine_settings(self._settings),
            cluster_id=self.cluster_id,
            worker=f"broker-{self._settings.broker.node_id}",
        )
        await self._log.start()

    async def _start_doors(self) -> None:
        settings, parts = self._settings, self._parts
        assert self._log is not None
        assert self._router is not None
        counters = parts.metrics.kafka
        wanted = settings.listeners.kafka
        facts = BrokerFacts(
            settings.broker.node_id, self.cluster_id, wanted.host, wanted.port, settings.broker.rack
        )
        door = Door(
            settings=door_settings(settings),
            facts=facts,
            metadata=self._router,
            log=self._log,
            clock=parts.clock,
            random=parts.random,
            counters=counters,
            routes=routes(counters),
        )
        counters.request_memory_source = lambda: door.budget.held
        self._listener = Listener(door)
        self.address = await listen(
            self._listener.start, wanted, what="Kafka clients", flag="--listen", may_move=False
        )
        # No connection is served before this turn of the loop ends, so none sees the address of above.
        self.advertised = settings.listeners.advertised or _reachable(self.address)
        door.facts = replace(facts, host=self.advertised.host, port=self.advertised.port)
        await self._start_native()

    async def _start_native(self) -> None:
        listeners, parts = self._settings.listeners, self._parts
        if listeners.native is None:
            return
        if listeners.native_secret_file is not None:
            secret = read_secret(listeners.native_secret_file)
        elif parts.folder is not None:
            secret = parts.folder.secret(parts.random.randbytes(_SECRET_BYTES))
        else:
            return
        assert self._router is not None
        facts = NodeFacts(
            broker_id=self._settings.broker.node_id,
            cluster_id=self.cluster_id,
            host=self.advertised.host,
            kafka_port=self.advertised.port,
            native_port=listeners.native.port,
            zone=self._settings.broker.rack or "",
            objects_url=self._settings.objects_url.partition("?")[0],
        )
        self._native = NativeListener(Calls(self._router, facts), secret=secret, nonce=parts.random.randbytes)
        self.native_address = await listen(
            self._native.start,
            listeners.native,
            what="native clients",
            flag="--native",
            may_move="native" not in listeners.model_fields_set,
        )
        self._native.calls = Calls(self._router, replace(facts, native_port=self.native_address.port))


def _reachable(address: Address) -> Address:
    """Where clients can be told to go, for a broker that listens here."""
    if address.host in _ANYWHERE:
        return Address(socket.gethostname(), address.port)
    return address
