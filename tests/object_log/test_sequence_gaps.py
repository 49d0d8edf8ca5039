"""Gaps in a producer's sequences: what is held back until the dropped batch comes again."""

import pytest

from floe.machines.producer_state import SEQUENCE_MAX
from floe.model.coordinates import BatchEntry
from floe.model.ids import RangeId
from floe.object_log.sequence_gaps import SequenceGaps
from floe.wire.batch import check_batches
from floe.wire.records import Record, encode

RANGE = RangeId(7)


def batch(sequence, producer=5, epoch=0):
    data = encode([Record(value=b"x")], producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    return check_batches(memoryview(data), batch_size_max=1000)[0]


def entry(sequence, producer=5, epoch=0):
    return BatchEntry(RANGE, 0, 100, 1, 0, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def test_later_batches_wait_for_the_dropped_one():
    gaps = SequenceGaps()
    gaps.dropped(RANGE, batch(10))
    assert not gaps.admits(entry(11))
    assert gaps.admits(entry(10))
    assert gaps.admits(entry(11))
    assert not gaps


@pytest.mark.parametrize("start", [10, SEQUENCE_MAX - 1])
def test_the_earliest_dropped_batch_counts_whichever_was_dropped_first(start):
    first, second, third = ((start + n) & SEQUENCE_MAX for n in range(3))
    gaps = SequenceGaps()
    gaps.dropped(RANGE, batch(second))
    gaps.dropped(RANGE, batch(first))
    assert not gaps.admits(entry(second))
    assert not gaps.admits(entry(third))
    assert gaps.admits(entry(first))
    assert gaps.admits(entry(second))


@pytest.mark.parametrize("start", [10, SEQUENCE_MAX])
def test_a_batch_from_before_the_gap_may_come_late(start):
    first, second, third = ((start + n) & SEQUENCE_MAX for n in range(3))
    gaps = SequenceGaps()
    gaps.dropped(RANGE, batch(second))
    assert gaps.admits(entry(first))
    assert not gaps.admits(entry(third))


def test_other_epochs_and_producers_are_not_affected():
    gaps = SequenceGaps()
    gaps.dropped(RANGE, batch(10))
    gaps.dropped(RANGE, batch(0, producer=-1, epoch=-1))
    assert gaps.admits(entry(11, epoch=1))
    assert gaps.admits(entry(11, producer=6))
    assert gaps.admits(entry(-1, producer=-1, epoch=-1))
