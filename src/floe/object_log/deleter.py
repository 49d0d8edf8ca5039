"""The broker's own worker: deletes objects that nobody refers to any more.

It claims delete work, deletes what the items name and hands each item back with what is done; keys that
could not be deleted stay in the item and are claimed again, so one bad key holds back nothing but itself.
Work comes up when buckets close and objects are released, minutes after the fact, so an idle worker looks
rarely; as long as there is work it goes on without pause.
"""

import asyncio

from floe.model.errors import FloeError
from floe.model.ids import object_key
from floe.model.work import WorkItem, WorkKind, WorkResult
from floe.object_log.parts import EngineParts
from floe.observability.logs import get_log

_log = get_log("object_log")


class Deleter:
    """One background loop."""

    def __init__(self, parts: EngineParts, *, worker: str) -> None:
        self._objects = parts.objects
        self._metadata = parts.metadata
        self._clock = parts.clock
        self._deleted = parts.metrics.objects_deleted
        self._last_success = parts.metrics.last_success.labels("delete")
        self._interval = parts.settings.delete_interval_ms / 1000
        self._items_max = parts.settings.delete_items_max
        self._cluster_id = parts.cluster_id
        self._worker = worker
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def run_once(self) -> bool:
        """Claim and do what there is, up to the bound; returns whether anything was deleted."""
        items = await self._metadata.claim_work(self._worker, [WorkKind.DELETE], self._items_max)
        progressed = False
        for item in items:
            progressed |= await self._delete(item)
        self._last_success.set(self._clock.now_ms() / 1000)
        return progressed

    async def _run(self) -> None:
        while True:
            progressed = False
            try:
                progressed = await self.run_once()
            except FloeError as error:
                _log.warning("deletion put off", reason=str(error))
            except Exception:  # noqa: BLE001 - the worker outlives whatever one item does
                _log.exception("deletion failed")
            if not progressed:
                await asyncio.sleep(self._interval)

    async def _delete(self, item: WorkItem) -> bool:
        keys = {object_key(self._cluster_id, object_id): object_id for object_id in item.objects}
        try:
            failures = await self._objects.delete(list(keys))
        except FloeError as error:
            failures = dict.fromkeys(keys, str(error))
        done = tuple(object_id for key, object_id in keys.items() if key not in failures)
        if failures:
            example = next(iter(failures.items()))
            _log.warning("objects not deleted", count=len(failures), key=example[0], reason=example[1])
        await self._metadata.finish_work(item, WorkResult(done))
        self._deleted.inc(len(done))
        return bool(done)
