"""The simulated network: listeners, connections, and what can go wrong with them.

A connection is reset (both ends are told, each in its own time), silenced (nobody is told and nothing passes
any more), or loses one direction only. When a process is killed its peers see a reset or silence; bytes that
had left it may still arrive.
"""

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from typing_extensions import override

from floe.testing.sim_loop import SimLoop
from floe.testing.sim_process import PROCESS, SimProcess
from floe.testing.sim_trace import Trace
from floe.testing.sim_transport import LinkConditions, Pipe, SimSocket, SimTransport

Factory = Callable[[], asyncio.BaseProtocol]
FIRST_FREE_PORT = 40_000


class SimServer(asyncio.AbstractServer):
    """A listening address."""

    def __init__(self, network: "SimNetwork", address: tuple[str, int], factory: Factory) -> None:
        self._network = network
        self.address = address
        self.factory = factory
        self.context = contextvars.copy_context()

    @property
    def sockets(self) -> tuple[SimSocket, ...]:
        return (SimSocket(self.address, None),) if self.is_serving() else ()

    @override
    def is_serving(self) -> bool:
        return self._network.listener(self.address[1]) is self

    @override
    def close(self) -> None:
        self._network.stop_listening(self)

    @override
    async def wait_closed(self) -> None:
        """Connections are closed by their owners."""

    @override
    async def start_serving(self) -> None:
        """Serving starts with creation."""

    @override
    async def serve_forever(self) -> None:
        await asyncio.get_running_loop().create_future()

    @override
    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()


@dataclass(slots=True)
class Connection:
    """Two ends and the pipes between them."""

    number: int
    client: SimTransport
    server: SimTransport
    up: Pipe  # client to server
    down: Pipe

    @property
    def is_over(self) -> bool:
        return self.client.is_lost and self.server.is_lost


class SimNetwork:
    """All listeners and connections of a world."""

    def __init__(
        self, loop: SimLoop, rng: Random, trace: Trace, conditions: Callable[[], LinkConditions]
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._trace = trace
        self._conditions = conditions  # drawn for each connection
        self._listeners: dict[int, SimServer] = {}
        self._connections: dict[int, Connection] = {}
        self._numbers = 0
        self._ports = FIRST_FREE_PORT
        self.silence_chance = 0.0  # that the peers of a killed process are told nothing
        loop.network = self

    def connections(self) -> list[Connection]:
        """Those that live, oldest first."""
        self._connections = {n: c for n, c in self._connections.items() if not c.is_over}
        return list(self._connections.values())

    def listener(self, port: int) -> SimServer | None:
        return self._listeners.get(port)

    def stop_listening(self, server: SimServer) -> None:
        if server.is_serving():
            del self._listeners[server.address[1]]

    async def serve(self, factory: Factory, host: str, port: int) -> asyncio.AbstractServer:
        if port == 0:
            self._ports += 1
            port = self._ports
        if port in self._listeners:
            raise OSError(98, "Address already in use")
        server = SimServer(self, (host, port), factory)
        self._listeners[port] = server
        self._trace.add(f"net listen {port}")
        return server

    async def connect(self, factory: Factory, host: str, port: int) -> tuple[SimTransport, Any]:
        """One round trip; the server accepts in the middle of it."""
        conditions = self._conditions()
        answer: asyncio.Future[SimTransport] = self._loop.create_future()
        context = contextvars.copy_context()
        self._loop.kernel_later(
            conditions.delay(self._rng), self._arrive, host, port, conditions, context, answer
        )
        transport = await answer
        protocol = factory()
        transport.made(protocol)
        return transport, protocol

    def _arrive(
        self,
        host: str,
        port: int,
        conditions: LinkConditions,
        context: contextvars.Context,
        answer: asyncio.Future[SimTransport],
    ) -> None:
        listener = self._listeners.get(port)
        delay = conditions.delay(self._rng)
        if listener is None:
            self._trace.add(f"net refuse {port}")
            self._loop.kernel_later(delay, _refuse, answer)
            return
        connection = self._establish(listener, (host, port), conditions, context)
        self._loop.call_soon(self._accept, listener, connection, context=listener.context.copy())
        self._loop.kernel_later(delay, _answer, answer, connection.client)

    def _establish(
        self,
        listener: SimServer,
        address: tuple[str, int],
        conditions: LinkConditions,
        context: contextvars.Context,
    ) -> Connection:
        self._numbers += 1
        number = self._numbers
        peer = ("10.0.0.1", 1024 + number)
        up = Pipe(self._loop, self._rng, conditions)
        down = Pipe(self._loop, self._rng, conditions)
        up.back, down.back = down, up
        client = SimTransport(self._loop, f"c{number}", down, up, context, self._trace, _extra(peer, address))
        server = SimTransport(
            self._loop, f"s{number}", up, down, listener.context.copy(), self._trace, _extra(address, peer)
        )
        connection = Connection(number, client, server, up, down)
        self._connections[number] = connection
        return connection

    def _accept(self, listener: SimServer, connection: Connection) -> None:
        self._trace.add(f"net accept {connection.number}")
        connection.server.made(listener.factory())

    def reset(self, connection: Connection) -> None:
        """Both ends learn of it, after what is under way to them."""
        self._trace.add(f"net reset {connection.number}")
        for pipe in (connection.up, connection.down):
            pipe.drop()
            pipe.reset_sink()

    def silence(self, connection: Connection, *, up: bool = True, down: bool = True) -> None:
        """Bytes vanish in the given directions; nobody is told."""
        self._trace.add(f"net silence {connection.number} up={up} down={down}")
        connection.up.is_cut |= up
        connection.down.is_cut |= down

    def kill(self, process: SimProcess) -> None:
        """Cut everything that the process had open."""
        for server in [s for s in self._listeners.values() if s.context.get(PROCESS) is process]:
            self.stop_listening(server)
        for connection in self.connections():
            ends = ((connection.client, connection.up), (connection.server, connection.down))
            for end, out in ends:
                if end.process is process and not end.is_lost:
                    self._cut_off(connection, end, out)

    def _cut_off(self, connection: Connection, end: SimTransport, out: Pipe) -> None:
        end.lose(None)
        back = connection.down if out is connection.up else connection.up
        back.is_cut = True
        if self._rng.random() < self.silence_chance:
            out.is_cut = True
        else:
            out.reset_sink()


def _extra(local: tuple[str, int], remote: tuple[str, int]) -> dict[str, object]:
    return {"sockname": local, "peername": remote, "socket": SimSocket(local, remote)}


def _refuse(answer: asyncio.Future[SimTransport]) -> None:
    if not answer.done():
        answer.set_exception(ConnectionRefusedError(111, "Connection refused"))


def _answer(answer: asyncio.Future[SimTransport], transport: SimTransport) -> None:
    if answer.done():  # the caller gave up
        transport.abort()
    else:
        answer.set_result(transport)
