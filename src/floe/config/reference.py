"""The page docs/reference/settings.md, made from the settings; `python -m floe.config.reference` prints
it.
"""

import sys
from typing import Any

from pydantic.fields import FieldInfo

from floe.config.settings import KEYS, Settings
from floe.config.sources import variable

_HEAD = """# Settings

Made from `src/floe/config/settings.py` by `python -m floe.config.reference`; a test fails when it is not
current.

A setting is given by a flag of `floe serve` (`-X key=value` takes every key), by its environment variable,
or in `floe.toml`; in this order of precedence. Keys are Kafka's where Kafka has the same thing. Sizes may
be written as `64KiB`, `8MiB` or `1GB`, times as `250ms`, `5s`, `10m` or `7d`. In `floe.toml` a table is the
same as a prefix:

```toml
num.partitions = 8

[produce]
commit.interval.ms = "100ms"
```

An unknown key in a flag or a file is an error that names the nearest key. Unknown `FLOE_` variables are left
alone, since Kubernetes sets some for a service of that name.
"""


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for group, field in Settings.model_fields.items():
        model: Any = field.annotation
        lines += [f"## {group.capitalize()}", "", " ".join((model.__doc__ or "").split()), ""]
        lines += ["| key | default | bounds | meaning |", "|---|---|---|---|"]
        lines += [_row(key, info) for key, (owner, _, info) in KEYS.items() if owner == group]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(key: str, info: FieldInfo) -> str:
    description = " ".join((info.description or "").split())
    return f"| `{key}`<br>`{variable(key)}` | {_default(key, info)} | {_bounds(info)} | {description} |"


def _default(key: str, info: FieldInfo) -> str:
    value = info.default
    if value is None:
        return "see text"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if key.endswith(".bytes") and isinstance(value, int) and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"`{value}` ({value >> 20} MiB)"
    return f"`{value}`"


def _bounds(info: FieldInfo) -> str:
    found: list[str] = []
    for mark in info.metadata:
        low, high = getattr(mark, "ge", None), getattr(mark, "le", None)
        found += [f"≥ {low}"] if low is not None else []
        found += [f"≤ {high}"] if high is not None else []
    return ", ".join(found)


if __name__ == "__main__":
    sys.stdout.write(page())
