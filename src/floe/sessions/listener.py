"""The native port: accepts connections and hands them the calls."""

import asyncio
from collections.abc import Callable

from floe.sessions.calls import Calls
from floe.sessions.connection import NativeConnection
from floe.wire.native import ServerHandshake
from floe.wire.native.handshake import NONCE_SIZE

CONNECTIONS_MAX = 256


class NativeListener:
    """One listening socket and its connections; `nonce` gives fresh unpredictable bytes."""

    def __init__(self, calls: Calls, *, secret: bytes, nonce: Callable[[int], bytes]) -> None:
        self.calls = calls
        self._secret = secret
        self._nonce = nonce
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[NativeConnection] = set()

    async def start(self, host: str, port: int) -> asyncio.AbstractServer:
        """Accept connections; raises OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, host, port)
        return self._server

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.abort()

    def admit(self, connection: NativeConnection) -> bool:
        if len(self._connections) >= CONNECTIONS_MAX:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: NativeConnection) -> None:
        self._connections.discard(connection)

    def _connection(self) -> NativeConnection:
        return NativeConnection(self, ServerHandshake(self._secret, self._nonce(NONCE_SIZE)))
