"""Where settings come from: flags, the environment, a file; each as a flat map from dotted key to value."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from floe.config.errors import SettingsError

ENVIRONMENT_PREFIX = "FLOE_"
CONFIG_VARIABLE = "FLOE_CONFIG"
DEFAULT_FILE = "floe.toml"
FILE_BYTES_MAX = 1 << 20


def variable(key: str) -> str:
    """The environment variable of a key."""
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "_")


def from_environment(environment: Mapping[str, str], keys: Iterable[str]) -> dict[str, object]:
    """The keys whose variables are set.

    Other variables are not ours to judge: a service of the name `floe` makes Kubernetes set FLOE_PORT and
    more.
    """
    return {key: environment[variable(key)] for key in keys if variable(key) in environment}


def from_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """KEY=VALUE texts, as `-X` takes them."""
    values: dict[str, object] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise SettingsError(
                f"-X {assignment}: not of the form KEY=VALUE", hint="for example -X num.partitions=8"
            )
        values[key.strip()] = value.strip()
    return values


def from_file(path: Path) -> dict[str, object]:
    """A TOML file; a table is the same as a prefix, so `[produce]` may hold `commit.interval.ms`."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1).decode()
        table = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}", hint="check --config") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not a text file", hint="check --config") from error
    except tomllib.TOMLDecodeError as error:
        hint = 'strings need quotes: store.url = "s3://bucket/prefix"'
        raise SettingsError(f"{path} is not TOML: {error}", hint=hint) from error
    return dict(_flat(table, ""))


def _flat(table: Mapping[str, object], prefix: str) -> Iterable[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def config_file(flag: str | None, environment: Mapping[str, str], folder: Path) -> Path | None:
    """The file to read: the one named by the flag or FLOE_CONFIG, else floe.toml here if there is one."""
    named = flag or environment.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    default = folder / DEFAULT_FILE
    return default if default.exists() else None
