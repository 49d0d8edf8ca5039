"""Commit of objects: one transaction decides every entry, and the object's row makes a repeat harmless.

An object of a closed bucket is refused whole. An object that has a row here was committed before and gets
the results stored then. Otherwise each entry is judged by its range's state and its producer's sequence,
and gets offsets from the log end, a duplicate's offset, or an error of its own. Entries of one call see
each other.
"""

from collections.abc import Sequence
from functools import partial

from floe.machines import producer_state
from floe.machines.log_draft import LogDraft
from floe.machines.producer_state import ProducerState
from floe.machines.range_record import RangeRecord
from floe.metadata.codecs.object_rows import decode_results, encode_object, object_key
from floe.metadata.codecs.rows import encode_span, row_key
from floe.metadata.codecs.time_nodes import encode_node, node_key
from floe.metadata.coordinators.closed_buckets import ClosedBuckets
from floe.metadata.coordinators.drop_index import DropIndex
from floe.metadata.coordinators.producers import ProducerKey, Producers
from floe.metadata.coordinators.range_cache import RangeCache
from floe.metadata.vnode import Transaction, Vnode
from floe.model.coordinates import BatchEntry, EntryResult, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.ids import Bucket, ObjectId, RangeId, bucket_of
from floe.model.topic import RangeState
from floe.observability.clock import Clock

Results = tuple[EntryResult, ...]

# Members of an enumeration are slow to look up, so the hot path has them at hand.
_OK = ErrorCode.NONE
_ACTIVE = RangeState.ACTIVE
_REFUSED = EntryResult(ErrorCode.REQUEST_TIMED_OUT)
_UNKNOWN_RANGE = EntryResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_SEALED_RANGE = EntryResult(ErrorCode.POLICY_VIOLATION)


class Committer:
    """Commits to one vnode's ranges."""

    def __init__(
        self,
        vnode: Vnode,
        ranges: RangeCache,
        producers: Producers,
        closed: ClosedBuckets,
        drops: DropIndex,
        clock: Clock,
    ) -> None:
        self._vnode = vnode
        self._ranges = ranges
        self._producers = producers
        self._closed = closed
        self._drops = drops
        self._clock = clock

    async def commit(self, commits: Sequence[ObjectCommit]) -> list[Results]:
        """The results of each object's entries, durable; idempotent per object."""
        return await self._vnode.run(partial(self._decide, commits))

    async def _decide(self, commits: Sequence[ObjectCommit], tx: Transaction) -> list[Results]:
        mark = self._closed.decided
        if mark is None:
            mark = await self._closed.load(tx)
        draft = _Draft(tx, self._ranges, self._producers, self._drops, self._clock.now_ms())
        results = [await self._decide_object(commit, mark, draft, tx) for commit in commits]
        draft.write()
        return results

    async def _decide_object(
        self, commit: ObjectCommit, mark: Bucket, draft: "_Draft", tx: Transaction
    ) -> Results:
        if bucket_of(commit.object) <= mark:
            return (_REFUSED,) * len(commit.entries)
        key = object_key(commit.object)
        stored = await tx.get(key)
        if stored is not None:
            return decode_results(stored)
        results, live_rows = await draft.apply(commit.object, commit.entries)
        tx.put(key, encode_object(live_rows, results))
        return tuple(results)


class _Draft:
    """All that one transaction decides; written at its end, each range and producer once."""

    __slots__ = ("_created", "_drops", "_logs", "_now", "_producers", "_ranges", "_refused", "_states", "_tx")

    def __init__(
        self, tx: Transaction, ranges: RangeCache, producers: Producers, drops: DropIndex, now_ms: int
    ) -> None:
        self._tx = tx
        self._drops = drops
        self._ranges = ranges
        self._producers = producers
        self._now = now_ms
        self._logs: dict[RangeId, LogDraft] = {}
        self._refused: dict[RangeId, EntryResult] = {}
        self._states: dict[ProducerKey, ProducerState] = {}
        self._created: list[ProducerKey] = []

    async def apply(
        self, object_id: ObjectId, entries: Sequence[BatchEntry]
    ) -> tuple[list[EntryResult], int]:
        """The result of each entry and the number of rows they made."""
        results: list[EntryResult] = []
        live_rows = 0
        range_id: RangeId | None = None
        log: LogDraft | None = None
        for entry in entries:
            if entry.range != range_id:
                if log is not None:
                    live_rows += log.seal()
                range_id = entry.range
                log = self._logs.get(range_id)
                if log is None:
                    record = self._ranges.decided(range_id) or await self._ranges.load(self._tx, range_id)
                    log = self._open(range_id, record)
            if log is None:
                results.append(self._refused[entry.range])
            elif entry.producer_id < 0:
                base = log.append(object_id, entry)
                results.append(EntryResult(_OK, base, log.log_start))
            else:
                key = (entry.range, entry.producer_id)
                state = self._states.get(key) or self._producers.decided(key)
                if state is None:
                    state = await self._producers.load(self._tx, *key)
                results.append(self._append_in_sequence(object_id, entry, log, key, state))
        if log is not None:
            live_rows += log.seal()
        return results, live_rows

    def _open(self, range_id: RangeId, record: RangeRecord | None) -> LogDraft | None:
        """Begin the draft of a range, or None when it takes no entries."""
        if record is None or record.state is not _ACTIVE:
            is_sealed = record is not None and record.state is RangeState.SEALED
            self._refused[range_id] = _SEALED_RANGE if is_sealed else _UNKNOWN_RANGE
            return None
        log = self._logs[range_id] = LogDraft(record)
        return log

    def _append_in_sequence(
        self,
        object_id: ObjectId,
        entry: BatchEntry,
        log: LogDraft,
        key: ProducerKey,
        state: ProducerState | None,
    ) -> EntryResult:
        epoch, sequence, count = entry.producer_epoch, entry.base_sequence, entry.record_count
        verdict = producer_state.judge(state, epoch, sequence, count)
        if verdict is not producer_state.ACCEPTED:
            error, duplicate = verdict
            return EntryResult(error, duplicate, log.log_start, error is _OK)
        base = log.append(object_id, entry)
        if state is None:
            self._created.append(key)
        self._states[key] = producer_state.advance(state, epoch, sequence, count, base, self._now)
        return EntryResult(_OK, base, log.log_start)

    def write(self) -> None:
        """Put rows, nodes, records and states into the transaction."""
        changed: dict[RangeId, RangeRecord] = {}
        for range_id, log in self._logs.items():
            if log.rows:
                changed[range_id] = self._write_log(range_id, log)
        if changed:
            self._ranges.save(self._tx, changed)
        if self._states:
            self._producers.save(self._tx, self._states, self._created)

    def _write_log(self, range_id: RangeId, log: LogDraft) -> RangeRecord:
        tx, now = self._tx, self._now
        for row in log.rows:
            tx.put(row_key(range_id, row.last), encode_span(row, now))
        for node in log.nodes:
            tx.put(node_key(range_id, node.level, node.index), encode_node(node.max_timestamp))
        record = log.record(now)
        if record.drop_at != log.drop_at:
            self._drops.move(tx, range_id, log.drop_at, record.drop_at)
        return record
