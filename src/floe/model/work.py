"""Bulk labour as claimed, leased items."""

from dataclasses import dataclass
from enum import StrEnum

from floe.model.ids import ObjectId, VnodeId


class WorkKind(StrEnum):
    """What an item asks for. Only `DELETE` is done by brokers themselves."""

    DELETE = "delete"
    COMPACT = "compact"
    CLEAN = "clean"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A leased unit of work.

    `token` is the fence: a finish with an older token changes nothing. `deadline_ms` serves progress
    only. `objects` are the objects to delete.
    """

    id: int
    home: VnodeId
    kind: WorkKind
    token: int
    deadline_ms: int
    objects: tuple[ObjectId, ...]


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What a worker says at the end: the objects done; the rest go back to be claimed again."""

    done: tuple[ObjectId, ...]
