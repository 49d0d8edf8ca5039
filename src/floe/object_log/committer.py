"""Commits uploaded objects, per vnode, in the order in which their buffers closed.

One queue per vnode. An object is sent to a vnode when its upload has ended and the outcome of the one before
it there is known; objects that are ready together share a call; vnodes do not wait for each other.

An outcome that is unknown is settled by asking again, which is idempotent, for as long as it takes: nothing
later may overtake it, or a producer's order would be lost. Once the object's bucket is closed the answer is
definite whatever happened. The people waiting do not wait that long: at an object's deadline its entries
without an outcome are answered REQUEST_TIMED_OUT, and parts that were never sent leave their queue, which is
safe because they then never will be. So a queue holds one call of unknown outcome and what arrived within the
produce timeout, no more.

An object whose upload failed leaves its queues; the next may go on. An idempotent producer sees the gap as
Kafka's OUT_OF_ORDER_SEQUENCE_NUMBER and sends again; `SequenceGaps` sees to it where the coordinator cannot.

Invariants:
- Nothing is sent to a vnode before its object is durable.
- On a vnode, parts are sent in close order, and never while an earlier one's outcome is unknown.
- Each append is answered exactly once.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from floe.model.coordinates import EntryResult, ObjectCommit
from floe.model.error_codes import ErrorCode
from floe.model.errors import Fenced, FloeError, Unavailable
from floe.model.ids import ObjectId, VnodeId
from floe.object_log.appends import AppendedSpan, ClosedObject, Entry, Part
from floe.object_log.parts import EngineParts
from floe.object_log.sequence_gaps import SequenceGaps, join, split
from floe.observability.crash_points import crash_point
from floe.observability.logs import get_log

Committed = Callable[[AppendedSpan, Sequence[EntryResult]], None]

TIMED_OUT = EntryResult(ErrorCode.REQUEST_TIMED_OUT)
_log = get_log("object_log")


class _Queue:
    """Parts of one vnode in close order."""

    __slots__ = ("parts", "task", "vnode")

    def __init__(self, vnode: VnodeId) -> None:
        self.vnode = vnode
        self.parts: OrderedDict[Part, None] = OrderedDict()
        self.task: asyncio.Task[None] | None = None  # sends until nothing is ready


class Committer:
    """Owns closed objects from their close until every outcome is known.

    `committed` is told of each span with its entries' results before anybody is answered; `released` is told
    when an object's bytes are no longer held here.
    """

    def __init__(
        self,
        parts: EngineParts,
        *,
        committed: Committed,
        released: Callable[[ClosedObject], None],
    ) -> None:
        self._metadata = parts.metadata
        self._clock = parts.clock
        self._settings = parts.settings
        self._committed = committed
        self._released = released
        self._commit_seconds = parts.metrics.commit_seconds
        self._queues: dict[VnodeId, _Queue] = {}
        self._gaps = SequenceGaps()
        self._watched: deque[ClosedObject] = deque()  # in order of deadline
        self._timer: asyncio.TimerHandle | None = None
        self._held_count = 0  # objects whose bytes are held
        self._idle: asyncio.Future[None] | None = None
        self.by_id: dict[ObjectId, ClosedObject] = {}  # uploaded, some outcome not processed yet

    def enqueue(self, closed: ClosedObject) -> None:
        """Called once per object, in close order."""
        self._held_count += 1
        for part in closed.parts:
            queue = self._queues.get(part.vnode)
            if queue is None:
                queue = self._queues[part.vnode] = _Queue(part.vnode)
            queue.parts[part] = None
        self._watched.append(closed)
        if self._timer is None:
            self._watch_until(closed.deadline)

    def uploaded(self, closed: ClosedObject) -> None:
        """The object is durable: its parts may be sent as soon as it is their turn."""
        closed.is_upload_over = True
        if closed.is_expired:
            self._release_if_over(closed)
            return
        closed.is_uploaded = True
        assert closed.id is not None
        self.by_id[closed.id] = closed
        for part in closed.parts:
            self._send_ready(self._queues[part.vnode])

    def upload_failed(self, closed: ClosedObject, code: ErrorCode) -> None:
        """The object is not durable and never will be committed."""
        closed.is_upload_over = True
        result = EntryResult(code)
        for append in closed.appends:
            append.give_up(result)
        self._drop_unsent(closed)
        self._release_if_over(closed)

    def dropped(self, entries: Sequence[Entry]) -> None:
        """These entries will not be committed unless they are sent again."""
        for range_id, batch in entries:
            self._gaps.dropped(range_id, batch)

    async def drain(self) -> None:
        """Return when every object enqueued so far, and any enqueued meanwhile, was let go."""
        while self._held_count:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._idle])

    async def close(self) -> None:
        """Stop asking. Whoever still waits is answered that the outcome is unknown."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        while self._watched:
            self._expire(self._watched.popleft())
        self._queues.clear()
        self.by_id.clear()

    # Sending

    def _send_ready(self, queue: _Queue) -> None:
        if queue.task is None and queue.parts and next(iter(queue.parts)).object.is_uploaded:
            queue.task = asyncio.get_running_loop().create_task(self._send(queue))

    async def _send(self, queue: _Queue) -> None:
        """Send what is ready, call after call."""
        try:
            while parts := self._ready(queue):
                commits = []
                for part in parts:
                    assert part.commit is not None
                    part.is_sent = True
                    commits.append(part.commit)
                started = self._clock.monotonic()
                crash_point("before_commit")
                if self._gaps:
                    results = await self._outcome_of_admitted(queue.vnode, commits)
                else:
                    results = await self._outcome(queue.vnode, commits)
                crash_point("after_commit")
                self._commit_seconds.observe(self._clock.monotonic() - started)
                for part, outcome in zip(parts, results, strict=True):
                    del queue.parts[part]
                    self._settle(part, outcome)
        finally:
            queue.task = None

    def _ready(self, queue: _Queue) -> list[Part]:
        parts: list[Part] = []
        for part in queue.parts:
            if not part.object.is_uploaded or len(parts) == self._settings.commit_objects_max:
                break
            parts.append(part)
        return parts

    async def _outcome(
        self, vnode: VnodeId, commits: Sequence[ObjectCommit]
    ) -> Sequence[Sequence[EntryResult]]:
        """Ask until the outcome is known."""
        delay = self._settings.commit_backoff_min_ms / 1000
        while True:
            try:
                return await self._ask(vnode, commits)
            except (Unavailable, Fenced) as error:
                _log.warning("commit outcome unknown", vnode=vnode, objects=len(commits), reason=str(error))
            except FloeError as error:
                _log.error("commit refused", vnode=vnode, objects=len(commits), reason=str(error))
                return _refused(commits, error.code)
            except Exception:  # noqa: BLE001 - a transaction that raises has no effect, and the queue goes on
                _log.exception("commit failed", vnode=vnode, objects=len(commits))
                return _refused(commits, ErrorCode.UNKNOWN_SERVER_ERROR)
            await asyncio.sleep(delay)
            delay = min(2 * delay, self._settings.commit_backoff_max_ms / 1000)

    async def _outcome_of_admitted(
        self, vnode: VnodeId, commits: Sequence[ObjectCommit]
    ) -> Sequence[Sequence[EntryResult]]:
        """The outcome of commits some of whose entries may have to wait for a dropped one."""
        parts = [split(commit, self._gaps) for commit in commits]
        sent = [commit for commit, _ in parts if commit.entries]
        outcomes = iter(await self._outcome(vnode, sent) if sent else ())
        return [join(list(next(outcomes)) if commit.entries else [], admitted) for commit, admitted in parts]

    async def _ask(self, vnode: VnodeId, commits: Sequence[ObjectCommit]) -> Sequence[Sequence[EntryResult]]:
        results = await self._metadata.commit(vnode, commits)
        assert [len(result) for result in results] == [len(commit.entries) for commit in commits]
        return results

    def _settle(self, part: Part, results: Sequence[EntryResult]) -> None:
        start = 0
        for span in part.spans:
            end = start + len(span.batches)
            outcome = results[start:end]
            start = end
            self._committed(span, outcome)
            crash_point("before_ack")
            for (append, index), result in zip(span.origins, outcome, strict=True):
                append.settle(index, result)
        self._part_is_over(part.object)

    def _part_is_over(self, closed: ClosedObject) -> None:
        closed.unsettled_count -= 1
        if closed.unsettled_count:
            return
        if closed.id is not None:
            self.by_id.pop(closed.id, None)
        self._release_if_over(closed)
        while self._watched and not self._watched[0].unsettled_count:
            self._watched.popleft()

    def _release_if_over(self, closed: ClosedObject) -> None:
        """Let the bytes go once: when no upload reads them and nobody waits for an outcome."""
        if closed.is_released or not closed.is_upload_over:
            return
        if closed.unsettled_count and not closed.is_expired:
            return
        closed.let_go()
        self._held_count -= 1
        self._released(closed)
        if not self._held_count and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    # Deadlines

    def _watch_until(self, deadline: float) -> None:
        delay = max(0.0, deadline - self._clock.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._deadline_passed, deadline)

    def _deadline_passed(self, deadline: float) -> None:
        self._timer = None
        while self._watched and self._watched[0].deadline <= deadline:
            self._expire(self._watched.popleft())
        if self._watched:
            self._watch_until(self._watched[0].deadline)

    def _expire(self, closed: ClosedObject) -> None:
        """Answer everybody who waits; what was sent stays in its queue until its outcome is known."""
        closed.is_expired = True
        for append in closed.appends:
            append.give_up(TIMED_OUT)
        self._drop_unsent(closed)
        self._release_if_over(closed)

    def _drop_unsent(self, closed: ClosedObject) -> None:
        for part in closed.parts:
            queue = self._queues[part.vnode]
            if not part.is_sent and part in queue.parts:
                del queue.parts[part]
                for span in part.spans:
                    self.dropped([(span.range, batch) for batch in span.batches])
                self._part_is_over(closed)
                self._send_ready(queue)


def _refused(commits: Sequence[ObjectCommit], code: ErrorCode) -> list[tuple[EntryResult, ...]]:
    result = EntryResult(code)
    return [(result,) * len(commit.entries) for commit in commits]
