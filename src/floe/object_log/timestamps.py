"""Offsets by time, exact to the record, although timestamps need not rise along the log.

The coordinators know an upper bound per row, the header one per batch; the records know. A look-up goes from
one to the next: the first row that may hold a match, in it the first batch that may, and then its records. A
bound can promise more than the records keep: the record that made it may lie below the log start, or a client
may have put a wrong time into a header. The look-up then goes on with what follows.
"""

import asyncio
from collections.abc import AsyncIterator

from floe.metadata.api import FindRequest, Metadata
from floe.model.coordinates import RangeView, Row
from floe.model.errors import Corrupt, Rejected
from floe.model.ids import NO_OFFSET, Offset, RangeId
from floe.object_log.cached_span import CachedSpan
from floe.object_log.reader import Reader
from floe.storage.objects.port import ObjectNotFound
from floe.wire.batch import NO_TIMESTAMP, read_header
from floe.wire.records import offsets_and_timestamps

ROWS_READ_MAX = 256  # of one look-up; only headers that lie make it read more than a few
PAGES_MAX = 1000
PAGE_BYTES = 64 << 20
CLIMBS_MAX = 64

Found = tuple[Offset, int]  # offset and timestamp of a record
NOT_FOUND: Found = (NO_OFFSET, NO_TIMESTAMP)


class Timestamps:
    """Look-ups by time. Raise `Rejected` with the range's error, `Unavailable`, or `Corrupt`."""

    def __init__(self, *, metadata: Metadata, reader: Reader) -> None:
        self._metadata = metadata
        self._reader = reader

    async def first_at_or_after(self, range_id: RangeId, timestamp: int) -> Found:
        """The first record, by offset, that is not earlier than the timestamp; `NOT_FOUND` if none is."""
        try:
            return await self._first(range_id, timestamp)
        except ObjectNotFound:
            # The coordinates were right when they were told; the rows that replaced them are known by now.
            return await self._first(range_id, timestamp)

    async def greatest(self, range_id: RangeId) -> Found:
        """The first record that has the greatest timestamp of all; `NOT_FOUND` in an empty range."""
        view = _checked(await self._metadata.find_max_timestamp(range_id))
        if not view.rows:
            return NOT_FOUND
        found = await self.first_at_or_after(range_id, view.rows[0].max_timestamp)
        if found != NOT_FOUND:
            return found
        # The bound was too high. Climb from any record: each step finds one that is later, until none is.
        found = await self.first_at_or_after(range_id, NO_TIMESTAMP)
        return await self._climb(range_id, found) if found != NOT_FOUND else NOT_FOUND

    async def _climb(self, range_id: RangeId, found: Found) -> Found:
        for _ in range(CLIMBS_MAX):
            later = await self.first_at_or_after(range_id, found[1] + 1)
            if later == NOT_FOUND:
                return await self.first_at_or_after(range_id, found[1])
            found = later
        raise Corrupt(f"timestamps of batches and of their records disagree. range={range_id}")

    async def _first(self, range_id: RangeId, timestamp: int) -> Found:
        view = _checked(await self._metadata.find_timestamp(range_id, timestamp))
        rows_read = 0
        async for row in self._rows_from(view, timestamp):
            if rows_read == ROWS_READ_MAX:
                raise Corrupt(f"timestamps of batches and of their records disagree. range={range_id}")
            rows_read += 1
            span = await self._reader.span_of(row)
            found = await _first_in(span, timestamp, max(row.first, view.log_start))
            if found is not None:
                return found
        return NOT_FOUND

    async def _rows_from(self, view: RangeView, timestamp: int) -> AsyncIterator[Row]:
        """Rows that may hold a match, from the first row of a view on."""
        for _ in range(PAGES_MAX):
            for row in view.rows:
                if row.max_timestamp >= timestamp:
                    yield row
            if not view.rows or view.rows[-1].last + 1 >= view.log_end:
                return
            after = Offset(view.rows[-1].last + 1)
            (view,) = await self._metadata.find([FindRequest(view.rows[-1].range, after, PAGE_BYTES)])
            _checked(view)


async def _first_in(span: CachedSpan, timestamp: int, first: int) -> Found | None:
    """The first match of a span at or past an offset."""
    for number, base in enumerate(span.bases):
        end = span.bases[number + 1] if number + 1 < len(span.bases) else span.end
        if end <= first:
            continue
        batch = span.batch(number)
        if read_header(batch).max_timestamp >= timestamp:
            # Decompressing and walking a large batch takes long enough to do it beside the event loop.
            found = await asyncio.to_thread(_first_in_batch, batch, base, timestamp, first)
            if found is not None:
                return found
    return None


def _first_in_batch(batch: memoryview, base: int, timestamp: int, first: int) -> Found | None:
    for offset, time in offsets_and_timestamps(batch, base_offset=base):
        if time >= timestamp and offset >= first:
            return Offset(offset), time
    return None


def _checked(view: RangeView) -> RangeView:
    if view.error:
        raise Rejected(view.error)
    return view
