"""Network addresses as settings give them."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer
from typing_extensions import override

PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 lets the system choose."""

    host: str
    port: int

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(value: object) -> Address:
    """HOST:PORT, :PORT for every interface, or Kafka's PLAINTEXT://HOST:PORT; raises ValueError."""
    if isinstance(value, Address):
        return value
    text = str(value).strip()
    protocol, separator, rest = text.rpartition("://")
    if separator and protocol.upper() != "PLAINTEXT":
        raise ValueError(f"{text!r} asks for {protocol}; only PLAINTEXT listeners are available")
    if "," in rest:
        raise ValueError(f"{text!r} names several listeners; one is available")
    host, colon, port = rest.rpartition(":")
    if not colon or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(f"{text!r} is not of the form HOST:PORT")
    return Address(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - Kafka's meaning of an empty host


def parse_optional_address(value: object) -> Address | None:
    """As `parse_address`; an empty text, `off` or `none` means no listener."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "off", "none")):
        return None
    return parse_address(value)


def _written(address: Any) -> str:  # noqa: ANN401 - an address or None
    return "off" if address is None else str(address)


ListenAddress = Annotated[Address, BeforeValidator(parse_address), PlainSerializer(_written)]
OptionalAddress = Annotated[
    Address | None, BeforeValidator(parse_optional_address), PlainSerializer(_written)
]
