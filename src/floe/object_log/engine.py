"""The engine of object topics: appends become objects, reads come from cache or store.

    append -> Batch Processor -> upload -> Committer -> Cache Manager
                                                             |
    read   -> Reader ----------------------------------------+-> Purgatory -> store

Stateless but for its caches: everything that must last is in the object store and with the coordinators, so
a broker that dies loses nothing that was acknowledged, and any broker may serve any range.
"""

from floe.machines.write_buffer import WriteBuffer
from floe.metadata.api import Metadata
from floe.model.coordinates import EntryResult, Row
from floe.model.ids import Offset, RangeId
from floe.object_log.appends import ClosedObject
from floe.object_log.batch_processor import BatchProcessor
from floe.object_log.cache import CacheManager
from floe.object_log.committer import Committer
from floe.object_log.coordinate_cache import CoordinateCache
from floe.object_log.deleter import Deleter
from floe.object_log.object_ids import ObjectIds
from floe.object_log.parts import EngineParts
from floe.object_log.purgatory import Purgatory
from floe.object_log.read_ahead import ReadAhead
from floe.object_log.reader import Reader
from floe.object_log.reads import ReadRequest, ReadResult
from floe.object_log.settings import EngineSettings
from floe.object_log.timestamps import Timestamps
from floe.object_log.write_through import WriteThrough
from floe.observability.clock import Clock
from floe.observability.metrics import Metrics
from floe.storage.objects.port import Objects

__all__ = ["EngineSettings", "EntryResult", "ObjectLog", "ReadRequest", "ReadResult"]


class ObjectLog:
    """One per broker; belongs to one event loop."""

    def __init__(
        self,
        *,
        objects: Objects,
        metadata: Metadata,
        clock: Clock,
        metrics: Metrics,
        settings: EngineSettings,
        cluster_id: str,
        worker: str = "broker",
    ) -> None:
        parts = EngineParts(
            objects=objects,
            metadata=metadata,
            clock=clock,
            metrics=metrics,
            settings=settings,
            cluster_id=cluster_id,
        )
        self.cache = CacheManager(
            hot_bytes=settings.hot_cache_bytes,
            cold_bytes=settings.cold_cache_bytes,
            clock=clock,
            metrics=metrics,
        )
        self._open_writing(parts)
        self._open_reading(parts)
        self._deleter = Deleter(parts, worker=worker)
        # The hot calls go straight to whoever answers them.
        self.append = self._processor.append
        self.read_now = self._reader.read_now
        self.read = self._reader.read

    def _open_writing(self, parts: EngineParts) -> None:
        settings = parts.settings
        self._buffer = WriteBuffer(settings.buffer_limits())
        parts.metrics.write_pending_bytes.set_function(lambda: self._buffer.pending_bytes)
        self._committer = Committer(
            parts,
            committed=WriteThrough(self.cache, leader_epoch=settings.leader_epoch).committed,
            released=self._released,
        )
        self._ids = ObjectIds(metadata=parts.metadata, clock=parts.clock, grace_ms=settings.id_grace_ms)
        self._processor = BatchProcessor(parts, committer=self._committer, buffer=self._buffer, ids=self._ids)

    def _open_reading(self, parts: EngineParts) -> None:
        coordinates = CoordinateCache(parts.settings.coordinate_rows_max)
        self._purgatory = Purgatory(parts, cache=self.cache, held_bytes=self._held_bytes)
        self._read_ahead = ReadAhead(
            parts, cache=self.cache, coordinates=coordinates, purgatory=self._purgatory
        )
        self._reader = Reader(
            parts,
            cache=self.cache,
            coordinates=coordinates,
            purgatory=self._purgatory,
            read_ahead=self._read_ahead,
            is_settling=self._is_settling,
        )
        self._timestamps = Timestamps(metadata=parts.metadata, reader=self._reader)

    @property
    def pending_bytes(self) -> int:
        """Bytes buffered, uploading or waiting for a commit; a front door stops reading when they grow."""
        return self._buffer.pending_bytes

    async def start(self) -> None:
        self._deleter.start()

    async def close(self, *, drain: bool) -> None:
        """Stop. With `drain`, take no more appends and wait for the outcome of those that were taken."""
        self._processor.refuse()
        await self._deleter.close()
        if drain:
            await self._processor.drain()
        await self._processor.close()
        await self._committer.close()
        await self._ids.close()
        await self._read_ahead.close()
        await self._purgatory.close()

    async def offset_for_timestamp(self, range_id: RangeId, timestamp: int) -> tuple[Offset, int]:
        """Offset and timestamp of the first record not earlier than `timestamp`; (-1, -1) if none is."""
        return await self._timestamps.first_at_or_after(range_id, timestamp)

    async def offset_of_max_timestamp(self, range_id: RangeId) -> tuple[Offset, int]:
        """Offset and timestamp of the first record that has the greatest; (-1, -1) in an empty range."""
        return await self._timestamps.greatest(range_id)

    def _is_settling(self) -> bool:
        """Whether the answer of some commit may be on its way."""
        return bool(self._committer.by_id)

    def _held_bytes(self, row: Row) -> memoryview | None:
        """A row's bytes while the object it lies in is still held for its commit."""
        if row.object is None:
            return None
        closed = self._committer.by_id.get(row.object)
        return None if closed is None else closed.bytes_of(row)

    def _released(self, closed: ClosedObject) -> None:
        self._buffer.settle(closed.size)
