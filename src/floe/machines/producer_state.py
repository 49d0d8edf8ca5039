"""Idempotent producers: which batch of a producer is next, a repeat, or wrong.

The rules are Kafka's. Per producer and range the last five batches are remembered. A batch with the same
epoch and the same sequences as one of them is a duplicate of it. Otherwise it must follow the last one
without a gap; sequences wrap from 2^31 - 1 to 0. An older epoch is fenced. A newer epoch starts at
sequence 0. A producer that is not known (its state may have expired) may start anywhere.
"""

from typing import Final, NamedTuple

from floe.model.error_codes import ErrorCode
from floe.model.ids import NO_OFFSET

BATCHES_KEPT = 5
SEQUENCE_MAX = (1 << 31) - 1


class PastBatch(NamedTuple):
    """A committed batch of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int


class ProducerState(NamedTuple):
    """What a range remembers of one producer; `batches` oldest first, at most five, never empty."""

    epoch: int
    last_used_ms: int
    batches: tuple[PastBatch, ...]


Verdict = tuple[ErrorCode, int]  # error, offset of the batch this one repeats or NO_OFFSET

ACCEPTED: Final[Verdict] = (ErrorCode.NONE, NO_OFFSET)
OUT_OF_ORDER: Final[Verdict] = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NO_OFFSET)
OLD_EPOCH: Final[Verdict] = (ErrorCode.INVALID_PRODUCER_EPOCH, NO_OFFSET)


def last_sequence(first: int, record_count: int) -> int:
    """The sequence of the last of `record_count` records; sequences wrap past 2^31 - 1."""
    return (first + record_count - 1) & SEQUENCE_MAX


def judge(state: ProducerState | None, epoch: int, first_sequence: int, record_count: int) -> Verdict:
    """Whether a batch may be appended; the verdict's offset is set for a duplicate only."""
    if state is None:
        return ACCEPTED
    if epoch != state.epoch:
        if epoch < state.epoch:
            return OLD_EPOCH
        return ACCEPTED if first_sequence == 0 else OUT_OF_ORDER
    batches = state.batches
    if first_sequence == (batches[-1].last_sequence + 1) & SEQUENCE_MAX:
        return ACCEPTED
    last = last_sequence(first_sequence, record_count)
    for batch in batches:
        if batch.first_sequence == first_sequence and batch.last_sequence == last:
            return ErrorCode.NONE, batch.base_offset
    return OUT_OF_ORDER


def advance(
    state: ProducerState | None,
    epoch: int,
    first_sequence: int,
    record_count: int,
    *,
    base_offset: int,
    now_ms: int,
) -> ProducerState:
    """The state after an accepted batch."""
    batch = PastBatch(first_sequence, (first_sequence + record_count - 1) & SEQUENCE_MAX, base_offset)
    if state is None or state.epoch != epoch:
        return ProducerState(epoch, now_ms, (batch,))
    return ProducerState(epoch, now_ms, (*state.batches[1 - BATCHES_KEPT :], batch))
