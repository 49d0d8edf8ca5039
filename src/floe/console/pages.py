"""The pages of the HTTP port: /metrics, /healthz, /readyz."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest

from floe.console.http import Page, Pages

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def broker_pages(registry: CollectorRegistry, unready_reason: Callable[[], str | None]) -> Pages:
    """`unready_reason` says why the broker does not take requests, or None when it does."""

    def metrics() -> Page:
        return Page(200, generate_latest(registry), _METRICS_TYPE)

    def healthz() -> Page:
        return Page(200, b"ok\n")  # the event loop turns, or nobody would read this

    def readyz() -> Page:
        reason = unready_reason()
        return Page(200, b"ready\n") if reason is None else Page(503, f"{reason}\n".encode())

    return {"/metrics": metrics, "/healthz": healthz, "/livez": healthz, "/readyz": readyz}
