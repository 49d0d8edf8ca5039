"""Shipped test kit: embedded broker, fakes, simulator."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floe.testing.embedded import EmbeddedBroker as EmbeddedBroker

__all__ = ["EmbeddedBroker"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module has
    """Import the broker when it is asked for: fakes and the simulator are used without it."""
    if name == "EmbeddedBroker":
        from floe.testing.embedded import EmbeddedBroker

        return EmbeddedBroker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
