"""The coordinators against a naive model: from commits to the deletion of objects, with failures and crashes.

Goal: whatever happens in whatever order, every acknowledged record that is still due is found at its
offset, ends are as in the model, no referenced object is deleted, and at the end, when everything has
expired, every object is.

Method: hypothesis drives the real coordinators of three vnodes as engines, workers and operations drive
them. Objects spread over ranges of several vnodes; each vnode's part is committed on its own, in close
order per vnode. Any call can meet a failing commit or a crash. The model (`floe.testing.naive_log`) knows
nothing of Floe.
"""

import ast
import shutil
import tempfile
from collections import defaultdict, deque
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from floe.metadata.api import FindRequest
from floe.metadata.coordinators.producers import EXPIRY_MS
from floe.metadata.coordinators.ranges import RangeLimits, RangeSpec
from floe.metadata.keys import BUCKET, DROP, HOLDER, OBJECT, RANGE, RELEASED, ROW, TIME_NODE, WORK
from floe.metadata.store.memory import CommitFault
from floe.model.coordinates import BatchEntry, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.ids import (
    BUCKET_MS,
    ObjectId,
    Offset,
    RangeId,
    TopicId,
    VnodeId,
    bucket_at,
    bucket_of,
)
from floe.model.work import WorkKind, WorkResult
from floe.testing import naive_log
from floe.testing.metadata_plane import VNODE_COUNT, MemoryMedium, MetadataPlane, RocksMedium
from floe.testing.naive_log import Answer, Batch, NaiveLog, Part

HOUR = 3_600_000
LEASED_AT_ONCE = 3
RANGES_MAX = 7
SIZE = 400_000  # three batches to a row
TOPIC = TopicId(bytes(16))
KINDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: naive_log.UNKNOWN,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: naive_log.GAP,
    ErrorCode.INVALID_PRODUCER_EPOCH: naive_log.FENCED,
    ErrorCode.REQUEST_TIMED_OUT: naive_log.REFUSED,
}

troubles = st.one_of(
    st.none(),
    st.none(),
    st.sampled_from(list(CommitFault)),
    st.sampled_from([0.0001, 0.0005, 0.001, 0.002, 0.003]),
)
picks = st.integers(0, 1000)
# Range, record count, age in minutes, and how it is sequenced: not at all, next, a repeat of the last or of
# the oldest batch known, a gap, a new epoch, an old one.
new_batches = st.lists(
    st.tuples(
        picks,
        st.one_of(st.integers(1, 4), st.integers(1, 70)),
        st.integers(-5, 90),
        st.sampled_from(
            ["plain", "plain", "next", "next", "next", "repeat", "old repeat", "gap", "bump", "old"]
        ),
    ),
    min_size=1,
    max_size=7,
)


def to_answer(result) -> Answer:
    if result.error is not ErrorCode.NONE:
        return Answer(KINDS[result.error])
    return Answer(naive_log.DUPLICATE if result.is_duplicate else naive_log.OK, result.base_offset)


def to_entry(batch: Batch) -> BatchEntry:
    producer = batch.producer or (-1, -1, -1)
    return BatchEntry(
        RangeId(batch.range), batch.position, batch.size, batch.count, batch.timestamp, *producer
    )


def to_commit(part: Part) -> ObjectCommit:
    return ObjectCommit(ObjectId(int(part.object)), tuple(to_entry(batch) for batch in part.batches))


class MetadataMachine(RuleBasedStateMachine):
    def make_medium(self, random: Random):
        return MemoryMedium(random)

    @initialize(seed=st.integers(0, 1 << 20))
    def open(self, seed: int) -> None:
        random = Random(seed)
        self.plane = MetadataPlane(self.make_medium(random), random)
        self.clock = self.plane.clock
        self.model = NaiveLog()
        self.next_range = 0
        self.dropping: set[int] = set()
        self.ids: deque[ObjectId] = deque()
        self.queues: dict[int, deque[Part]] = defaultdict(deque)  # per vnode, in close order
        # Per vnode: what each commit of its first parts should have been answered while its outcome is
        # unknown.
        self.attempts: dict[int, list[list[list[Answer]]]] = {}
        self.settled: list[tuple[int, Part]] = []
        self.marks = [-1] * VNODE_COUNT
        self.seen_ends: dict[int, int] = defaultdict(int)
        self.items = []
        for limits in ((-1, -1), (HOUR, -1), (-1, 2 * SIZE)):
            self.create_range(limits, None)

    def vnode_of(self, range_id: int) -> int:
        return range_id % VNODE_COUNT

    def now(self) -> int:
        return self.clock.now

    # Topics.

    @precondition(lambda self: len(self.model.ranges) < RANGES_MAX)
    @rule(limits=st.sampled_from([(-1, -1), (HOUR, -1), (-1, 2 * SIZE), (-1, 0)]), trouble=troubles)
    def create_range(self, limits, trouble) -> None:
        range_id, self.next_range = self.next_range, self.next_range + 1
        spec = RangeSpec(RangeId(range_id), TOPIC, RangeLimits(*limits))
        self.plane.settle(lambda: self.plane.of_range(range_id).ranges.create_ranges([spec]), trouble)
        self.model.create(range_id, *limits)

    @precondition(lambda self: len(self.model.ranges) > 1)
    @rule(pick=picks, trouble=troubles)
    def delete_range(self, pick, trouble) -> None:
        range_id = sorted(self.model.ranges)[pick % len(self.model.ranges)]
        if self._is_open(range_id):
            return  # the outcome of an open part must stay visible
        ranges = [RangeId(range_id)]
        self.plane.settle(lambda: self.plane.of_range(range_id).ranges.mark_deleting(ranges), trouble)
        self.model.delete(range_id)
        self.dropping.add(range_id)

    @precondition(lambda self: self.dropping)
    @rule(pick=picks, limit=st.integers(1, 30), trouble=troubles)
    def drop_rows(self, pick, limit, trouble) -> None:
        range_id = sorted(self.dropping)[pick % len(self.dropping)]
        ranges = [RangeId(range_id)]
        if self.plane.settle(lambda: self.plane.of_range(range_id).ranges.drop_rows(ranges, limit), trouble):
            self.dropping.discard(range_id)

    # Produce.

    @rule(
        objects=st.lists(new_batches, min_size=1, max_size=5),
        troubles=st.lists(troubles, min_size=3, max_size=3),
    )
    def produce(self, objects, troubles) -> None:
        """Close some objects and commit what is waiting, vnode by vnode."""
        for batches in objects:
            self.close_object(batches, True)
        for trouble in troubles:
            if any(self.queues.values()):
                self.commit(len(objects), 2, trouble)

    @rule(batches=new_batches, is_uploaded=st.booleans())
    def close_object(self, batches, is_uploaded) -> None:
        """Lease an id, lay out batches by range, and queue the parts; an object may also come to nothing."""
        object_id = self._new_id()
        if object_id is None:
            return
        name = str(object_id)
        self.model.objects.add(name)
        if not is_uploaded:
            return
        known = [*sorted(self.model.ranges) * 4, *sorted(self.dropping)]
        position = 0
        parts: dict[int, list[Batch]] = defaultdict(list)
        for pick, count, age, how in sorted(batches, key=lambda b: known[b[0] % len(known)]):
            range_id = known[pick % len(known)]
            timestamp = self.now() - age * 60_000 if age >= 0 else 1 << 60
            own = parts[self.vnode_of(range_id)]
            count, producer = self._sequenced(range_id, count, how, own)
            own.append(Batch(range_id, position, SIZE, count, timestamp, producer))
            position += SIZE
        for vnode, own in parts.items():
            self.queues[vnode].append(Part(name, bucket_of(object_id), own))

    @precondition(lambda self: any(self.queues.values()))
    @rule(pick=picks, count=st.integers(1, 3), trouble=troubles)
    def commit(self, pick, count, trouble) -> None:
        """Commit the next parts of a vnode; those whose outcome is unknown are sent again, by themselves."""
        waiting = [v for v in range(VNODE_COUNT) if self.queues[v]]
        vnode = waiting[pick % len(waiting)]
        queue = self.queues[vnode]
        attempts = self.attempts.get(vnode, [])
        parts = list(queue)[: len(attempts[0]) if attempts else count]
        carried_out = self._carried_out(parts, attempts)
        now_expected = self.model.expect(parts, self.marks[vnode])
        outcome = carried_out or now_expected
        commits = [to_commit(part) for part in parts]
        told = self.plane.attempt(
            lambda: self.plane.places[vnode].ranges.commit(commits), trouble, watch=self._watch
        )
        if not told:
            self.attempts[vnode] = [*attempts, now_expected]
            for part in parts:
                part.tried.append(self.now())
            return
        for part, results, answers in zip(parts, told[0], outcome, strict=True):
            is_closed = part.bucket <= self.marks[vnode]
            expected = [Answer(naive_log.REFUSED)] * len(part.batches) if is_closed else answers
            assert [to_answer(result) for result in results] == expected
            self.model.settle(part, answers, self.now())
            self.settled.append((vnode, part))
            queue.popleft()
        self.attempts.pop(vnode, None)
        for range_id in {batch.range for part in parts for batch in part.batches} & set(self.model.ranges):
            self._take_in_start(range_id)

    @precondition(lambda self: self.settled)
    @rule(pick=picks, trouble=troubles)
    def repeat_commit(self, pick, trouble) -> None:
        """A repeat gets the answers of the first call, until its bucket is closed."""
        vnode, part = self.settled[pick % len(self.settled)]
        commit = to_commit(part)
        (results,) = self.plane.settle(lambda: self.plane.places[vnode].ranges.commit([commit]), trouble)
        is_closed = part.bucket <= self.marks[vnode]
        expected = [Answer(naive_log.REFUSED)] * len(part.batches) if is_closed else part.answers
        assert [to_answer(result) for result in results] == expected

    # Time and the front of the log.

    @rule(ms=st.sampled_from([1, 10_000, 61_000, BUCKET_MS, BUCKET_MS + 130_000, HOUR, EXPIRY_MS]))
    def pass_time(self, ms) -> None:
        open_parts = [part for v, a in self.attempts.items() for part in list(self.queues[v])[: len(a[0])]]
        if not any(batch.producer for part in open_parts for batch in part.batches):
            self.clock.now += ms

    @rule(vnode=st.integers(0, VNODE_COUNT - 1), rows=st.integers(1, 5), trouble=troubles)
    def retain(self, vnode, rows, trouble) -> None:
        self.plane.settle(
            lambda: self.plane.places[vnode].ranges.retention_pass(ranges_max=2, rows_max=rows), trouble
        )
        for range_id in sorted(self.model.ranges):
            if self.vnode_of(range_id) == vnode:
                self._take_in_start(range_id)

    @rule(pick=picks, percent=st.integers(0, 100), is_trimmed=st.booleans(), trouble=troubles)
    def delete_records(self, pick, percent, is_trimmed, trouble) -> None:
        range_id = sorted(self.model.ranges)[pick % len(self.model.ranges)]
        known = self.model.ranges[range_id]
        before = Offset(known.start + (known.end - known.start) * percent // 100)
        view = self.plane.settle(
            lambda: self.plane.of_range(range_id).ranges.delete_records(RangeId(range_id), before), trouble
        )
        assert view.error is ErrorCode.NONE
        if before > known.start:
            known.raise_start(before)
        if is_trimmed:
            self.retain(self.vnode_of(range_id), 3, trouble)

    @rule(vnode=st.integers(0, VNODE_COUNT - 1), trouble=troubles)
    def expire_producers(self, vnode, trouble) -> None:
        if vnode in self.attempts:
            return  # what an open part was answered must not depend on when it was carried out
        while self.plane.settle(lambda: self.plane.places[vnode].ranges.expire_producers(2), trouble):
            trouble = None
        own = {r for r in self.model.ranges if self.vnode_of(r) == vnode}
        self.model.expire_producers(own, self.now(), EXPIRY_MS)

    # Objects' life.

    @rule(
        home=st.integers(0, VNODE_COUNT - 1),
        order=st.permutations(range(VNODE_COUNT)),
        stop_after=st.integers(0, VNODE_COUNT + 2),
        trouble=troubles,
        is_emptied=st.booleans(),
    )
    def close_bucket(self, home, order, stop_after, trouble, is_emptied=False) -> None:
        """Drive a close, or some of it: a driver that goes on later starts again and asks everybody."""
        due = self.plane.settle(lambda: self.plane.places[home].home.due_buckets())
        if not due:
            return
        bucket = due[0]
        assert self.plane.settle(lambda: self.plane.places[home].home.begin_close(bucket), trouble)
        held = {}
        for i, vnode in enumerate(order):
            if i == stop_after:
                return
            held[VnodeId(vnode)] = self.plane.settle(
                lambda v=vnode: self.plane.places[v].ranges.close_bucket(bucket), trouble
            )
            self.marks[vnode] = max(self.marks[vnode], bucket)
        if is_emptied:
            self._empty(order[0], trouble)
        if stop_after == VNODE_COUNT:
            return
        finish = trouble if stop_after == VNODE_COUNT + 1 else None
        self.plane.settle(lambda: self.plane.places[home].home.finish_close(bucket, held), finish)

    @rule(
        vnode=st.integers(0, VNODE_COUNT - 1),
        limit=st.integers(1, 4),
        is_lost=st.booleans(),
        trouble=troubles,
    )
    def release(self, vnode, limit, is_lost, trouble) -> None:
        """Tell homes of released objects; the acknowledgement may be lost."""
        page = self.plane.settle(lambda: self.plane.places[vnode].ranges.released_page(None, limit))
        for object_id in page:
            told = self.plane.settle(
                lambda o=object_id: self.plane.home_of(bucket_of(o)).release([o], VnodeId(vnode)), trouble
            )
            if told and not is_lost:
                self.plane.settle(
                    lambda t=told: self.plane.places[vnode].ranges.acknowledge_released(t), trouble
                )

    @rule(home=st.integers(0, VNODE_COUNT - 1), trouble=troubles)
    def claim_work(self, home, trouble) -> None:
        """A claim whose answer is lost is never worked on; its lease runs out."""
        claim = self.plane.attempt(
            lambda: self.plane.places[home].home.claim_work("worker", [WorkKind.DELETE], 2), trouble
        )
        for items in claim:
            self.items += items

    @precondition(lambda self: self.items)
    @rule(pick=picks, failures=st.sets(st.integers(0, 5)), is_told=st.booleans(), trouble=troubles)
    def finish_work(self, pick, failures, is_told, trouble) -> None:
        """Delete the objects of an item, maybe long after its lease has run out, and maybe tell the home."""
        item = self.items.pop(pick % len(self.items))
        done = tuple(o for i, o in enumerate(item.objects) if i not in failures)
        for object_id in done:
            self.model.delete_object(str(object_id))
        if is_told:
            self.plane.attempt(
                lambda: self.plane.places[item.home].home.finish_work(item, WorkResult(done)), trouble
            )

    @rule(
        ms=st.sampled_from([61_000, 2 * BUCKET_MS, HOUR]),
        rounds=st.integers(1, 3),
        is_emptied=st.booleans(),
        trouble=troubles,
    )
    def work_for_a_while(self, ms, rounds, is_emptied, trouble) -> None:
        """All background work of all vnodes, again and again."""
        for _ in range(rounds):
            self.pass_time(ms)
            for vnode in range(VNODE_COUNT):
                self.retain(vnode, 100, trouble)
                self.close_bucket(vnode, range(VNODE_COUNT), VNODE_COUNT + 2, trouble, is_emptied)
                self.release(vnode, 1000, False, trouble)
                self.claim_work(vnode, trouble)
            while self.items:
                self.finish_work(0, set(), True, trouble)

    @rule()
    def crash(self) -> None:
        self.plane.crash()

    # What must hold after every step.

    @invariant()
    def every_acknowledged_record_is_found(self) -> None:
        for range_id, known in self.model.ranges.items():
            start = known.start
            if self._is_open(range_id):  # retention may have taken records of an open part
                start = self._find(range_id, start, 0).log_start
                assert start == known.start or start > known.end == known.start
            view = self._find(range_id, start)
            assert view.error is ErrorCode.NONE
            assert view.log_start == start
            assert view.log_end == view.last_stable
            assert view.log_end >= self.seen_ends[range_id], "the log end went back"
            assert view.log_end in self._possible_ends(range_id)
            offset = view.rows[0].first if view.rows else view.log_end
            assert offset <= start or not view.rows
            for row in view.rows:
                assert row.first == offset
                offset = row.last + 1
                batches = {
                    known.by_offset[i].base: known.by_offset[i]
                    for i in range(max(row.first, start), min(offset, known.end))
                }
                for stored in batches.values():
                    assert str(row.object) == stored.object
                    assert row.position <= stored.batch.position
                    assert stored.batch.position + stored.batch.size <= row.position + row.size
                    assert row.max_timestamp >= stored.batch.timestamp
                    assert stored.object in self.model.objects, "a referenced object was deleted"
            assert offset == view.log_end

    @invariant()
    def deleted_ranges_are_unknown(self) -> None:
        for range_id in self.model.deleted_ranges:
            assert self._find(range_id, 0).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @rule(pick=picks, age=st.integers(-1, 100))
    def look_up_by_time(self, pick, age) -> None:
        range_id = sorted(self.model.ranges)[pick % len(self.model.ranges)]
        timestamp = self.now() - age * 60_000
        place = self.plane.of_range(range_id)
        rows = self._find(range_id, self._find(range_id, 0, 0).log_start).rows
        found = self.plane.settle(lambda: place.ranges.find_timestamp(RangeId(range_id), timestamp)).rows
        assert found == tuple(r for r in rows if r.max_timestamp >= timestamp)[:1]
        greatest = self.plane.settle(lambda: place.ranges.find_max_timestamp(RangeId(range_id))).rows
        assert greatest == tuple(sorted(rows, key=lambda r: (-r.max_timestamp, r.first)))[:1]

    def teardown(self) -> None:
        if not hasattr(self, "plane"):
            return
        try:
            self._expire_everything()
            assert self.model.objects == set()
            left = {key[:1] for _, key in self.plane.medium.all_keys() if key[1:2] != b"c"}
            kinds = (RANGE, ROW, TIME_NODE, DROP, OBJECT, RELEASED, HOLDER, BUCKET, WORK)
            assert left & set(kinds) == set()
            assert self.plane.loop.unhandled == []
        finally:
            self.plane.close()

    # How it is done.

    def _new_id(self) -> ObjectId | None:
        bucket = bucket_at(self.now())
        while self.ids and bucket_of(self.ids[0]) != bucket:
            self.ids.popleft()
        if not self.ids:
            home = self.plane.home_of(bucket)
            told = self.plane.attempt(lambda: home.lease_object_ids(bucket, LEASED_AT_ONCE), None)
            for leased in told:
                self.ids += leased
        return self.ids.popleft() if self.ids else None

    def _sequenced(self, range_id: int, count: int, how: str, own: list[Batch]) -> tuple[int, tuple | None]:
        """Record count and producer of a new batch, which follows what is committed, queued or just made."""
        if how == "plain" or range_id not in self.model.ranges:
            return count, None
        known = self.model.ranges[range_id].producers.get(1)
        epoch, (last, last_count) = (known.epoch, known.batches[-1][:2]) if known else (0, (0, 0))
        queued = [b for part in self.queues[self.vnode_of(range_id)] for b in part.batches]
        for batch in [*queued, *own]:
            if batch.range == range_id and batch.producer and batch.producer[1] >= epoch:
                (_, epoch, last), last_count = batch.producer, batch.count
        if how == "old repeat" and known:
            return known.batches[0][1], (1, known.epoch, known.batches[0][0])
        if how == "repeat" and last_count:
            return last_count, (1, epoch, last)
        if how == "bump":
            return count, (1, epoch + 1, 0)
        if how == "old":
            return count, (1, max(0, epoch - 1), last + last_count)
        return count, (1, epoch, last + last_count + (5 if how == "gap" else 0))

    def _empty(self, vnode: int, trouble) -> None:
        """Drop all that a vnode holds, and tell the homes."""
        own = [i for i, r in enumerate(sorted(self.model.ranges)) if self.vnode_of(r) == vnode]
        for pick in own:
            self.delete_records(pick, 100, False, trouble)
        for _ in own:
            self.retain(vnode, 100, trouble)
        self.release(vnode, 1000, False, trouble)

    def _watch(self) -> None:
        """Note the ends that readers are shown meanwhile: they must hold for ever."""
        for range_id in self.model.ranges:
            view = self.plane.of_range(range_id).ranges.view_now(RangeId(range_id))
            if view is not None:
                self.seen_ends[range_id] = max(self.seen_ends[range_id], view.log_end)

    def _is_open(self, range_id: int) -> bool:
        return self.vnode_of(range_id) in self.attempts

    def _find(self, range_id: int, offset: int, max_bytes: int = 1 << 40):
        request = FindRequest(RangeId(range_id), Offset(offset), max_bytes)
        return self.plane.settle(lambda: self.plane.of_range(range_id).ranges.find([request]))[0]

    def _ends_after(self, parts: list[Part], answers: list[list[Answer]]) -> dict[int, int]:
        """Where the ranges of parts would end if these were their answers."""
        ends = {
            b.range: self.model.ranges[b.range].end
            for p in parts
            for b in p.batches
            if b.range in self.model.ranges
        }
        for part, own in zip(parts, answers, strict=True):
            for batch, answer in zip(part.batches, own, strict=True):
                if answer.kind == naive_log.OK:
                    ends[batch.range] += batch.count
        return ends

    def _possible_ends(self, range_id: int) -> set[int]:
        end = self.model.ranges[range_id].end
        attempts = self.attempts.get(self.vnode_of(range_id), [])
        parts = list(self.queues[self.vnode_of(range_id)])
        grown = [self._ends_after(parts[: len(answers)], answers) for answers in attempts]
        return {end, *(ends.get(range_id, end) for ends in grown)}

    def _carried_out(
        self, parts: list[Part], attempts: list[list[list[Answer]]]
    ) -> list[list[Answer]] | None:
        """Which attempt was carried out, as the ends of all ranges of the parts show; None when none was."""
        before = self._ends_after(parts, [[Answer(naive_log.REFUSED)] * len(p.batches) for p in parts])
        shown = {range_id: self._find(range_id, 0, 0).log_end for range_id in before}
        if shown == before:
            return None
        possible = [answers for answers in attempts if self._ends_after(parts, answers) == shown]
        assert possible, "half of a commit was carried out"
        return possible[0]

    def _take_in_start(self, range_id: int) -> None:
        known = self.model.ranges[range_id]
        is_open = self._is_open(range_id)
        start = self._find(range_id, 0, 0).log_start
        if start > known.start:
            self.model.check_trim(range_id, min(start, known.end), self.now(), is_open=is_open)

    def _expire_everything(self) -> None:
        """Settle what is open, delete every range, let time pass, and do all work there is."""
        while any(self.queues.values()):
            self.commit(0, 1, None)
        for range_id in list(self.model.ranges):
            self.model.delete(range_id)
            ranges = [RangeId(range_id)]
            self.plane.settle(lambda r=range_id, i=ranges: self.plane.of_range(r).ranges.mark_deleting(i))
            self.dropping.add(range_id)
        while self.dropping:
            self.drop_rows(0, 100, None)
        for _ in range(200):
            self.clock.now += 2 * BUCKET_MS
            for vnode in range(VNODE_COUNT):
                self.close_bucket(vnode, range(VNODE_COUNT), VNODE_COUNT + 2, None)
                self.release(vnode, 1000, False, None)
                self.retain(vnode, 100, None)
                self.claim_work(vnode, None)
            while self.items:
                self.finish_work(0, set(), True, None)
            if not self.model.objects and not self._is_anything_left():
                return
        raise AssertionError(f"objects are never deleted. objects={self.model.objects}")

    def _is_anything_left(self) -> bool:
        kinds = (OBJECT, RELEASED, HOLDER, BUCKET, DROP, WORK)
        return any(key[:1] in kinds and key != WORK + b"c" for _, key in self.plane.medium.all_keys())


class RocksMachine(MetadataMachine):
    def make_medium(self, random: Random):
        self.folder = Path(tempfile.mkdtemp(prefix="floe-model-"))
        return RocksMedium(self.folder / "kv")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def test_model_imports_nothing_from_floe():
    tree = ast.parse(Path(naive_log.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported == {"dataclasses"}


SUPPRESSED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
TestMemory = pytest.mark.timeout(600)(MetadataMachine.TestCase)
TestMemory.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=SUPPRESSED
)
TestRocks = pytest.mark.timeout(600)(RocksMachine.TestCase)
TestRocks.settings = settings(
    max_examples=4, stateful_step_count=40, deadline=None, suppress_health_check=SUPPRESSED
)
