"""What a started broker prints: where it is, and what to type next."""

from floe import __version__
from floe.config.settings import Settings
from floe.server.broker import Broker


def banner(broker: Broker, settings: Settings, seconds: float) -> str:
    """A few lines for a person at a terminal."""
    kafka = broker.advertised
    told = f" (advertised as {kafka})" if kafka != broker.address else ""
    lines = [
        f"floe {__version__} ready in {seconds:.1f} s",
        f"  Kafka    {broker.address}{told}",
        *_where_data_rests(settings),
        *_other_ports(broker, settings),
        "",
        "Try, in another terminal:",
        f"  echo hello | kcat -b {kafka} -t first -P",
        f"  kcat -b {kafka} -t first -C -o beginning -e",
        "or in Python (pip install confluent-kafka):",
        "  from confluent_kafka import Producer",
        f'  p = Producer({{"bootstrap.servers": "{kafka}"}}); p.produce("first", b"hello"); p.flush()',
        "",
        "Stop with Ctrl-C.",
    ]
    return "\n".join(lines) + "\n"


def _where_data_rests(settings: Settings) -> list[str]:
    if settings.store.metadata == "memory":
        return ["  Store    memory: everything is gone when the broker stops"]
    return [f"  Store    {settings.objects_url}", f"  Data     {settings.broker.data_dir.absolute()}"]


def _other_ports(broker: Broker, settings: Settings) -> list[str]:
    lines: list[str] = []
    wanted, given = settings.listeners.http, broker.http_address
    if wanted is not None and given is not None:
        note = f" (port {wanted.port} is taken)" if wanted.port not in (0, given.port) else ""
        lines.append(f"  HTTP     http://{given}/metrics, /healthz, /readyz{note}")
    if broker.native_address is not None:
        lines.append(f"  Native   {broker.native_address}")
    return lines
