"""Topic configs: every key Kafka 4 knows, with its type and default, and what Floe does about it.

A key that Floe honours is in effect. Keys about Kafka's own machinery (segment files, replicas, flushes) are
checked as Kafka checks them, kept and shown, so that tools which set them go on working, but are not in
effect. A key that nobody knows is refused, with the nearest known one named. Values are kept as the strings
that clients sent; `TopicConfig` gives the typed values of those in effect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum

from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")
VALUE_LENGTH_MAX = 32_767


class ConfigKind(IntEnum):
    """Types of values, by the numbers DescribeConfigs answers with."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key: its type, default and bounds, and whether Floe acts on it.

    `choices` bounds strings and the items of lists. `effective` narrows `is_in_effect` to these values of it:
    the others are legal and kept, and change nothing.
    """

    name: str
    kind: ConfigKind
    default: str
    least: float = -_LONG_MAX
    most: float = _LONG_MAX
    choices: tuple[str, ...] = ()
    is_in_effect: bool = False
    effective: tuple[str, ...] = ()

    def acts_on(self, value: str) -> bool:
        """Whether Floe does what this value says."""
        return self.is_in_effect and (not self.effective or value in self.effective)

    def problem(self, value: str) -> str | None:
        """What is wrong with a value, or None."""
        if len(value) > VALUE_LENGTH_MAX:
            return f"is longer than {VALUE_LENGTH_MAX} characters"
        match self.kind:
            case ConfigKind.BOOLEAN:
                return None if value.strip().lower() in ("true", "false") else "must be true or false"
            case ConfigKind.INT | ConfigKind.LONG | ConfigKind.DOUBLE:
                return self._number_problem(value.strip())
            case ConfigKind.STRING:
                return None if not self.choices or value in self.choices else self._choice_problem()
            case ConfigKind.LIST:
                items = [item.strip() for item in value.split(",")] if value else []
                if self.choices and (not items or not set(items) <= set(self.choices)):
                    return self._choice_problem()
                return None

    def _number_problem(self, text: str) -> str | None:
        is_decimal = self.kind is ConfigKind.DOUBLE
        if not (_DECIMAL if is_decimal else _INTEGER).fullmatch(text):
            return "must be a number" if is_decimal else "must be a whole number"
        number = float(text) if is_decimal else int(text)
        most = min(self.most, _INT_MAX) if self.kind is ConfigKind.INT else self.most
        if number < self.least:
            return f"must be at least {self.least}"
        return None if number <= most else f"must be at most {most}"

    def _choice_problem(self) -> str:
        return "must be one of " + ", ".join(self.choices)


def _int(name: str, default: int, least: int = 0, *, is_in_effect: bool = False) -> ConfigKey:
    return ConfigKey(
        name=name, kind=ConfigKind.INT, default=str(default), least=least, is_in_effect=is_in_effect
    )


def _long(name: str, default: int, least: int = 0, *, is_in_effect: bool = False) -> ConfigKey:
    return ConfigKey(
        name=name, kind=ConfigKind.LONG, default=str(default), least=least, is_in_effect=is_in_effect
    )


def _flag(name: str) -> ConfigKey:
    return ConfigKey(name=name, kind=ConfigKind.BOOLEAN, default="false")


def _text(name: str) -> ConfigKey:
    return ConfigKey(name=name, kind=ConfigKind.LIST, default="")


_DAY_MS = 24 * 60 * 60 * 1000
_KEYS = (
    ConfigKey(
        name="cleanup.policy",
        kind=ConfigKind.LIST,
        default="delete",
        choices=("compact", "delete"),
        is_in_effect=True,
        effective=("delete",),
    ),
    ConfigKey(
        name="compression.type",
        kind=ConfigKind.STRING,
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        is_in_effect=True,
        effective=("producer",),
    ),
    ConfigKey(
        name="message.timestamp.type",
        kind=ConfigKind.STRING,
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        is_in_effect=True,
    ),
    _int("max.message.bytes", 1_048_588, is_in_effect=True),
    _long("retention.ms", 7 * _DAY_MS, least=-1, is_in_effect=True),
    _long("retention.bytes", -1, least=-1, is_in_effect=True),
    _int("compression.gzip.level", -1, least=-1),
    _int("compression.lz4.level", 9, least=1),
    _int("compression.zstd.level", 3, least=-131_072),
    _long("delete.retention.ms", _DAY_MS),
    _long("file.delete.delay.ms", 60_000),
    _long("flush.messages", _LONG_MAX, least=1),
    _long("flush.ms", _LONG_MAX),
    _text("follower.replication.throttled.replicas"),
    _int("index.interval.bytes", 4096),
    _text("leader.replication.throttled.replicas"),
    _long("local.retention.bytes", -2, least=-2),
    _long("local.retention.ms", -2, least=-2),
    _long("max.compaction.lag.ms", _LONG_MAX, least=1),
    _long("message.timestamp.after.max.ms", 3_600_000),
    _long("message.timestamp.before.max.ms", _LONG_MAX),
    ConfigKey(name="min.cleanable.dirty.ratio", kind=ConfigKind.DOUBLE, default="0.5", least=0, most=1),
    _long("min.compaction.lag.ms", 0),
    _int("min.insync.replicas", 1, least=1),
    _flag("preallocate"),
    _flag("remote.log.copy.disable"),
    _flag("remote.log.delete.on.disable"),
    _flag("remote.storage.enable"),
    _int("segment.bytes", 1 << 30, least=14),
    _int("segment.index.bytes", 10 << 20, least=4),
    _long("segment.jitter.ms", 0),
    _long("segment.ms", 7 * _DAY_MS, least=1),
    _flag("unclean.leader.election.enable"),
)
TOPIC_CONFIGS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


def check_config(config: Mapping[str, str]) -> None:
    """Raise `Rejected(INVALID_CONFIG)` with a sentence that names the key and says what is wrong."""
    for name, value in config.items():
        problem = known_key(name).problem(value)
        if problem:
            shown = value if len(value) <= 100 else value[:100] + "..."
            raise Rejected(
                ErrorCode.INVALID_CONFIG, f"Invalid value {shown} for configuration {name}: it {problem}"
            )


def known_key(name: str) -> ConfigKey:
    """The key of this name; refuses one that nobody knows."""
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        raise Rejected(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name[:100]}{_hint(name)}")
    return key


def _hint(name: str) -> str:
    near = get_close_matches(name[:100], TOPIC_CONFIGS, n=1)
    return f". Did you mean {near[0]}?" if near else ""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The typed values of the configs in effect, defaults included."""

    retention_ms: int
    retention_bytes: int
    max_message_bytes: int
    is_deleting: bool  # whether old records may be dropped; not so when the policy is to compact only
    is_compacting: bool

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "TopicConfig":
        """Of what was set on a topic; it has passed `check_config`."""
        policies = {item.strip() for item in value_of(config, "cleanup.policy").split(",")}
        return cls(
            retention_ms=int(value_of(config, "retention.ms")),
            retention_bytes=int(value_of(config, "retention.bytes")),
            max_message_bytes=int(value_of(config, "max.message.bytes")),
            is_deleting="delete" in policies,
            is_compacting="compact" in policies,
        )


def value_of(config: Mapping[str, str], name: str) -> str:
    """What was set, or the default."""
    value = config.get(name)
    return TOPIC_CONFIGS[name].default if value is None else value
