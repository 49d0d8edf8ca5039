"""Deletes report failures per key, go on with the rest, and cost a bounded number of requests.

A small server stands in for an S3 that throttles single keys, since the real ones at hand never do.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Self

import pytest

from floe.storage.objects.cloud import CloudObjects
from floe.storage.objects.cloud_url import open_cloud


class DeleteServer:
    """Answers DeleteObjects: throttles the keys in `throttled`, refuses everything when `is_down`."""

    def __init__(self) -> None:
        self.throttled: set[str] = set()
        self.deleted: set[str] = set()
        self.requests: list[int] = []  # keys per request
        self.is_down = False
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
                status, answer = self._answer((await reader.readexactly(length)).decode())
                writer.write(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s" % (status, len(answer), answer))
        except asyncio.IncompleteReadError:
            writer.close()

    def _answer(self, body: str) -> tuple[int, bytes]:
        keys = re.findall(r"<Key>([^<]*)</Key>", body)
        self.requests.append(len(keys))
        if self.is_down:
            return 400, b"<Error><Code>BadRequest</Code></Error>"
        lines = []
        for key in keys:
            if key in self.throttled:
                lines.append(f"<Error><Key>{key}</Key><Code>SlowDown</Code><Message>slow</Message></Error>")
            else:
                self.deleted.add(key)
                lines.append(f"<Deleted><Key>{key}</Key></Deleted>")
        return 200, f"<?xml version='1.0'?><DeleteResult>{''.join(lines)}</DeleteResult>".encode()


@pytest.fixture
async def server() -> AsyncIterator[DeleteServer]:
    async with DeleteServer() as server:
        yield server


def objects_of(server: DeleteServer) -> CloudObjects:
    settings = "allow_http=true&region=a&access_key_id=a&secret_access_key=b"
    return open_cloud(f"s3://bucket?endpoint=http://127.0.0.1:{server.port}&{settings}")


KEYS = [f"a/{number:05}" for number in range(2500)]


async def test_pages_hold_a_thousand_keys(server: DeleteServer) -> None:
    assert await objects_of(server).delete(KEYS) == {}
    assert server.deleted == set(KEYS)
    assert server.requests == [1000, 1000, 500]


async def test_a_throttled_key_is_reported_and_the_rest_is_deleted(server: DeleteServer) -> None:
    server.throttled = {"a/00007", "a/01234"}
    failures = await objects_of(server).delete(KEYS)
    assert set(failures) == server.throttled
    assert all("slow" in reason.lower() for reason in failures.values())
    assert server.deleted == set(KEYS) - server.throttled
    assert len(server.requests) < 60


async def test_many_throttled_keys_cost_a_bounded_number_of_requests(server: DeleteServer) -> None:
    server.throttled = set(KEYS[::3])
    failures = await objects_of(server).delete(KEYS)
    assert server.throttled <= set(failures)
    assert set(KEYS) - set(failures) <= server.deleted
    assert len(server.requests) <= 3 * 2 * 48


async def test_a_store_that_is_down_is_not_asked_about_every_key(server: DeleteServer) -> None:
    server.is_down = True
    failures = await objects_of(server).delete(KEYS)
    assert set(failures) == set(KEYS)
    assert len(server.requests) <= 2 * 48 + 2
    assert max(map(len, failures.values())) <= 300
