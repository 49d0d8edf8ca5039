"""Renders results/*.json into docs/benchmarks.md; the text between tables is in this file's pages."""

import json
from pathlib import Path

from benchmarks.results import FOLDER

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
NOTES = Path(__file__).parent / "notes"
ORDER = ("produce", "fetch", "small", "latency", "memory", "metadata", "waiting_fetches", "codec")


def render() -> str:
    """The whole page; deterministic, so that a test can tell whether it is current."""
    parts = [(NOTES / "introduction.md").read_text()]
    for name in ORDER:
        path = FOLDER / f"{name}.json"
        if path.exists():
            parts.append(_section(json.loads(path.read_text())))
    return "\n".join(parts)


def _section(result: dict[str, object]) -> str:
    rows = result["rows"]
    assert isinstance(rows, list)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [f"## {str(result['name']).replace('_', ' ').capitalize()}", ""]
    note = NOTES / f"{result['name']}.md"
    if note.exists():
        lines += [note.read_text().strip(), ""]
    lines += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(column, "")) for column in columns) + " |" for row in rows]
    lines += ["", f"Command: `{result['command']}`. Settings: {_facts(result['settings'])}.", ""]
    lines += [f"Machine: {_facts(result['machine'])}.", ""]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return f"{_number(value['median'])} ({_number(value['least'])} to {_number(value['greatest'])})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value) if isinstance(value, int | float) else str(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".") if value else "0"


def _facts(facts: object) -> str:
    assert isinstance(facts, dict)
    values = {k: "; ".join(v) if isinstance(v, list) else v for k, v in facts.items()}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())


if __name__ == "__main__":
    PAGE.write_text(render())
