"""Values of the model as the native protocol carries them.

Each struct is an array on the wire. It may grow at its end only, and only by fields with defaults: an older
peer ignores what it does not know, a newer one fills in what was not sent. `of` takes a value of the
model, `value` gives one back; nothing outside of this room handles the structs of this file.
"""

from typing import Annotated, Self

import msgspec
from msgspec import Meta

from floe.model.coordinates import RangeView, Row, RowFlags
from floe.model.error_codes import ErrorCode
from floe.model.ids import ObjectId, Offset, RangeId, TopicId, VnodeId
from floe.model.topic import Placement, StorageClass, Topic
from floe.model.work import WorkItem, WorkKind

_I64_MAX = (1 << 63) - 1
I64 = Annotated[int, Meta(ge=-_I64_MAX - 1, le=_I64_MAX)]
Count = Annotated[int, Meta(ge=0, le=_I64_MAX)]
Position = Annotated[int, Meta(ge=-1, le=_I64_MAX)]  # an offset or timestamp; -1 is none
Number = Annotated[int, Meta(ge=0, le=_I64_MAX)]  # an id


class WireValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of everything that travels: an array of its fields."""


class RowValue(WireValue, frozen=True):
    """A coordinates row."""

    range: Number
    first: Position
    last: Position
    object: Number | None
    position: Count
    size: Count
    max_timestamp: I64
    committed_at: I64
    level: Annotated[int, Meta(ge=0, le=255)] = 0
    flags: Annotated[int, Meta(ge=0, le=255)] = 0

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(
            row.range, row.first, row.last, row.object, row.position, row.size,
            row.max_timestamp, row.committed_at, row.level, int(row.flags),
        )  # fmt: skip

    def value(self) -> Row:
        return Row(
            RangeId(self.range),
            Offset(self.first),
            Offset(self.last),
            None if self.object is None else ObjectId(self.object),
            self.position,
            self.size,
            self.max_timestamp,
            self.committed_at,
            self.level,
            RowFlags(self.flags),
        )


class ViewValue(WireValue, frozen=True):
    """A range as its coordinator sees it."""

    error: int
    log_start: Position = -1
    log_end: Position = -1
    last_stable: Position = -1
    rows: tuple[RowValue, ...] = ()

    @classmethod
    def of(cls, view: RangeView) -> Self:
        rows = tuple(RowValue.of(row) for row in view.rows)
        return cls(view.error, view.log_start, view.log_end, view.last_stable, rows)

    def value(self) -> RangeView:
        return RangeView(
            error_code(self.error),
            Offset(self.log_start),
            Offset(self.log_end),
            Offset(self.last_stable),
            tuple(row.value() for row in self.rows),
        )


class TopicValue(WireValue, frozen=True):
    """A topic and its ranges; `ranges[i]` is Kafka's partition i."""

    name: str
    id: Annotated[bytes, Meta(min_length=16, max_length=16)]
    ranges: tuple[Number, ...]
    storage_class: StorageClass = StorageClass.OBJECT
    placement: Placement = Placement.KAFKA
    is_aligned: bool = True
    config: dict[str, str] = {}
    version: Count = 0

    @classmethod
    def of(cls, topic: Topic) -> Self:
        return cls(
            topic.name, topic.id, topic.ranges, topic.storage_class, topic.placement,
            topic.is_aligned, topic.config, topic.version,
        )  # fmt: skip

    def value(self) -> Topic:
        return Topic(
            name=self.name,
            id=TopicId(self.id),
            ranges=tuple(RangeId(range_id) for range_id in self.ranges),
            storage_class=self.storage_class,
            placement=self.placement,
            is_aligned=self.is_aligned,
            config=dict(self.config),
            version=self.version,
        )


class WorkItemValue(WireValue, frozen=True):
    """A leased unit of work."""

    id: Number
    home: Number
    kind: WorkKind
    token: Number
    deadline_ms: I64
    objects: tuple[Number, ...]

    @classmethod
    def of(cls, item: WorkItem) -> Self:
        return cls(item.id, item.home, item.kind, item.token, item.deadline_ms, item.objects)

    def value(self) -> WorkItem:
        return WorkItem(
            self.id,
            VnodeId(self.home),
            self.kind,
            self.token,
            self.deadline_ms,
            tuple(ObjectId(object_id) for object_id in self.objects),
        )


def error_code(number: int) -> ErrorCode:
    """A code from a peer, which may be newer than this side."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
