"""A small HTTP/1.1 server for health and metrics; GET and HEAD, one request per connection.

It needs no web framework, so that the base install can be watched. Pages are made synchronously from what
is in memory, and no page takes input.

Invariant: a peer holds at most `HEAD_BYTES_MAX` bytes and one of `CONNECTIONS_MAX` connections, for a
bounded time.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from typing_extensions import override

HEAD_BYTES_MAX = 8 << 10
CONNECTIONS_MAX = 64
REQUEST_SECONDS_MAX = 10.0
_END_OF_HEAD = b"\r\n\r\n"
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 431: "Too Large",
            503: "Service Unavailable"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Pages = Mapping[str, Callable[[], Page]]


class HttpServer:
    """Serves pages by exact path."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[_HttpConnection] = set()

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

    def answer(self, head: bytes) -> Page:
        """The page for a request's head."""
        line = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(line) != 3 or not line[2].startswith("HTTP/1."):
            return Page(400, b"this is not HTTP/1.1\n")
        method, target, _ = line
        if method not in ("GET", "HEAD"):
            return Page(405, b"only GET and HEAD are served\n")
        make = self._pages.get(target.partition("?")[0])
        if make is None:
            listed = "\n".join(sorted(self._pages))
            return Page(404, f"no such page; there are:\n{listed}\n".encode())
        return make()

    def admit(self, connection: "_HttpConnection") -> bool:
        if len(self._connections) >= CONNECTIONS_MAX:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: "_HttpConnection") -> None:
        self._connections.discard(connection)

    def _connection(self) -> "_HttpConnection":
        return _HttpConnection(self)


class _HttpConnection(asyncio.Protocol):
    """One request and its answer."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._head = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has all of asyncio.Transport, but does not derive from it.
        self._transport = cast("asyncio.Transport", transport)
        if not self._server.admit(self):
            self._transport.abort()
            return
        self._timer = asyncio.get_running_loop().call_later(REQUEST_SECONDS_MAX, self.abort)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        if self._timer is not None:
            self._timer.cancel()

    @override
    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._head += data
        if _END_OF_HEAD in self._head:
            page = self._server.answer(self._head)
        elif len(self._head) > HEAD_BYTES_MAX:
            page = Page(431, b"the request's head is too long\n")
        else:
            return
        is_head = self._head.startswith(b"HEAD ")
        transport.write(_head(page) + (b"" if is_head else page.body))
        transport.close()


def _head(page: Page) -> bytes:
    lines = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}",
        f"Content-Type: {page.content_type}",
        f"Content-Length: {len(page.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        "\r\n",
    )
    return "\r\n".join(lines).encode("latin-1")
