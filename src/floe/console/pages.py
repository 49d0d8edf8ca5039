"""The pages of the HTTP port: /metrics, /healthz, /readyz."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest

from floe.console.http import Page, Pages

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


Reason = Callable[[], str | None]


def broker_pages(registry: CollectorRegistry, *, unready_reason: Reason, unhealthy_reason: Reason) -> Pages:
    """Readiness: whether clients are served now. Health: whether they will be again without a restart."""

    def metrics() -> Page:
        return Page(200, generate_latest(registry), _METRICS_TYPE)

    def healthz() -> Page:
        return _told("ok", unhealthy_reason())

    def readyz() -> Page:
        return _told("ready", unready_reason())

    return {"/metrics": metrics, "/healthz": healthz, "/livez": healthz, "/readyz": readyz}


def _told(good: str, reason: str | None) -> Page:
    return Page(200, f"{good}\n".encode()) if reason is None else Page(503, f"{reason}\n".encode())
