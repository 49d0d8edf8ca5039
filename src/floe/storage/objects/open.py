"""Which object store a URL names; the one place that knows the schemes."""

import random as random_module
from urllib.parse import unquote, urlsplit

from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.storage.objects.cloud_url import SCHEMES, open_cloud
from floe.storage.objects.files import FileObjects
from floe.storage.objects.instrumented import InstrumentedObjects
from floe.storage.objects.memory import MemoryObjects
from floe.storage.objects.port import Objects
from floe.storage.objects.retrying import RetryingObjects
from floe.storage.os_disk import OsDisk


def open_objects(
    url: str, *, clock: Clock, random: random_module.Random, metrics: Metrics | None = None
) -> Objects:
    """The store named by `file:///folder`, `memory://`, `s3://`, `gs://` or `az://`; raises ValueError.

    Calls are repeated when the store is unavailable, and every attempt is measured.
    """
    objects = _adapter(url, clock)
    if metrics is not None:
        objects = InstrumentedObjects(objects, clock=clock, metrics=metrics)
    return RetryingObjects(objects, clock=clock, random=random, metrics=metrics)


def _adapter(url: str, clock: Clock) -> Objects:
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return MemoryObjects(clock)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ValueError(f"a file store needs an absolute path, as in file:///var/lib/floe. url={url}")
        return FileObjects(OsDisk(unquote(parts.path)))
    if parts.scheme in SCHEMES:
        return open_cloud(url)
    raise ValueError(
        f"unknown kind of object store. scheme={parts.scheme!r} known=file,memory,{','.join(SCHEMES)}"
    )
