"""Which idempotent producers lost a batch here, so that nothing later of theirs is committed before it.

A coordinator that knows nothing of a producer accepts whatever sequence comes first, as Kafka does. If the
first batch of a producer is dropped because its upload failed, a later one that was already on its way would
be accepted in its place, and the repeat of the first refused for good. So the broker that dropped a batch
refuses later ones of the same producer, epoch and range until the dropped one comes again. A producer that
gives up instead takes a new epoch, which is not affected.
"""

from collections import OrderedDict

from floe.machines.producer_state import SEQUENCE_MAX
from floe.model.coordinates import BatchEntry, EntryResult, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.ids import RangeId
from floe.wire.batch import Batch

GAPS_MAX = 10_000
REFUSED = EntryResult(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

_Producer = tuple[RangeId, int, int]  # range, producer id, epoch


class SequenceGaps:
    """The first dropped sequence per range, producer and epoch; the oldest are forgotten beyond a bound."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: OrderedDict[_Producer, int] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._first)

    def dropped(self, range_id: RangeId, batch: Batch) -> None:
        """A batch will not be committed unless it is sent again."""
        if batch.producer_id < 0:
            return
        producer = (range_id, batch.producer_id, batch.producer_epoch)
        first = self._first.get(producer)
        if first is None or _is_before(batch.base_sequence, first):
            self._first[producer] = (
                batch.base_sequence
            )  # uploads overlap, so a later batch may be dropped first
        if len(self._first) > GAPS_MAX:
            self._first.popitem(last=False)

    def admits(self, entry: BatchEntry) -> bool:
        """Whether an entry may be committed now; the one that was dropped closes its gap.

        One from before the gap may: its upload took longer than that of the batch which was dropped.
        """
        producer = (entry.range, entry.producer_id, entry.producer_epoch)
        first = self._first.get(producer)
        if first is None:
            return True
        if entry.base_sequence == first:
            del self._first[producer]
            return True
        return _is_before(entry.base_sequence, first)


def _is_before(sequence: int, other: int) -> bool:
    """Sequences wrap, and those under way at one time are close together."""
    return 0 < (other - sequence) & SEQUENCE_MAX <= SEQUENCE_MAX >> 1


def split(commit: ObjectCommit, gaps: SequenceGaps) -> tuple[ObjectCommit, list[bool]]:
    """What of a commit may be sent, and for each of its entries whether it is in that."""
    admitted = [gaps.admits(entry) for entry in commit.entries]
    kept = tuple(entry for entry, is_in in zip(commit.entries, admitted, strict=True) if is_in)
    return ObjectCommit(commit.object, kept), admitted


def join(results: list[EntryResult], admitted: list[bool]) -> list[EntryResult]:
    """The results of all entries, from those of the entries that were sent."""
    sent = iter(results)
    return [next(sent) if is_in else REFUSED for is_in in admitted]
