"""What the metadata plane should do, done the simple way: dicts and loops, nothing of Floe's.

A range is a dict from offset to the batch that holds it; the object store is a set of names. The model is
told what was asked and what was answered, and raises `AssertionError` when an answer cannot be right. An
answer that never came leaves a part *open*: it was carried out, or not; the model allows both until it is
told.
"""

from dataclasses import dataclass, field

BATCHES_REMEMBERED = 5
SEQUENCES = 1 << 31

OK, DUPLICATE, UNKNOWN, GAP, FENCED, REFUSED = "ok", "duplicate", "unknown", "gap", "fenced", "refused"


@dataclass(frozen=True)
class Batch:
    """A batch as a producer sent it; `producer` is (id, epoch, first sequence) or None."""

    range: int
    position: int
    size: int
    count: int
    timestamp: int
    producer: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Answer:
    kind: str
    offset: int = -1


@dataclass(frozen=True)
class Stored:
    """A batch in a log; `committed` are the times at which its commit may have happened."""

    batch: Batch
    base: int
    object: str
    committed: tuple[int, ...]

    @property
    def end(self) -> int:
        return self.base + self.batch.count

    def age_from(self) -> tuple[int, int]:
        """The earliest and the latest time its age may count from."""
        return (
            min(self.batch.timestamp, min(self.committed)),
            min(self.batch.timestamp, max(self.committed)),
        )


@dataclass
class Producer:
    epoch: int
    last_used: int
    batches: list[tuple[int, int, int]]  # first sequence, count, offset


@dataclass
class NaiveRange:
    retention_ms: int
    retention_bytes: int
    start: int = 0
    end: int = 0
    by_offset: dict[int, Stored] = field(default_factory=dict)
    producers: dict[int, Producer] = field(default_factory=dict)

    def live(self) -> list[Stored]:
        """The batches with at least one record at or after the log start, in order."""
        seen = {stored.base: stored for offset, stored in self.by_offset.items() if offset >= self.start}
        return [seen[base] for base in sorted(seen)]

    def raise_start(self, start: int) -> None:
        assert self.start <= start <= self.end
        self.start = start
        self.by_offset = {offset: s for offset, s in self.by_offset.items() if s.end > start}

    def judge(self, batch: Batch) -> Answer:
        """What a batch should be answered."""
        if batch.producer is None:
            return Answer(OK, self.end)
        producer_id, epoch, sequence = batch.producer
        known = self.producers.get(producer_id)
        if known is None:
            return Answer(OK, self.end)
        if epoch < known.epoch:
            return Answer(FENCED)
        if epoch > known.epoch:
            return Answer(OK, self.end) if sequence == 0 else Answer(GAP)
        for first, count, offset in known.batches:
            if (first, count) == (sequence, batch.count):
                return Answer(DUPLICATE, offset)
        first, count, _ = known.batches[-1]
        return Answer(OK, self.end) if sequence == (first + count) % SEQUENCES else Answer(GAP)

    def append(self, batch: Batch, object_name: str, committed: tuple[int, ...]) -> None:
        stored = Stored(batch, self.end, object_name, committed)
        for offset in range(stored.base, stored.end):
            self.by_offset[offset] = stored
        self.end = stored.end
        if batch.producer is not None:
            producer_id, epoch, sequence = batch.producer
            known = self.producers.get(producer_id)
            kept = known.batches if known is not None and known.epoch == epoch else []
            batches = [*kept, (sequence, batch.count, stored.base)][-BATCHES_REMEMBERED:]
            self.producers[producer_id] = Producer(epoch, max(committed), batches)


@dataclass
class Part:
    """What one object brings to one vnode; `tried` are the times of commits whose outcome is not known."""

    object: str
    bucket: int
    batches: list[Batch]
    tried: list[int] = field(default_factory=list)
    answers: list[Answer] | None = None


class NaiveLog:
    """All ranges and objects."""

    def __init__(self) -> None:
        self.ranges: dict[int, NaiveRange] = {}
        self.deleted_ranges: set[int] = set()
        self.objects: set[str] = set()  # in the object store now

    def create(self, range_id: int, retention_ms: int, retention_bytes: int) -> None:
        self.ranges[range_id] = NaiveRange(retention_ms, retention_bytes)

    def delete(self, range_id: int) -> None:
        del self.ranges[range_id]
        self.deleted_ranges.add(range_id)

    def expect(self, parts: list[Part], closed_bucket: int) -> list[list[Answer]]:
        """What one commit of these parts should be answered now, if it was not carried out before."""
        drafts: dict[int, NaiveRange] = {}
        return [
            [
                Answer(REFUSED) if part.bucket <= closed_bucket else self._expect(batch, part, drafts)
                for batch in part.batches
            ]
            for part in parts
        ]

    def _expect(self, batch: Batch, part: Part, drafts: dict[int, NaiveRange]) -> Answer:
        known = self.ranges.get(batch.range)
        if known is None:
            return Answer(UNKNOWN)
        draft = drafts.get(batch.range)
        if draft is None:
            producers = {
                key: Producer(p.epoch, p.last_used, list(p.batches)) for key, p in known.producers.items()
            }
            draft = drafts[batch.range] = NaiveRange(-1, -1, end=known.end, producers=producers)
        answer = draft.judge(batch)
        if answer.kind == OK:
            draft.append(batch, part.object, (0,))
        return answer

    def settle(self, part: Part, answers: list[Answer], now: int) -> None:
        """Take what a part was answered into the logs."""
        part.answers = answers
        for batch, answer in zip(part.batches, answers, strict=True):
            known = self.ranges.get(batch.range)
            if known is not None and answer.kind == OK:
                assert answer.offset == known.end
                known.append(batch, part.object, (*part.tried, now))

    def check_trim(self, range_id: int, start: int, now: int, *, is_open: bool) -> None:
        """Take in a log start that retention has raised; nothing may go that was not due.

        While a part is open the range may hold more than is known here.
        """
        known = self.ranges[range_id]
        dropped = [s for s in known.live() if s.base < start]
        for stored in dropped:
            assert stored.end <= start, "retention ended inside a batch"
            if known.retention_bytes < 0:
                assert known.retention_ms >= 0
                assert stored.age_from()[0] + known.retention_ms <= now, "a record went before its time"
        known.raise_start(start)
        if dropped and known.retention_bytes >= 0 and not is_open:
            left = sum(s.batch.size for s in known.live())
            assert left >= known.retention_bytes, "too much went by size"

    def is_referenced(self, object_name: str) -> bool:
        return any(s.object == object_name for known in self.ranges.values() for s in known.live())

    def delete_object(self, object_name: str) -> None:
        assert not self.is_referenced(object_name), "a referenced object was deleted"
        self.objects.discard(object_name)

    def expire_producers(self, vnode_ranges: set[int], now: int, expiry_ms: int) -> None:
        for range_id in vnode_ranges & set(self.ranges):
            known = self.ranges[range_id]
            known.producers = {k: p for k, p in known.producers.items() if p.last_used + expiry_ms > now}
