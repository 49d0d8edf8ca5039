"""What was appended on its way to an object: the requests, the closed object, its parts per vnode.

An append is one request of a front door: entries of several ranges, answered together. A closed object holds
whole appends. Its spans, one per range in order of range, are laid out in the file; its parts, one per vnode,
are committed each on their own.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from floe.model.coordinates import BatchEntry, EntryResult, ObjectCommit, Row, RowFlags
from floe.model.ids import ObjectId, RangeId, VnodeId
from floe.wire.batch import TRANSACTIONAL_BIT, Batch, Buffer
from floe.wire.object_file import Span, build

Entry = tuple[RangeId, Batch]


class Append:
    """One request and the outcomes known so far; answered once, when the last is known or given up."""

    __slots__ = ("_buffer_size", "_missing", "_results", "arrived_at", "entries", "future", "size")

    def __init__(
        self,
        future: asyncio.Future[list[EntryResult]],
        entries: Sequence[Entry],
        size: int,
        arrived_at: float,
    ) -> None:
        self.arrived_at = arrived_at
        self.future = future
        self.entries: Sequence[Entry] = entries
        self.size = size
        self._results: list[EntryResult | None] | None = [None] * len(entries)
        self._missing = len(entries)
        self._buffer_size = 0

    def settle(self, index: int, result: EntryResult) -> None:
        """The outcome of one entry; ignored when the request was answered before."""
        results = self._results
        if results is None:
            return
        results[index] = result
        self._missing -= 1
        if not self._missing:
            self._answer(results)

    def give_up(self, result: EntryResult) -> None:
        """Answer now; entries without an outcome get this one."""
        if self._results is not None:
            self._answer([known or result for known in self._results])

    def _answer(self, results: list[EntryResult | None]) -> None:
        self._results = None  # from here on the list belongs to the caller
        if not self.future.done():
            self.future.set_result(cast("list[EntryResult]", results))

    @property
    def buffer_size(self) -> int:
        """Bytes of the buffer that a view of any batch keeps alive."""
        if not self._buffer_size:
            self._buffer_size = memoryview(self.entries[0][1].view.obj).nbytes
        return self._buffer_size


class AppendedSpan:
    """The batches of one range in one object, and the request entry that each came from."""

    __slots__ = ("batches", "number", "origins", "range")

    def __init__(self, range_id: RangeId) -> None:
        self.range = range_id
        self.number = 0  # of its first batch within the object
        self.batches: list[Batch] = []
        self.origins: list[tuple[Append, int]] = []


class Part:
    """What one vnode commits of one object."""

    __slots__ = ("commit", "is_sent", "object", "spans", "vnode")

    def __init__(self, closed: "ClosedObject", vnode: VnodeId) -> None:
        self.object = closed
        self.vnode = vnode
        self.spans: list[AppendedSpan] = []  # emptied when nobody waits for the outcome any more
        self.commit: ObjectCommit | None = None  # known once the object has an id
        self.is_sent = False


class ClosedObject:
    """A closed buffer, from its close until every part's outcome is known."""

    __slots__ = (
        "_positions",
        "appends",
        "batch_count",
        "body",
        "deadline",
        "id",
        "is_expired",
        "is_released",
        "is_upload_over",
        "is_uploaded",
        "parts",
        "size",
        "spans",
        "unsettled_count",
    )

    def __init__(
        self,
        appends: Sequence[Append],
        vnode_of: Callable[[RangeId], VnodeId],
        *,
        deadline: float,
    ) -> None:
        self.appends: Sequence[Append] = appends
        self.size = sum(append.size for append in appends)
        self.deadline = deadline
        self.id: ObjectId | None = None
        self.body: list[Buffer] = []
        self.is_uploaded = False  # durable, so its parts may be sent
        self.is_upload_over = False  # no upload reads the bytes any more
        self.is_expired = False  # everybody was answered
        self.is_released = False  # no bytes are held
        self.spans = _spans(appends)
        self.parts: list[Part] = _parts(self, vnode_of)
        self.batch_count = sum(len(append.entries) for append in appends)
        self.unsettled_count = len(self.parts)
        self._positions: list[int] = []

    def lay_out(self, object_id: ObjectId) -> list[Buffer]:
        """Give the object its id and its file, and each part what it commits."""
        built = build([Span(span.range, span.batches) for span in self.spans], object_id=object_id)
        self.id = object_id
        self.body = built.pieces
        self._positions = built.positions
        number = 0
        for span in self.spans:
            span.number = number
            number += len(span.batches)
        for part in self.parts:
            entries: list[BatchEntry] = []
            for span in part.spans:
                _add_entries(entries, span, built.positions)
            part.commit = ObjectCommit(object_id, tuple(entries))
        return built.pieces

    def bytes_of(self, row: Row) -> memoryview | None:
        """The row's bytes, joined, while they are still held here."""
        if not self.body:
            return None
        first = bisect_left(self._positions, row.position)
        last = bisect_left(self._positions, row.position + row.size)
        # The body is the start magic, one view per batch, and the footer.
        return memoryview(b"".join(self.body[1 + first : 1 + last]))

    def let_go(self) -> None:
        """Hold no bytes any longer; parts that are under way stay, without anybody to answer."""
        self.is_released = True
        self.appends = ()
        self.spans = []
        self.body = []
        self._positions = []
        for part in self.parts:
            part.spans = []


def _spans(appends: Iterable[Append]) -> list[AppendedSpan]:
    """By range, in order of arrival within a range."""
    spans: dict[RangeId, AppendedSpan] = {}
    for append in appends:
        for index, (range_id, batch) in enumerate(append.entries):
            span = spans.get(range_id)
            if span is None:
                span = spans[range_id] = AppendedSpan(range_id)
            span.batches.append(batch)
            span.origins.append((append, index))
    if len(spans) == 1:
        return list(spans.values())
    return [spans[range_id] for range_id in sorted(spans)]


def _parts(closed: ClosedObject, vnode_of: Callable[[RangeId], VnodeId]) -> list[Part]:
    parts: dict[VnodeId, Part] = {}
    for span in closed.spans:
        vnode = vnode_of(span.range)
        part = parts.get(vnode)
        if part is None:
            part = parts[vnode] = Part(closed, vnode)
        part.spans.append(span)
    return list(parts.values())


def _add_entries(entries: list[BatchEntry], span: AppendedSpan, positions: Sequence[int]) -> None:
    range_id = span.range
    for number, batch in enumerate(span.batches, span.number):
        entries.append(
            BatchEntry(
                range_id,
                positions[number],
                batch.size,
                batch.record_count,
                batch.max_timestamp,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                RowFlags.TRANSACTIONAL if batch.attributes & TRANSACTIONAL_BIT else RowFlags.NONE,
            )
        )
