"""What clients did and saw, as they saw it: the only input of the checker besides the final log.

Every value is sent once by intention, so a value names its send. Times are virtual seconds; an operation
whose `ended` is None was never answered.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from typing_extensions import override

Partition = tuple[str, int]


class Outcome(StrEnum):
    """What a client may conclude: it happened, it did not, or it cannot know."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Send:
    """One batch of one producer session, over all its retries."""

    producer: str
    partition: Partition
    values: tuple[str, ...]
    started: float
    ended: float | None = None
    outcome: Outcome = Outcome.UNKNOWN
    base_offset: int | None = None  # None when acknowledged as a duplicate too old to know its offset

    @override
    def __str__(self) -> str:
        span = f"{self.values[0]}..{self.values[-1]}" if len(self.values) > 1 else self.values[0]
        return f"{_times(self.started, self.ended)} send {span} -> {self.outcome} at {self.base_offset}"


@dataclass(slots=True)
class Poll:
    """One answered fetch of one partition. `continues` when it went on where the last poll had ended."""

    consumer: str
    partition: Partition
    position: int
    records: tuple[tuple[int, str], ...]
    started: float
    ended: float
    continues: bool

    @override
    def __str__(self) -> str:
        return f"{_times(self.started, self.ended)} {self.consumer} poll from {self.position}: {self._span()}"

    def _span(self) -> str:
        if not self.records:
            return "nothing"
        (first, first_value), (last, last_value) = self.records[0], self.records[-1]
        return f"{first}={first_value} .. {last}={last_value} ({len(self.records)})"


class BoundKind(StrEnum):
    LATEST = "latest"
    EARLIEST = "earliest"


@dataclass(slots=True)
class Bound:
    """An answered question for one end of a partition."""

    kind: BoundKind
    partition: Partition
    offset: int
    started: float
    ended: float

    @override
    def __str__(self) -> str:
        return f"{_times(self.started, self.ended)} {self.kind} = {self.offset}"


@dataclass(slots=True)
class Trim:
    """A request to delete the records before an offset."""

    partition: Partition
    before: int
    started: float
    ended: float | None = None
    outcome: Outcome = Outcome.UNKNOWN

    @override
    def __str__(self) -> str:
        return f"{_times(self.started, self.ended)} delete before {self.before} -> {self.outcome}"


@dataclass(slots=True)
class FinalLog:
    """A whole partition as read at the end, after faults have stopped and the broker was restarted."""

    partition: Partition
    log_start: int
    log_end: int
    records: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class History:
    """Everything recorded, in order of start. `gapless` names the sessions of idempotent producers."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    trims: list[Trim] = field(default_factory=list)
    logs: list[FinalLog] = field(default_factory=list)
    gapless: dict[str, bool] = field(default_factory=dict)

    def partitions(self) -> list[Partition]:
        """Every partition that anything was done to, in order."""
        operations: list[Send | Poll | Bound | Trim | FinalLog] = []
        operations += [*self.sends, *self.polls, *self.bounds, *self.trims, *self.logs]
        named = {operation.partition for operation in operations}
        return sorted(named)

    def about(self, partition: Partition, values: set[str], offsets: set[int]) -> list[str]:
        """The operations that touched any of these values or offsets, for a report."""
        sends = [
            send
            for send in self.sends
            if send.partition == partition and (values & set(send.values) or _acked_any(send, offsets))
        ]
        polls = [
            poll
            for poll in self.polls
            if poll.partition == partition and any(o in offsets or v in values for o, v in poll.records)
        ]
        trims = [trim for trim in self.trims if trim.partition == partition]
        touching: list[Send | Poll | Trim] = [*sends, *polls, *trims]
        lines = [(operation.started, str(operation)) for operation in touching]
        return [line for _, line in sorted(lines)]


def _acked_any(send: Send, offsets: set[int]) -> bool:
    base = send.base_offset
    return base is not None and any(base <= offset < base + len(send.values) for offset in offsets)


def _times(started: float, ended: float | None) -> str:
    return f"[{started:.3f} .. {ended:.3f}]" if ended is not None else f"[{started:.3f} ..]"
