"""The Batch Processor: gathers appends, closes buffers, uploads objects.

`append` is synchronous and keeps order of arrival; its future is the only thing made per request. Whether to
close is decided once per turn of the event loop, so that all requests that one round of the selector brought
share an object. Only a full buffer closes at once, so that a flood does not make one huge object.

The end of an upload hands the object to the committer first; the next close is decided a turn later, so the
commit is on its way before the next object is laid out.
"""

import asyncio
from collections.abc import Sequence

from floe.machines.write_buffer import WriteBuffer
from floe.model.coordinates import EntryResult
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError, Unavailable
from floe.model.ids import object_key
from floe.object_log.appends import Append, ClosedObject, Entry
from floe.object_log.committer import Committer
from floe.object_log.object_ids import ObjectIds
from floe.object_log.parts import EngineParts
from floe.observability.crash_points import crash_point
from floe.observability.logs import get_log

# Retriable for every client, and true: the entry was not and will not be committed.
NOT_WRITTEN = EntryResult(ErrorCode.KAFKA_STORAGE_ERROR)
_log = get_log("object_log")


class BatchProcessor:
    """One per broker. `buffer` counts; this class holds the requests and drives the uploads."""

    def __init__(
        self,
        parts: EngineParts,
        *,
        committer: Committer,
        buffer: WriteBuffer,
        ids: ObjectIds,
    ) -> None:
        self._objects = parts.objects
        self._vnode_of = parts.metadata.vnode_of_range
        self._committer = committer
        self._buffer = buffer
        self._ids = ids
        self._clock = parts.clock
        self._metrics = parts.metrics
        self._produce_timeout = parts.settings.produce_timeout_ms / 1000
        self._cluster_id = parts.cluster_id
        self._appends: list[Append] = []  # not in a closed object yet, in order of arrival
        self._overdue_count = 0  # of these, from the front: answered already
        self._uploads: dict[asyncio.Task[None], None] = {}
        self._is_deciding = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._is_closed = False  # takes no more appends
        self._is_stopped = False  # starts no more uploads

    def append(self, entries: Sequence[Entry]) -> asyncio.Future[list[EntryResult]]:
        """Results in the order of the entries, once each has an outcome."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[EntryResult]] = loop.create_future()
        size = 0
        for _, batch in entries:
            size += batch.size
        if not size or self._is_closed or not self._buffer.admits(size):
            future.set_result([NOT_WRITTEN] * len(entries))
            return future
        now = self._clock.monotonic()
        self._appends.append(Append(future, entries, size, now))
        if self._buffer.add(now, size):
            self._close_due(now)
        elif not self._is_deciding:
            self._is_deciding = True
            loop.call_soon(self._decide)
        return future

    def refuse(self) -> None:
        """Take no more appends."""
        self._is_closed = True

    async def drain(self) -> None:
        """Return when every append that was taken was answered and its bytes let go."""
        assert self._is_closed
        while self._appends or self._uploads:
            self._close_due(self._clock.monotonic(), is_last=True)
            if self._uploads:
                await asyncio.wait(list(self._uploads), return_when=asyncio.FIRST_COMPLETED)
        await self._committer.drain()

    async def close(self) -> None:
        """Stop without waiting for anybody; appends that did not leave are answered as not written."""
        self.refuse()
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for append in self._appends:
            append.give_up(NOT_WRITTEN)
            self._buffer.settle(append.size)
        self._appends.clear()
        uploads = list(self._uploads)
        for upload in uploads:
            upload.cancel()
        if uploads:
            await asyncio.wait(uploads)

    def _decide(self) -> None:
        self._is_deciding = False
        self._close_due(self._clock.monotonic())

    def _decide_at(self, due: float) -> None:
        # A loop's timer may run a little before its time; the time it was set for has come all the same.
        self._timer = None
        self._close_due(max(due, self._clock.monotonic()))

    def _close_due(self, now: float, *, is_last: bool = False) -> None:
        if self._is_stopped:
            return
        self._give_up_overdue(now)
        while (due := self._buffer.due(now)) is not None and (due <= now or is_last):
            self._close_buffer(now)
        if due is None and self._overdue_count < len(self._appends):
            due = self._appends[self._overdue_count].arrived_at + self._produce_timeout
        if due is None or (self._timer is not None and self._timer_due <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_later(due - now, self._decide_at, due)

    def _give_up_overdue(self, now: float) -> None:
        """Answer appends that found no upload to leave with; they then never leave."""
        appends = self._appends
        while self._overdue_count < len(appends):
            append = appends[self._overdue_count]
            if append.arrived_at + self._produce_timeout > now:
                return
            append.give_up(NOT_WRITTEN)
            self._committer.dropped(append.entries)
            self._overdue_count += 1

    def _close_buffer(self, now: float) -> None:
        count = self._buffer.close(now)
        overdue = min(count, self._overdue_count)
        for append in self._appends[:overdue]:
            self._buffer.settle(append.size)
        appends = self._appends[overdue:count]
        del self._appends[:count]
        self._overdue_count -= overdue
        if not appends:
            self._buffer.upload_ended()
            return
        deadline = appends[0].arrived_at + self._produce_timeout
        closed = ClosedObject(appends, self._vnode_of, deadline=deadline)
        self._committer.enqueue(closed)
        upload = asyncio.get_running_loop().create_task(self._upload(closed))
        self._uploads[upload] = None
        upload.add_done_callback(self._uploads.pop)

    async def _upload(self, closed: ClosedObject) -> None:
        try:
            await self._put(closed)
        except FloeError as error:
            _log.warning("upload failed", object=closed.id, size=closed.size, reason=str(error))
            self._committer.upload_failed(closed, NOT_WRITTEN.error)
        except Exception:  # noqa: BLE001 - whoever waits for this object must be answered
            _log.exception("upload failed", object=closed.id, size=closed.size)
            self._committer.upload_failed(closed, NOT_WRITTEN.error)
        else:
            self._metrics.write_object_bytes.observe(closed.size)
            self._metrics.write_object_batches.observe(closed.batch_count)
            self._committer.uploaded(closed)
        self._buffer.upload_ended()
        if not self._is_deciding:
            self._is_deciding = True
            asyncio.get_running_loop().call_soon(self._decide)

    async def _put(self, closed: ClosedObject) -> None:
        object_id = self._ids.take_now()
        if object_id is None:
            object_id = await self._ids.take(closed.deadline)
        if closed.is_expired:
            raise Unavailable("nobody waits for the object any more")
        body = closed.lay_out(object_id)
        started = self._clock.monotonic()
        crash_point("before_upload")
        await self._objects.put(object_key(self._cluster_id, object_id), body)
        crash_point("after_upload")
        self._metrics.upload_seconds.observe(self._clock.monotonic() - started)
