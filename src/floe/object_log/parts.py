"""What the engine stands on; every component takes from it what it needs."""

from dataclasses import dataclass

from floe.metadata.api import Metadata
from floe.object_log.settings import EngineSettings
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.storage.objects.port import Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """Ports and settings of one engine; keys of its objects lie below `cluster_id`."""

    objects: Objects
    metadata: Metadata
    clock: Clock
    metrics: Metrics
    settings: EngineSettings
    cluster_id: str
