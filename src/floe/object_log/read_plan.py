"""One asynchronous read: what is known of each request so far, and what must still be asked or fetched.

Planning goes in rounds, in the order of the requests, and follows the budget: a request takes what it is
known to get; one whose rows are not known yet is taken to use all it may. A round ends with questions to the
coordinators, or with none, and then the rows to fetch are known. Requests past the spent budget cost nothing.
"""

from collections.abc import Sequence

from floe.metadata.api import FindRequest
from floe.model.coordinates import RangeView, Row
from floe.model.error_codes import ErrorCode
from floe.model.ids import RangeId
from floe.object_log.coordinate_cache import CoordinateCache
from floe.object_log.reads import ReadRequest
from floe.object_log.span_index import Find, SpanIndex

QUESTIONS_MAX = 256  # of one round


class ReadPlan:
    """State of one read. `spans` holds what the answer will be cut from, so no eviction can spoil it."""

    def __init__(self, requests: Sequence[ReadRequest], max_bytes: int) -> None:
        self.requests = requests
        self.max_bytes = max_bytes
        self.views: dict[int, RangeView] = {}  # by number of the request
        self.rows: dict[int, list[Row]] = {}  # to fetch, first to last
        self.errors: dict[int, ErrorCode] = {}
        self.spans = SpanIndex()
        self._asked: set[int] = set()

    def round(
        self, coordinates: CoordinateCache, cached: Find, *, rows_max: int, ahead_bytes: int
    ) -> dict[int, FindRequest]:
        """Decide what to fetch; returns questions by number of the request, empty when all is decided."""
        self.rows = {}
        left = self.max_bytes
        questions: dict[int, FindRequest] = {}
        for number, request in enumerate(self.requests):
            view = self.views.get(number)
            if number in self.errors:
                continue
            if view is not None and (view.error or request.offset == view.log_end or left <= 0):
                continue
            budget = max(0, min(request.max_bytes, left))
            size = self._hold(request.range, request.offset, budget, cached) if view is not None else 0
            rows: list[Row] = []
            if view is not None and not size:
                rows = coordinates.rows_from(
                    request.range, request.offset, max_bytes=budget, rows_max=rows_max
                )
            if size:
                left -= size
            elif rows:
                left = self._plan_rows(number, rows, left)
            elif number not in self._asked:
                if len(questions) < QUESTIONS_MAX:
                    asked = budget + ahead_bytes if left > 0 else 0
                    questions[number] = FindRequest(request.range, request.offset, asked)
                left -= budget
        return questions

    def answered(self, number: int, view: RangeView) -> None:
        """A coordinator's answer to a question of this plan.

        A question for the ends alone is answered without a look at its offset, so that is done here.
        """
        if not view.error and not view.log_start <= self.requests[number].offset <= view.log_end:
            view = RangeView(ErrorCode.OFFSET_OUT_OF_RANGE, view.log_start, view.log_end, view.last_stable)
        self.views[number] = view
        self._asked.add(number)

    def forget(self, number: int) -> None:
        """What was known of a request proved wrong; the next round asks again."""
        self.views.pop(number, None)
        self._asked.discard(number)

    def _plan_rows(self, number: int, rows: list[Row], left: int) -> int:
        """Fetch rows for a request; returns what is left of the budget."""
        if rows[0].size > left and left < self.max_bytes:
            return 0  # hardly anything of it would fit behind what is planned already
        self.rows[number] = rows
        return left - min(sum(row.size for row in rows), self.requests[number].max_bytes)

    def _hold(self, range_id: RangeId, offset: int, budget: int, cached: Find) -> int:
        """Keep spans that are in memory from an offset on; returns about what the request gets of them."""
        size = 0
        end: int = offset
        while size < max(budget, 1):
            span = self.spans.find(range_id, end) or cached(range_id, end)
            if span is None:
                break
            self.spans.add(span)
            size += span.ends[-1]
            end = span.end
        return min(size, max(budget, 1))
