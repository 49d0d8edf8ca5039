"""Finding rows: by offset, by time, by the greatest timestamp.

Rows and ends are read at different moments, so an answer is checked against the view published after its
rows were read: rows that the log start has passed meanwhile are not shown. Rows are read only below the
published log end, which is durable.
"""

from collections.abc import Sequence

from floe.machines import time_search
from floe.machines.time_search import ROWS_ASKED, NodesAsked, NodesTold, Search
from floe.metadata.api import FindRequest
from floe.metadata.codecs.rows import decode_row, row_key
from floe.metadata.codecs.time_nodes import decode_node, node_index, node_key
from floe.metadata.coordinators.range_cache import RangeCache
from floe.metadata.vnode import Vnode
from floe.model.coordinates import RangeView, Row
from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset, RangeId

_OK = ErrorCode.NONE
PAGE_ROWS_MIN = 2
PAGE_ROWS_MAX = 256
ROWS_FOUND_MAX = 2048  # of one request, however many bytes it asks for


class Finder:
    """Reads of one vnode's ranges; answers are durable facts."""

    def __init__(self, vnode: Vnode, ranges: RangeCache) -> None:
        self._vnode = vnode
        self._ranges = ranges

    async def find(self, request: FindRequest) -> RangeView:
        """Rows from the one that holds the offset on; with `max_bytes` 0 the ends alone."""
        range_id, offset = request.range, request.offset
        view = self._ranges.view_now(range_id) or await self._ranges.view(range_id)
        if view.error or request.max_bytes <= 0 or offset == view.log_end:
            return view
        if not view.log_start <= offset < view.log_end:
            return _out_of_range(view)
        rows = await self._rows(range_id, offset, view.log_end, request.max_bytes)
        return await self._checked(range_id, offset, rows)

    async def find_timestamp(self, range_id: RangeId, timestamp: int) -> RangeView:
        """The view whose row is the first with a record at or after the timestamp, if there is one."""
        while True:
            view = await self._ranges.view(range_id)
            if view.error:
                return view
            search = time_search.first_at_or_after(timestamp, view.log_start, view.log_end)
            row = await self._search(range_id, view.log_end, search)
            found = await self._shown(range_id, row)
            if found is not None:
                return found

    async def find_max_timestamp(self, range_id: RangeId) -> RangeView:
        """The view whose row is the first with the greatest timestamp, if there is any."""
        while True:
            view = await self._ranges.view(range_id)
            if view.error:
                return view
            row = await self._search(
                range_id, view.log_end, time_search.greatest(view.log_start, view.log_end)
            )
            found = await self._shown(range_id, row)
            if found is not None:
                return found

    async def _rows(self, range_id: RangeId, offset: int, log_end: int, max_bytes: int) -> list[Row]:
        rows: list[Row] = []
        start, end = row_key(range_id, offset), row_key(range_id, log_end)
        page_rows = self._page_rows(range_id, max_bytes)
        while len(rows) < ROWS_FOUND_MAX:
            page = await self._vnode.scan_durable(start, end, page_rows)
            for key, value in page:
                row = decode_row(key, value)
                rows.append(row)
                max_bytes -= row.size
                if max_bytes <= 0:
                    return rows
            if len(page) < page_rows:
                return rows
            start, page_rows = page[-1][0] + b"\0", PAGE_ROWS_MAX
        return rows

    def _page_rows(self, range_id: RangeId, max_bytes: int) -> int:
        """About as many rows as are asked for, by the range's average; a row too many costs a microsecond."""
        record = self._ranges.decided(range_id)
        if record is None or not record.row_count:
            return PAGE_ROWS_MIN
        asked = max_bytes * record.row_count // max(record.stored_bytes, 1)
        return min(max(asked + 1, PAGE_ROWS_MIN), PAGE_ROWS_MAX)

    async def _checked(self, range_id: RangeId, offset: Offset, rows: Sequence[Row]) -> RangeView:
        view = self._ranges.view_now(range_id) or await self._ranges.view(range_id)
        if view.error:
            return view
        if offset < view.log_start:
            return _out_of_range(view)
        assert rows
        assert rows[0].first <= offset
        return RangeView(_OK, view.log_start, view.log_end, view.last_stable, tuple(rows))

    async def _shown(self, range_id: RangeId, row: Row | None) -> RangeView | None:
        """The view with this row, or None when the log start has passed it meanwhile."""
        view = await self._ranges.view(range_id)
        if view.error or row is None:
            return view
        if row.last < view.log_start:
            return None
        return RangeView(_OK, view.log_start, view.log_end, view.last_stable, (row,))

    async def _search(self, range_id: RangeId, log_end: int, search: Search) -> Row | None:
        """Answer what a search asks until it has found its row."""
        try:
            asked = next(search)
            while True:
                if isinstance(asked, NodesAsked):
                    asked = search.send(await self._nodes(range_id, asked))
                else:
                    start, end = row_key(range_id, asked.offset), row_key(range_id, log_end)
                    pairs = await self._vnode.scan_durable(start, end, ROWS_ASKED)
                    asked = search.send([decode_row(key, value) for key, value in pairs])
        except StopIteration as found:
            row: Row | None = found.value
            return row

    async def _nodes(self, range_id: RangeId, asked: NodesAsked) -> NodesTold:
        start = node_key(range_id, asked.level, asked.start)
        end = node_key(range_id, asked.level, asked.end)
        pairs = await self._vnode.scan_durable(start, end, asked.end - asked.start)
        return {node_index(key): decode_node(value) for key, value in pairs}


def _out_of_range(view: RangeView) -> RangeView:
    return RangeView(ErrorCode.OFFSET_OUT_OF_RANGE, view.log_start, view.log_end, view.last_stable)
