"""Where a span of a range lies: the coordinates row, and what a commit asks for and gets.

These are made per batch on the produce path: msgspec makes one in a tenth of a microsecond, a frozen
dataclass in two, and none of them can be part of a reference cycle.
"""

from enum import IntFlag

import msgspec

from floe.model.error_codes import ErrorCode
from floe.model.ids import NO_OFFSET, ObjectId, Offset, RangeId

ROW_BYTES_MAX = 1 << 20  # a level 0 row spans at most 1 MiB, or one batch if that is larger


class RowFlags(IntFlag):
    """What a row is besides a span of data batches."""

    NONE = 0
    MARKER_COMMIT = 1  # a transaction marker: a row without an object
    MARKER_ABORT = 2
    TRANSACTIONAL = 4  # holds at least one transactional batch
    OFFSETS_STAMPED = 8  # batches carry their real offsets (compacted objects)


class Row(msgspec.Struct, frozen=True, gc=False):
    """One coordinates row. `last` is inclusive; rows of a range are contiguous and disjoint.

    `object` is None for marker rows only. Level 0 rows are written by commits; work raises levels.
    `committed_at` is the coordinator's wall clock, which bounds bogus future timestamps.
    """

    range: RangeId
    first: Offset
    last: Offset
    object: ObjectId | None
    position: int
    size: int
    max_timestamp: int
    committed_at: int
    level: int = 0
    flags: RowFlags = RowFlags.NONE


class BatchEntry(msgspec.Struct, frozen=True, gc=False):
    """One batch of an uploaded object, as told to the coordinator of its range."""

    range: RangeId
    position: int
    size: int
    record_count: int
    max_timestamp: int
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    flags: RowFlags = RowFlags.NONE


class EntryResult(msgspec.Struct, frozen=True, gc=False):
    """The outcome of one entry.

    `error` NONE with `is_duplicate` set means the batch had been committed before, at `base_offset`;
    these bytes are then not referenced by any row.
    """

    error: ErrorCode
    base_offset: Offset = NO_OFFSET
    log_start: Offset = NO_OFFSET
    is_duplicate: bool = False


class ObjectCommit(msgspec.Struct, frozen=True, gc=False):
    """The part of one object that belongs to one vnode; entries in file order."""

    object: ObjectId
    entries: tuple[BatchEntry, ...]


class RangeView(msgspec.Struct, frozen=True, gc=False):
    """What the coordinator says of a range at one moment; all of it durable.

    `last_stable` equals `log_end` while no transaction is open. `rows` continue contiguously from
    the row that holds the asked offset; empty when the offset is at the end.
    """

    error: ErrorCode
    log_start: Offset = NO_OFFSET
    log_end: Offset = NO_OFFSET
    last_stable: Offset = NO_OFFSET
    rows: tuple[Row, ...] = ()
