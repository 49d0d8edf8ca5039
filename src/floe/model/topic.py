"""Topics and the ranges they are made of."""

from dataclasses import dataclass, field
from enum import StrEnum

from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected
from floe.model.ids import RangeId, TopicId

NAME_LENGTH_MAX = 249
PARTITIONS_MAX = 100_000


class StorageClass(StrEnum):
    OBJECT = "object"
    STRIPED = "striped"


class Placement(StrEnum):
    KAFKA = "kafka"
    NATIVE = "native"


class RangeState(StrEnum):
    ACTIVE = "active"
    SEALED = "sealed"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as clients see it; `ranges[i]` is Kafka's partition i.

    `is_aligned` is lost for good when partitions were added other than by doubling.
    `config` holds only what was set; `TopicConfig` gives defaults.
    """

    name: str
    id: TopicId
    ranges: tuple[RangeId, ...]
    storage_class: StorageClass = StorageClass.OBJECT
    placement: Placement = Placement.KAFKA
    is_aligned: bool = True
    config: dict[str, str] = field(default_factory=dict)
    version: int = 0  # raised by every change


def check_topic_name(name: str) -> None:
    """Raise `Rejected(INVALID_TOPIC_EXCEPTION)` unless Kafka would accept the name."""
    problem = _name_problem(name)
    if problem:
        raise Rejected(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _name_problem(name: str) -> str | None:
    if not name:
        return "topic name is empty"
    if name in (".", ".."):
        return "topic name cannot be . or .."
    if len(name) > NAME_LENGTH_MAX:
        return f"topic name is longer than {NAME_LENGTH_MAX} characters"
    if not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        return "topic name may hold only letters, digits, '.', '_' and '-'"
    return None
