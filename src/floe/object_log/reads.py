"""What a front door asks the engine to read, and what it gets."""

import msgspec

from floe.model.error_codes import ErrorCode
from floe.model.ids import NO_OFFSET, Offset, RangeId
from floe.wire.batch import Buffer


class ReadRequest(msgspec.Struct, frozen=True, gc=False):
    """Batches of one range, from the one that holds `offset` on, up to `max_bytes` of them."""

    range: RangeId
    offset: Offset
    max_bytes: int


class ReadResult(msgspec.Struct, frozen=True, gc=False):
    """Whole batches with their real offsets, as pieces to send one after another without copying.

    An empty result with error NONE means that the offset is at the end or that the budget went to requests
    before this one. `next_offset` is the offset after the batches, the one asked for when there are none.
    """

    error: ErrorCode
    log_start: Offset
    log_end: Offset
    last_stable: Offset
    pieces: list[Buffer]
    size: int
    next_offset: Offset


def failure(error: ErrorCode) -> ReadResult:
    """An answer that says nothing but why."""
    return ReadResult(error, NO_OFFSET, NO_OFFSET, NO_OFFSET, [], 0, NO_OFFSET)
