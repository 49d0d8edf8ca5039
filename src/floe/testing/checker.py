"""A Kafka-style checker: is this history one that a correct log could have produced?

Linear in the history up to sorting. Judged per partition:

- lost write: acknowledged, or seen by a reader, and not in the final log although nothing trimmed it;
- duplicate: one value at two offsets; inconsistent offset: two values at one offset, at any two moments;
- acknowledged offset mismatch: the log holds the value elsewhere than the producer was told;
- phantom: a value nobody sent; failed read: a value whose send was refused for good;
- poll skip and non-monotonic poll, within one poll and from one poll to the next;
- non-monotonic send: values of one producer session out of order; sequence gap: an idempotent session's later
  send is in the log and an earlier one is not;
- LATEST or EARLIEST going back, LATEST below something acknowledged or read before it was asked;
- hole in the final log; trim nobody asked for; deleted records still served.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from typing_extensions import override

from floe.testing.sim_history import Bound, BoundKind, FinalLog, History, Outcome, Partition, Poll, Send, Trim

EVIDENCE_LINES_MAX = 12
ANOMALIES_PER_CHECK_MAX = 10  # of one partition; one cause tends to show a thousand times


class AnomalyKind(StrEnum):
    LOST_WRITE = "lost write"
    DUPLICATE = "duplicate"
    INCONSISTENT_OFFSET = "inconsistent offset"
    OFFSET_MISMATCH = "acknowledged offset mismatch"
    PHANTOM = "phantom"
    FAILED_READ = "failed read"
    POLL_SKIP = "poll skip"
    NONMONOTONIC_POLL = "non-monotonic poll"
    NONMONOTONIC_SEND = "non-monotonic send"
    SEQUENCE_GAP = "sequence gap"
    BOUND_WENT_BACK = "bound went back"
    STALE_LATEST = "stale latest"
    HOLE = "hole"
    UNASKED_TRIM = "unasked trim"
    DELETED_READ = "deleted read"
    MISSING_OBJECT = "referenced object missing"
    KEPT_OBJECT = "unreferenced object kept"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that must not happen, with the operations that show it."""

    kind: AnomalyKind
    where: str
    text: str
    evidence: tuple[str, ...] = ()

    @override
    def __str__(self) -> str:
        lines = [f"{self.kind.upper()} in {self.where}: {self.text}"]
        lines += [f"    {line}" for line in self.evidence[:EVIDENCE_LINES_MAX]]
        if len(self.evidence) > EVIDENCE_LINES_MAX:
            lines.append(f"    and {len(self.evidence) - EVIDENCE_LINES_MAX} more")
        return "\n".join(lines)


def check_history(history: History, *, may_trim: bool = False) -> list[Anomaly]:
    """Every anomaly of every partition; `may_trim` when retention may raise log starts by itself."""
    found: list[Anomaly] = []
    for partition in history.partitions():
        found += _PartitionCheck(history, partition, may_trim).run()
    return found


def check_objects(referenced: Mapping[str, str], stored: frozenset[str]) -> list[Anomaly]:
    """Invariant 4 of the design: `referenced` maps keys to who refers to them.

    To be called when nothing is under way and every grace period has passed.
    """
    missing = [
        Anomaly(AnomalyKind.MISSING_OBJECT, "object store", f"{key}, referenced by {where}")
        for key, where in sorted(referenced.items())
        if key not in stored
    ]
    kept = [
        Anomaly(AnomalyKind.KEPT_OBJECT, "object store", f"{key} is referenced by nothing")
        for key in sorted(stored - referenced.keys())
    ]
    return missing + kept


class _PartitionCheck:
    """All checks of one partition over shared indexes."""

    def __init__(self, history: History, partition: Partition, may_trim: bool) -> None:
        self._history = history
        self._partition = partition
        self._may_trim = may_trim
        self.sends: list[Send] = [s for s in history.sends if s.partition == partition]
        self.polls: list[Poll] = [p for p in history.polls if p.partition == partition]
        self.bounds: list[Bound] = [b for b in history.bounds if b.partition == partition]
        self.trims: list[Trim] = [t for t in history.trims if t.partition == partition]
        self.logs: list[FinalLog] = [log for log in history.logs if log.partition == partition]
        self.log_start = max((log.log_start for log in self.logs), default=0)
        self.send_of: dict[str, Send] = {value: send for send in self.sends for value in send.values}
        self.read_at: dict[str, int] = {}  # value -> where a reader saw it first
        self.value_at: dict[int, str] = {}

    def run(self) -> list[Anomaly]:
        places = list(self._places())  # all of it: this fills the indexes that the others use
        found = places[:ANOMALIES_PER_CHECK_MAX]
        for check in (
            self._acknowledged_places,
            self._lost,
            self._poll_order,
            self._send_order,
            self._bound_order,
            self._final_logs,
            self._deleted_reads,
        ):
            found += islice(check(), ANOMALIES_PER_CHECK_MAX)
        return found

    def _anomaly(
        self, kind: AnomalyKind, text: str, values: set[str] | None = None, offsets: set[int] | None = None
    ) -> Anomaly:
        topic, index = self._partition
        evidence = self._history.about(self._partition, values or set(), offsets or set())
        return Anomaly(kind, f"{topic}-{index}", text, tuple(evidence))

    def _reads(self) -> Iterator[tuple[int, str]]:
        for poll in self.polls:
            yield from poll.records
        for log in self.logs:
            yield from log.records

    def _places(self) -> Iterator[Anomaly]:
        for offset, value in self._reads():
            known = self.value_at.setdefault(offset, value)
            if known != value:
                text = f"offset {offset} held {known} and {value}"
                yield self._anomaly(AnomalyKind.INCONSISTENT_OFFSET, text, {known, value}, {offset})
            place = self.read_at.get(value)
            if place is None:
                self.read_at[value] = offset
                yield from self._origin(offset, value)
            elif place != offset:
                text = f"{value} is at offsets {place} and {offset}"
                yield self._anomaly(AnomalyKind.DUPLICATE, text, {value})

    def _origin(self, offset: int, value: str) -> Iterator[Anomaly]:
        send = self.send_of.get(value)
        if send is None:
            text = f"{value} at offset {offset} was never sent here"
            yield self._anomaly(AnomalyKind.PHANTOM, text, {value}, {offset})
        elif send.outcome is Outcome.FAILED:
            text = f"{value} at offset {offset} was refused for good"
            yield self._anomaly(AnomalyKind.FAILED_READ, text, {value})

    def _acknowledged_places(self) -> Iterator[Anomaly]:
        told: dict[int, str] = {}
        for offset, value in self._acknowledged():
            other = told.setdefault(offset, value)
            if other != value:
                text = f"offset {offset} was given to {other} and to {value}"
                yield self._anomaly(AnomalyKind.INCONSISTENT_OFFSET, text, {other, value}, {offset})
            place = self.read_at.get(value)
            held = self.value_at.get(offset)
            if place is not None and place != offset:
                text = f"{value} was acknowledged at {offset} and lies at {place}"
                yield self._anomaly(AnomalyKind.OFFSET_MISMATCH, text, {value})
            elif place is None and held is not None and held != value:
                text = f"{value} was acknowledged at {offset}, which holds {held}"
                yield self._anomaly(AnomalyKind.OFFSET_MISMATCH, text, {value, held})

    def _acknowledged(self) -> Iterator[tuple[int, str]]:
        for send in self.sends:
            if send.outcome is Outcome.OK and send.base_offset is not None:
                yield from enumerate(send.values, send.base_offset)

    def _lost(self) -> Iterator[Anomaly]:
        for log in self.logs:
            there = {value for _, value in log.records}
            for send in self.sends:
                gone = [v for v in send.values if v not in there and self._should_be_there(send, v, log)]
                if gone:
                    what = f"{gone[0]} to {gone[-1]} ({len(gone)})" if len(gone) > 1 else gone[0]
                    text = f"{what} not in the final log [{log.log_start}, {log.log_end})"
                    yield self._anomaly(AnomalyKind.LOST_WRITE, text, set(gone))

    def _should_be_there(self, send: Send, value: str, log: FinalLog) -> bool:
        """Acknowledged, or proven written because somebody read it, and not below the log start."""
        seen_at = self.read_at.get(value)
        if seen_at is not None:
            return seen_at >= log.log_start
        if send.outcome is not Outcome.OK:
            return False
        if send.base_offset is None:  # too old to know: it may have been trimmed
            return log.log_start == 0
        return send.base_offset + send.values.index(value) >= log.log_start

    def _poll_order(self) -> Iterator[Anomaly]:
        for poll in self.polls:
            expected = poll.position
            is_first = True
            for offset, _ in poll.records:
                if offset < expected:
                    text = f"{poll.consumer} got {offset} after {expected - 1}"
                    yield self._anomaly(AnomalyKind.NONMONOTONIC_POLL, text, None, {offset})
                elif offset > expected and (not is_first or poll.continues):
                    text = f"{poll.consumer} went from {expected - 1} to {offset}"
                    yield self._anomaly(AnomalyKind.POLL_SKIP, text, None, {expected, offset})
                expected, is_first = offset + 1, False

    def _send_order(self) -> Iterator[Anomaly]:
        """A session's values lie in the log in the order sent; an idempotent session's without a gap."""
        for producer, sends in self._by_session().items():
            is_gapless = self._history.gapless.get(producer, False)
            last, last_place = "", -1
            missing: str | None = None
            for value in (value for send in sends for value in send.values):
                place = self.read_at.get(value)
                if place is None:
                    missing = missing or value
                    continue
                if place < last_place:
                    text = f"{producer} sent {last} (at {last_place}) before {value} (at {place})"
                    yield self._anomaly(AnomalyKind.NONMONOTONIC_SEND, text, {value, last})
                if missing and is_gapless and self._is_gap(missing, last_place):
                    text = f"{missing} is missing and {value}, sent after it, is at {place}"
                    yield self._anomaly(AnomalyKind.SEQUENCE_GAP, text, {value, missing})
                last, last_place, missing = value, place, None

    def _is_gap(self, missing: str, last_place: int) -> bool:
        """Whether the missing value was not merely trimmed, nor is lost, which is judged by itself."""
        was_acknowledged = self.send_of[missing].outcome is Outcome.OK
        return bool(self.logs) and not was_acknowledged and last_place + 1 >= self.log_start

    def _by_session(self) -> dict[str, list[Send]]:
        sessions: dict[str, list[Send]] = {}
        for send in self.sends:
            sessions.setdefault(send.producer, []).append(send)
        return sessions

    def _bound_order(self) -> Iterator[Anomaly]:
        for kind in BoundKind:
            facts = _Facts(self._latest_facts() if kind is BoundKind.LATEST else self._earliest_facts())
            for bound in (b for b in self.bounds if b.kind is kind):
                fact = facts.highest_before(bound.started)
                if fact is not None and bound.offset < fact.offset:
                    went_back = not isinstance(fact.why, Send | Poll)
                    name = AnomalyKind.BOUND_WENT_BACK if went_back else AnomalyKind.STALE_LATEST
                    text = f"{bound} came after {fact.why}"
                    yield self._anomaly(name, text, None, {bound.offset})

    def _latest_facts(self) -> Iterator["_Fact"]:
        for bound in self.bounds:
            if bound.kind is BoundKind.LATEST:
                yield _Fact(bound.ended, bound.offset, bound)
        for send in self.sends:
            if send.outcome is Outcome.OK and send.base_offset is not None and send.ended is not None:
                yield _Fact(send.ended, send.base_offset + len(send.values), send)
        for poll in self.polls:
            if poll.records:
                yield _Fact(poll.ended, poll.records[-1][0] + 1, poll)

    def _earliest_facts(self) -> Iterator["_Fact"]:
        for bound in self.bounds:
            if bound.kind is BoundKind.EARLIEST:
                yield _Fact(bound.ended, bound.offset, bound)
        for trim in self.trims:
            if trim.outcome is Outcome.OK and trim.ended is not None:
                yield _Fact(trim.ended, trim.before, trim)

    def _final_logs(self) -> Iterator[Anomaly]:
        asked = max((t.before for t in self.trims if t.outcome is not Outcome.FAILED), default=0)
        for log in self.logs:
            expected = log.log_start
            for offset, _ in log.records:
                if offset != expected:
                    text = f"the final log goes from {expected - 1} to {offset}"
                    yield self._anomaly(AnomalyKind.HOLE, text, None, {expected, offset})
                expected = offset + 1
            if expected != log.log_end:
                text = f"the final log ends at {expected} and LATEST is {log.log_end}"
                yield self._anomaly(AnomalyKind.HOLE, text, None, {expected})
            if log.log_start > asked and not self._may_trim:
                text = f"the log starts at {log.log_start}; nobody asked to delete past {asked}"
                yield self._anomaly(AnomalyKind.UNASKED_TRIM, text)

    def _deleted_reads(self) -> Iterator[Anomaly]:
        facts = _Facts(fact for fact in self._earliest_facts() if isinstance(fact.why, Trim))
        for poll in self.polls:
            fact = facts.highest_before(poll.started)
            if fact is not None and poll.records and poll.records[0][0] < fact.offset:
                text = f"{poll.consumer} read {poll.records[0][0]} after {fact.why}"
                yield self._anomaly(AnomalyKind.DELETED_READ, text, None, {poll.records[0][0]})


@dataclass(frozen=True, slots=True)
class _Fact:
    """From `moment` on, an end of the partition is at least `offset`."""

    moment: float
    offset: int
    why: Send | Poll | Bound | Trim


class _Facts:
    """Facts by time, for the question: what was known when this was asked?"""

    def __init__(self, facts: Iterable[_Fact]) -> None:
        self._moments: list[float] = []
        self._highest: list[_Fact] = []
        for fact in sorted(facts, key=lambda fact: fact.moment):
            if not self._highest or fact.offset > self._highest[-1].offset:
                self._moments.append(fact.moment)
                self._highest.append(fact)

    def highest_before(self, moment: float) -> _Fact | None:
        index = bisect_left(self._moments, moment)
        return self._highest[index - 1] if index else None
