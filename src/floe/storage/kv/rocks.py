"""The key-value port on RocksDB, through rocksdict's raw mode (bytes in, bytes out).

How a write becomes durable. `write` appends to RocksDB's write-ahead log without a sync: since
`manual_wal_flush` is off, the record has left user space when it returns, after some 20 us. `sync` is
`flush_wal(True)`, RocksDB's own SyncWAL: it syncs every log file that may hold unsynced records, oldest
first, and the folder when a log file is new. rocksdict releases the interpreter's lock in it, and not in a
synced `write`, which would stop the event loop for the 0.3 ms the disk takes. Syncing the log files
ourselves was measured to be no faster, and would have to guess which files are live; RocksDB knows.

Writes go on while a sync waits. A crash leaves a prefix of the writes (recovery stops at the first torn
record), and `sync` returns only when everything before it is in that prefix.

Memory is bounded: memtables of half the cache's size in all, one block cache that also holds index and
filter blocks, and a bounded table cache. Ranges that lose their oldest rows leave tombstones where the next
scan starts, so files with many of them are compacted early, and scans stop at their upper bound.

rocksdict raises bare `Exception` for every error of RocksDB; this module turns all of them into the port's.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from floe.model.errors import Corrupt, FloeError, Unavailable
from floe.storage.kv.port import Pair, Write
from floe.storage.os_disk import make_folder_durable

MIB = 1 << 20
CACHE_BYTES_DEFAULT = 32 * MIB
_BLOCK_BYTES = 4 << 10
_FILTER_BITS_PER_KEY = 10  # 1 % false positives
_OPEN_FILES_MAX = 512
# A scan skips a tombstone in half a microsecond, so those of a memtable delay it by 4 ms at most.
_DELETES_PER_MEMTABLE_MAX = 8192


class RocksKeyValue:
    """One database folder, locked by this process while open."""

    def __init__(self, path: str | Path, *, cache_bytes: int = CACHE_BYTES_DEFAULT) -> None:
        make_folder_durable(Path(path))
        try:
            self._db = Rdict(str(path), options=_options(cache_bytes))
        except Exception as error:
            raise _translated(error, "open") from error
        self._read_options = ReadOptions()
        self._failure: FloeError | None = None
        self._deletes = 0  # since the memtable was last pushed out for their sake

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise _translated(error, "get") from error
        return value

    def scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        if limit <= 0 or start >= end:
            return []
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(end)
        pairs: list[Pair] = []
        try:
            place = self._db.iter(bounds)
            place.seek(start)
            while place.valid():
                pairs.append((place.key(), place.value()))
                if len(pairs) == limit:
                    return pairs
                place.next()
            # An iterator that met a damaged block is just as invalid as one at its end.
            place.status()
        except Exception as error:
            raise _translated(error, "scan") from error
        return pairs

    def floor(self, key: bytes, low: bytes) -> Pair | None:
        # No lower bound is set: rocksdict 0.3.29 takes a lower bound for an upper one.
        try:
            place = self._db.iter(self._read_options)
            place.seek_for_prev(key)
            if place.valid():
                found = place.key()
                return (found, place.value()) if found >= low else None
            place.status()
        except Exception as error:
            raise _translated(error, "floor") from error
        return None

    def write(self, writes: Sequence[Write]) -> None:
        self._check_usable()
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        deletes = 0
        for key, value in writes:
            if value is None:
                delete(key)
                deletes += 1
            else:
                put(key, value)
        try:
            self._db.write(batch)
            if deletes:
                self._bound_tombstones(deletes)
        except Exception as error:
            raise self._failed(error, "write") from error

    def sync(self) -> None:
        self._check_usable()
        try:
            self._db.flush_wal(True)
        except Exception as error:
            raise self._failed(error, "sync") from error

    def close(self) -> None:
        self._failure = self._failure or Unavailable("the key-value map is closed")
        with contextlib.suppress(DbClosedError):
            self._db.close()

    def _bound_tombstones(self, deletes: int) -> None:
        """Push the memtable out after many deletes: only then can compaction drop what scans must skip."""
        self._deletes += deletes
        if self._deletes >= _DELETES_PER_MEMTABLE_MAX:
            self._deletes = 0
            self._db.flush(wait=False)

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise Unavailable(f"the key-value map takes no more writes: {self._failure}")

    def _failed(self, error: Exception, action: str) -> FloeError:
        """Remember the failure: the kernel reports a failed sync once and then forgets the lost pages."""
        self._failure = _translated(error, action)
        return self._failure


def _translated(error: Exception, action: str) -> FloeError:
    kind = Corrupt if str(error).startswith("Corruption") else Unavailable
    return kind(f"rocksdb: {action} failed: {str(error)[:500]}")


def _options(cache_bytes: int) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    _limit_memory(options, cache_bytes)
    _shape_files(options)
    # One flush and one compaction at a time: the cores belong to the event loop.
    options.set_max_background_jobs(2)
    options.set_max_open_files(_OPEN_FILES_MAX)
    # A big table is written back in pieces, so that its final sync does not hold up the log's.
    options.set_bytes_per_sync(MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(4 * MIB)
    return options


def _limit_memory(options: Options, cache_bytes: int) -> None:
    options.set_write_buffer_size(max(cache_bytes // 4, MIB))
    options.set_max_write_buffer_number(3)
    options.set_db_write_buffer_size(max(cache_bytes // 2, 2 * MIB))
    tables = BlockBasedOptions()
    # The LRU cache would split so small a capacity into shards of 512 KiB, too small for large blocks.
    tables.set_block_cache(Cache.new_hyper_clock_cache(cache_bytes, _BLOCK_BYTES))
    tables.set_cache_index_and_filter_blocks(True)
    tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
    tables.set_bloom_filter(_FILTER_BITS_PER_KEY, False)
    # Index and filters in pages, so that a table larger than the cache still costs one page of each.
    tables.set_index_type(BlockBasedIndexType.two_level_index_search())
    tables.set_partition_filters(True)
    tables.set_metadata_block_size(_BLOCK_BYTES)
    tables.set_pin_top_level_index_and_filter(True)
    tables.set_block_size(_BLOCK_BYTES)
    tables.set_format_version(5)
    options.set_block_based_table_factory(tables)


def _shape_files(options: Options) -> None:
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_target_file_size_base(16 * MIB)
    options.set_compression_type(DBCompressionType.none())
    options.set_bottommost_compression_type(DBCompressionType.lz4())
    # A file is compacted early when half of any 256 neighbouring entries are tombstones.
    options.add_compact_on_deletion_collector_factory(256, 128, 0.5)
