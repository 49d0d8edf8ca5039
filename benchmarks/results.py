"""Result files: one JSON per benchmark, with the machine and the settings, rendered by `report`."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine

FOLDER = Path(__file__).parent / "results"


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median with the least and greatest of the repeats."""
    return {
        "median": round(statistics.median(values), 3),
        "least": round(min(values), 3),
        "greatest": round(max(values), 3),
        "repeats": len(values),
    }


def save(name: str, *, command: str, settings: dict[str, object], rows: list[dict[str, object]]) -> None:
    """Write results/<name>.json; `rows` is what the report prints, one table row each."""
    FOLDER.mkdir(exist_ok=True)
    content = {
        "name": name,
        "command": command,
        "machine": machine.describe(),
        "settings": settings,
        "rows": rows,
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
