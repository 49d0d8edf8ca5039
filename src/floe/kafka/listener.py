"""The Kafka port: accepts connections, ends silent ones, and drains when the broker stops.

uvloop and asyncio both set TCP_NODELAY on accepted sockets, so small answers are not held back.
"""

import asyncio
from contextlib import suppress

from floe.kafka.connection import Connection
from floe.kafka.door import Door
from floe.kafka.receiver import SCRATCH_BYTES

SWEEP_SECONDS = 10.0
_STALLED_SWEEPS_MAX = 3  # part of a request, then silence: it holds memory that others could use
_STALLED_SWEEPS_TIGHT = 1  # the same while others wait for memory
_ENDING_SWEEPS_MAX = 3  # a peer that does not take the last bytes of a closed connection
_BACKLOG = 1024


class Listener:
    """One listening socket and its connections."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._server: asyncio.AbstractServer | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._idle_sweeps_max = max(1, round(door.settings.connection_idle_ms / 1000 / SWEEP_SECONDS))

    async def start(self, host: str, port: int) -> asyncio.AbstractServer:
        """Accept connections; raises OSError when the address cannot be had."""
        self._server = await self.door.loop.create_server(self._connection, host, port, backlog=_BACKLOG)
        self._sweep_timer = self.door.loop.call_later(SWEEP_SECONDS, self.sweep)
        return self._server

    async def stop(self, *, drain_seconds: float) -> None:
        """Accept no more; answer what has started, for at most so long; then end every connection."""
        if self._server is not None:
            self._server.close()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        door = self.door
        if drain_seconds > 0:
            for connection in tuple(door.connections):
                connection.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(door.all_gone(), drain_seconds)
        for connection in tuple(door.connections):
            connection.transport.abort()

    def _connection(self) -> Connection:
        return Connection(self.door, self._scratch)

    def sweep(self) -> None:
        """Look at every connection once; no timer per connection or request is needed for this."""
        self._sweep_timer = self.door.loop.call_later(SWEEP_SECONDS, self.sweep)
        for connection in tuple(self.door.connections):
            self._look_at(connection)
        counters = self.door.counters
        counters.paused_connections = sum(connection.is_paused for connection in self.door.connections)

    def _stalled_sweeps_max(self) -> int:
        return _STALLED_SWEEPS_TIGHT if self.door.budget.has_waiters else _STALLED_SWEEPS_MAX

    def _look_at(self, connection: Connection) -> None:
        if connection.received_bytes != connection.swept_bytes and not connection.is_over:
            connection.swept_bytes = connection.received_bytes
            connection.silent_sweeps = 0
            return
        connection.silent_sweeps += 1
        silent = connection.silent_sweeps
        if connection.is_over:
            if silent > _ENDING_SWEEPS_MAX:
                connection.transport.abort()
        elif connection.is_receiving and not connection.is_paused and silent >= self._stalled_sweeps_max():
            connection.refuse("stalled request")
        elif silent >= self._idle_sweeps_max and (connection.is_idle or connection.is_choked):
            connection.end()
