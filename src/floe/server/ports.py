"""Listening sockets: a port that was asked for must be free, a default one may give way."""

import asyncio
import errno
from collections.abc import Awaitable, Callable

from floe.config.address import Address
from floe.server.errors import CannotStart

Start = Callable[[str, int], Awaitable[asyncio.AbstractServer]]


async def listen(start: Start, address: Address, *, what: str, flag: str, may_move: bool) -> Address:
    """Start a server and return where it really listens; raises `CannotStart`.

    With `may_move` a taken port is replaced by a free one.
    """
    try:
        server = await start(address.host, address.port)
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        if is_taken and may_move:
            return await listen(start, Address(address.host, 0), what=what, flag=flag, may_move=False)
        reason = "the port is taken" if is_taken else (error.strerror or str(error))
        raise CannotStart(
            f"cannot listen for {what} on {address}: {reason}",
            hint=f"choose another address with {flag}, or port 0 for a free one",
        ) from error
    return Address(address.host, bound_port(server))


def bound_port(server: asyncio.AbstractServer) -> int:
    """The port that the system gave; asyncio's, uvloop's and the simulator's servers all have sockets."""
    port: int = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    return port
