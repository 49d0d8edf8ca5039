"""What a broker is made of besides its own code: time, chance, media."""

from dataclasses import dataclass
from random import Random

from floe.metadata.store.port import Store
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.server.data_folder import DataFolder
from floe.storage.objects.port import Objects


@dataclass(slots=True)
class Parts:
    """Adapters chosen for one broker, which owns them from its start on and closes them.

    `random` also makes ids and nonces, so a real broker's is the operating system's. Without a `folder`
    nothing of the broker outlives `store` and `objects`, and the native port needs its secret from a file.
    """

    clock: Clock
    random: Random
    objects: Objects
    store: Store
    metrics: Metrics
    folder: DataFolder | None = None
