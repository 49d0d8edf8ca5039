"""Settings from all sources: flags over the environment over the file over defaults."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from floe.config.errors import SettingsError
from floe.config.settings import KEYS, Settings
from floe.config.sources import config_file, from_assignments, from_environment, from_file, variable


def load_settings(
    *,
    flags: Mapping[str, object] | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    config: str | None = None,
    folder: Path | None = None,
) -> tuple[Settings, dict[str, str]]:
    """The settings, and for each key that is not a default where it came from; raises `SettingsError`.

    `flags` are options with a name of their own; `assignments` are `-X KEY=VALUE`, which win over them.
    """
    given = environment or {}
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    path = config_file(config, given, folder or Path.cwd())
    if path is not None:
        _merge(values, sources, from_file(path), str(path))
    for key, value in from_environment(given, KEYS).items():
        _merge(values, sources, {key: value}, variable(key))
    _merge(values, sources, {k: v for k, v in (flags or {}).items() if v is not None}, "a flag")
    _merge(values, sources, from_assignments(assignments), "-X")
    try:
        return Settings.of(values), sources
    except ValidationError as error:
        raise _refusal(error, sources) from error


def _merge(
    values: dict[str, object], sources: dict[str, str], more: Mapping[str, object], source: str
) -> None:
    for key, value in more.items():
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else "docs/reference/settings.md lists every key"
            raise SettingsError(f"unknown setting {key} (from {source})", hint=hint)
        values[key] = value
        sources[key] = source


def _refusal(error: ValidationError, sources: Mapping[str, str]) -> SettingsError:
    """The first thing that is wrong."""
    first = error.errors()[0]
    message = str(first["msg"]).removeprefix("Value error, ")
    key = next((str(part) for part in first["loc"] if part in KEYS), None)
    if key is None:
        return SettingsError(message, hint="change one of the two")
    _, _, info = KEYS[key]
    return SettingsError(
        f"{key} (from {sources.get(key, 'default')}): {message}", hint=info.description or ""
    )
