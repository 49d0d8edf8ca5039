"""The HTTP port: pages, refusals, bounds."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Counter

from floe.console.http import CONNECTIONS_MAX, HttpServer
from floe.console.pages import broker_pages


@pytest.fixture
async def site():
    registry = CollectorRegistry()
    Counter("floe_things_total", "Things", registry=registry).inc(3)
    state = {"reason": "starting"}
    pages = broker_pages(
        registry, unready_reason=lambda: state["reason"], unhealthy_reason=lambda: state.get("illness")
    )
    server = HttpServer(pages)
    listening = await server.start("127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]

    async def ask(data):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return head.decode(), body.decode()

    ask.state = state
    ask.port = port
    yield ask
    await server.stop()


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_metrics_are_in_prometheus_form(site):
    head, body = await site(get("/metrics"))
    assert head.startswith("HTTP/1.1 200 OK")
    assert "text/plain; version=0.0.4" in head
    assert f"Content-Length: {len(body)}" in head
    assert "floe_things_total 3.0" in body


async def test_readiness_follows_the_broker(site):
    head, body = await site(get("/readyz"))
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 503 Service Unavailable", "starting\n")
    site.state["reason"] = None
    head, body = await site(get("/readyz?verbose"))
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 200 OK", "ready\n")


async def test_health_is_lost_only_when_a_restart_is_needed(site):
    assert (await site(get("/healthz")))[1] == "ok\n"
    site.state["illness"] = "fenced"
    head, body = await site(get("/healthz"))
    assert (head.split("\r\n")[0], body) == ("HTTP/1.1 503 Service Unavailable", "fenced\n")


async def test_head_has_no_body(site):
    head, body = await site(b"HEAD /healthz HTTP/1.1\r\n\r\n")
    assert "Content-Length: 3" in head
    assert body == ""


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (get("/../etc/passwd"), 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x00\x01\x02\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000, 431),
    ],
)
async def test_other_requests_are_refused(site, data, status):
    head, _ = await site(data)
    assert head.startswith(f"HTTP/1.1 {status} ")


async def test_request_may_come_in_pieces(site):
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    for byte in get("/healthz"):
        writer.write(bytes([byte]))
        await writer.drain()
    assert (await reader.read()).endswith(b"ok\n")
    writer.close()


async def test_connections_are_bounded(site):
    silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(CONNECTIONS_MAX)]
    try:
        head, _ = await site(get("/healthz"))
    except ConnectionError:
        head = ""
    assert head == ""
    for _, writer in silent:
        writer.close()
