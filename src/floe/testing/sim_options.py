"""What a simulated world is made of, drawn from its seed.

Swarm testing: each kind of fault is in or out by a coin of its own, so that some worlds have only one kind
and bugs that a busier world would mask can show.
"""

from dataclasses import asdict, dataclass
from random import Random

from floe.testing.sim_objects import ObjectFaults
from floe.testing.sim_transport import LinkConditions

SECONDS_DEFAULT = 30.0


@dataclass(frozen=True, slots=True)
class SimOptions:
    """Times in virtual seconds; intervals are means, 0 for never; chances are per opportunity."""

    seconds: float
    store: str  # "memory" or "local"
    vnodes: int
    objects: str  # "server" or "files"
    topics: tuple[tuple[str, int], ...]
    producers: int
    plain_producers: int
    consumers: int
    request_seconds: float
    pause: float
    size_max: int
    give_up_chance: float
    seek_chance: float
    trim_chance: float
    links: LinkConditions
    object_faults: ObjectFaults
    disk_slow: bool
    disk_error_chance: float  # per call, files only
    commit_fault_chance: float
    sync_fault_chance: float  # of the metadata's map, local store only
    power_cut_interval: float
    kill_at_call_interval: float
    kill_at_step_interval: float
    clean_stop_interval: float
    freeze_interval: float
    reset_interval: float
    silence_interval: float
    silence_chance: float
    outage_interval: float
    outage_seconds: float
    lull_seconds: float  # of few operations and few faults, in the middle: buckets close, garbage goes
    clock_jump_ms: int
    churn_interval: float

    def lines(self) -> list[str]:
        """For printing at the start of a run."""
        return [f"  {name} = {value}" for name, value in asdict(self).items()]


def draw_options(seed: int, seconds: float = SECONDS_DEFAULT) -> SimOptions:
    """The world of a seed; independent of everything else that the seed decides."""
    rng = Random(f"options {seed}")  # noqa: S311

    def sometimes(chance: float, low: float, high: float) -> float:
        value = rng.uniform(low, high)
        return round(value, 4) if rng.random() < chance else 0.0

    links = LinkConditions(
        latency=rng.choice([(0.0001, 0.001), (0.0001, 0.02), (0.001, 0.1)]),
        spike_chance=sometimes(0.3, 0.001, 0.05),
        fragment_max=rng.choice([1000, 16_384, 65_536]),
        tiny_chance=sometimes(0.3, 0.02, 0.2),
        window=rng.choice([4096, 65_536, 262_144]),
    )
    faults = ObjectFaults(
        latency=rng.choice([(0.0002, 0.002), (0.005, 0.03), (0.02, 0.2)]),
        slow=sometimes(0.4, 0.01, 0.1),
        slow_seconds=rng.choice([0.5, 3.0]),
        lost=sometimes(0.5, 0.01, 0.15),
        ambiguous=sometimes(0.5, 0.01, 0.15),
        late=sometimes(0.3, 0.01, 0.1),
        delete_fails=sometimes(0.5, 0.05, 0.4),
    )
    topics = tuple((f"topic-{n}", rng.choice((1, 2, 3, 8))) for n in range(rng.randint(1, 3)))
    return SimOptions(
        seconds=seconds,
        store=rng.choice(("memory", "local")),
        vnodes=rng.choice((2, 4, 4, 8)),
        objects=rng.choice(("server", "server", "files")),
        topics=topics,
        producers=rng.randint(1, 4),
        plain_producers=rng.randint(0, 2),
        consumers=rng.randint(1, 3),
        request_seconds=rng.choice((2.0, 5.0, 15.0)),
        pause=rng.choice((0.06, 0.12, 0.4)),
        size_max=rng.choice((50, 50, 1000, 8000)),
        give_up_chance=sometimes(0.3, 0.005, 0.03),
        seek_chance=sometimes(0.5, 0.01, 0.1),
        trim_chance=sometimes(0.4, 0.02, 0.2),
        links=links,
        object_faults=faults,
        disk_slow=rng.random() < 0.3,
        disk_error_chance=sometimes(0.3, 0.001, 0.02),
        commit_fault_chance=sometimes(0.3, 0.005, 0.03),
        sync_fault_chance=sometimes(0.2, 0.001, 0.01),
        power_cut_interval=sometimes(0.6, 2, 15),
        kill_at_call_interval=sometimes(0.6, 2, 15),
        kill_at_step_interval=sometimes(0.6, 2, 15),
        clean_stop_interval=sometimes(0.3, 5, 20),
        freeze_interval=sometimes(0.3, 3, 15),
        reset_interval=sometimes(0.5, 0.5, 5),
        silence_interval=sometimes(0.3, 3, 15),
        silence_chance=sometimes(0.4, 0.1, 1.0),
        outage_interval=sometimes(0.3, 5, 20),
        outage_seconds=rng.choice((4.0, 4.0, 45.0)),
        lull_seconds=rng.choice((0.0, 0.0, 400.0, 900.0)),
        clock_jump_ms=rng.choice((0, 0, 0, 2000, 60_000, 600_000)),
        churn_interval=sometimes(0.3, 2, 8),
    )
