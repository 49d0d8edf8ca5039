"""Sizes and times as people write them: 8MiB, 250ms, 7d; a bare number is in the unit of its key."""

import re
from typing import Annotated

from pydantic import BeforeValidator

_SIZES = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
_TIMES = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_WRITTEN = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def _parsed(value: object, units: dict[str, int], examples: str) -> object:
    if not isinstance(value, str):
        return value
    written = _WRITTEN.fullmatch(value)
    if written is None or written[2].lower() not in units:
        raise ValueError(f"{value!r} is not a number with a unit such as {examples}")
    amount = float(written[1]) * units[written[2].lower()]
    if not amount.is_integer():
        raise ValueError(f"{value!r} is not a whole number of the key's unit")
    return int(amount)


def parse_bytes(value: object) -> object:
    """Bytes from a text such as 8MiB; anything but a text is left to the next check."""
    return _parsed(value, _SIZES, "64KiB, 8MiB or 1GB")


def parse_ms(value: object) -> object:
    """Milliseconds from a text such as 250ms or 7d; anything but a text is left to the next check."""
    return _parsed(value, _TIMES, "250ms, 5s, 10m or 7d")


Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Ms = Annotated[int, BeforeValidator(parse_ms)]
