"""Commit of objects: one transaction decides every entry, and the object's row makes a repeat harmless.

An object of a closed bucket is refused whole. An object that has a row here was committed before and gets
the results stored then. Otherwise each entry is judged by its range's state and its producer's sequence,
and gets offsets from the log end, a duplicate's offset, or an error of its own. Entries of one call see
each other.
"""

from collections.abc import Sequence
from functools import partial

from floe.machines import producer_state, retention
from floe.machines.log_draft import LogDraft
from floe.machines.producer_state import ProducerState
from floe.machines.retention import NEVER
from floe.metadata.codecs.object_rows import decode_results, encode_object, object_key
from floe.metadata.codecs.range_records import RangeRecord
from floe.metadata.codecs.rows import encode_row, row_key
from floe.metadata.codecs.time_nodes import encode_node, node_key
from floe.metadata.coordinators.closed_buckets import ClosedBuckets
from floe.metadata.coordinators.drop_index import move_drop
from floe.metadata.coordinators.producers import ProducerKey, Producers
from floe.metadata.coordinators.range_cache import RangeCache
from floe.metadata.vnode import Transaction, Vnode
from floe.model.coordinates import BatchEntry, EntryResult, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.ids import Bucket, ObjectId, Offset, RangeId, bucket_of
from floe.model.topic import RangeState
from floe.observability.clock import Clock

Results = tuple[EntryResult, ...]

_REFUSED = EntryResult(ErrorCode.REQUEST_TIMED_OUT)
_UNKNOWN_RANGE = EntryResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_SEALED_RANGE = EntryResult(ErrorCode.POLICY_VIOLATION)


class Committer:
    """Commits to one vnode's ranges."""

    def __init__(
        self, vnode: Vnode, ranges: RangeCache, producers: Producers, closed: ClosedBuckets, clock: Clock
    ) -> None:
        self._vnode = vnode
        self._ranges = ranges
        self._producers = producers
        self._closed = closed
        self._clock = clock

    async def commit(self, commits: Sequence[ObjectCommit]) -> list[Results]:
        """The results of each object's entries, durable; idempotent per object."""
        return await self._vnode.run(partial(self._decide, commits))

    async def _decide(self, commits: Sequence[ObjectCommit], tx: Transaction) -> list[Results]:
        mark = self._closed.decided
        if mark is None:
            mark = await self._closed.load(tx)
        draft = _Draft(tx, self._ranges, self._producers, self._clock.now_ms())
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


class _OpenRange:
    """A range in one transaction; `refusal` is the answer to every entry of a range that takes none."""

    __slots__ = ("log", "log_start", "range_id", "record", "refusal")

    def __init__(self, range_id: RangeId, record: RangeRecord | None) -> None:
        self.range_id = range_id
        self.record = record
        self.refusal = _refusal(record)
        if record is not None:
            self.log = LogDraft(record.log_end, record.open_nodes)
            self.log_start = Offset(record.log_start)


class _Draft:
    """All that one transaction decides; written at its end, each range and producer once."""

    __slots__ = ("_created", "_now", "_open", "_producers", "_ranges", "_states", "_tx")

    def __init__(self, tx: Transaction, ranges: RangeCache, producers: Producers, now_ms: int) -> None:
        self._tx = tx
        self._ranges = ranges
        self._producers = producers
        self._now = now_ms
        self._open: dict[RangeId, _OpenRange] = {}
        self._states: dict[ProducerKey, ProducerState] = {}
        self._created: list[ProducerKey] = []

    async def apply(
        self, object_id: ObjectId, entries: Sequence[BatchEntry]
    ) -> tuple[list[EntryResult], int]:
        """The result of each entry and the number of rows they made."""
        results: list[EntryResult] = []
        live_rows = 0
        current: _OpenRange | None = None
        for entry in entries:
            range_id = entry.range
            if current is None or current.range_id != range_id:
                if current is not None and current.record is not None:
                    live_rows += current.log.seal()
                current = self._open.get(range_id) or await self._open_range(range_id)
            if current.refusal is not None:
                results.append(current.refusal)
            elif entry.producer_id < 0:
                base = current.log.append(object_id, entry)
                results.append(EntryResult(ErrorCode.NONE, base, current.log_start))
            else:
                results.append(await self._append_in_sequence(object_id, entry, current))
        if current is not None and current.record is not None:
            live_rows += current.log.seal()
        return results, live_rows

    async def _open_range(self, range_id: RangeId) -> _OpenRange:
        record = self._ranges.decided(range_id) or await self._ranges.load(self._tx, range_id)
        opened = self._open[range_id] = _OpenRange(range_id, record)
        return opened

    async def _append_in_sequence(
        self, object_id: ObjectId, entry: BatchEntry, current: _OpenRange
    ) -> EntryResult:
        key = (entry.range, entry.producer_id)
        state = self._states.get(key) or self._producers.decided(key)
        if state is None:
            state = await self._producers.load(self._tx, *key)
        epoch, sequence, count = entry.producer_epoch, entry.base_sequence, entry.record_count
        error, duplicate = producer_state.judge(state, epoch, sequence, count)
        if error is not ErrorCode.NONE:
            return EntryResult(error, log_start=current.log_start)
        if duplicate >= 0:
            return EntryResult(ErrorCode.NONE, Offset(duplicate), current.log_start, is_duplicate=True)
        base = current.log.append(object_id, entry)
        if state is None:
            self._created.append(key)
        self._states[key] = producer_state.advance(
            state, epoch, sequence, count, base_offset=base, now_ms=self._now
        )
        return EntryResult(ErrorCode.NONE, base, current.log_start)

    def write(self) -> None:
        """Put rows, nodes, records and states into the transaction."""
        changed: dict[RangeId, RangeRecord] = {}
        for range_id, opened in self._open.items():
            if opened.record is not None and opened.log.rows:
                self._write_rows(range_id, opened.log)
                changed[range_id] = self._grown(range_id, opened.record, opened.log)
        if changed:
            self._ranges.save(self._tx, changed)
        if self._states:
            self._producers.save(self._tx, self._states, self._created)

    def _write_rows(self, range_id: RangeId, log: LogDraft) -> None:
        put, now = self._tx.put, self._now
        for row in log.rows:
            put(row_key(range_id, row.last), encode_row(*row, now))
        for level, index, max_timestamp in log.nodes:
            put(node_key(range_id, level, index), encode_node(max_timestamp))

    def _grown(self, range_id: RangeId, record: RangeRecord, log: LogDraft) -> RangeRecord:
        """The record after its rows have been appended."""
        head_time, head_size, drop_at = record.head_time, record.head_size, record.drop_at
        limits = record.limits
        stored_bytes = record.stored_bytes
        for row in log.rows:
            stored_bytes += row.size
        if not record.row_count:
            head = log.rows[0]
            head_time, head_size = retention.row_time(head.max_timestamp, self._now), head.size
        if drop_at == NEVER or limits.retention_bytes >= 0:
            # An earlier time than need be stays: the range is then looked at once for nothing.
            due = retention.due_at(limits, stored_bytes, head_time, head_size, self._now)
            if due != NEVER and (drop_at == NEVER or due < drop_at):
                move_drop(self._tx, range_id, drop_at, due)
                drop_at = due
        return RangeRecord(
            record.topic_id,
            record.state,
            limits,
            record.log_start,
            log.log_end,
            record.rows_start,
            record.row_count + len(log.rows),
            stored_bytes,
            drop_at,
            head_time,
            head_size,
            log.open_nodes,
        )


def _refusal(record: RangeRecord | None) -> EntryResult | None:
    if record is None or record.state is RangeState.DELETING:
        return _UNKNOWN_RANGE
    return _SEALED_RANGE if record.state is RangeState.SEALED else None
