"""RocksDB keeps the contract of key-value maps, and shows damage instead of hiding rows."""

from pathlib import Path

import pytest
from rocksdict import Rdict

from floe.model.errors import Corrupt, Unavailable
from floe.storage.kv.rocks import RocksKeyValue
from floe.testing.contracts.kv import KeyValueContract, OpenMap


class TestRocksKeyValue(KeyValueContract):
    @pytest.fixture
    def open_map(self, tmp_path: Path) -> OpenMap:
        return lambda: RocksKeyValue(tmp_path / "kv", cache_bytes=8 << 20)


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    kv = RocksKeyValue(tmp_path / "kv")
    with pytest.raises(Unavailable, match="lock"):
        RocksKeyValue(tmp_path / "kv")
    kv.close()


def test_a_damaged_block_is_corrupt_and_not_an_empty_answer(tmp_path: Path) -> None:
    kv = RocksKeyValue(tmp_path / "kv")
    kv.write([(b"%04d" % number, b"v" * 200) for number in range(1000)])
    kv._db.flush()
    kv.close()
    tables = list((tmp_path / "kv").glob("*.sst"))
    assert tables
    for table in tables:
        damaged = bytearray(table.read_bytes())
        damaged[100] ^= 0xFF
        table.write_bytes(damaged)
    kv = RocksKeyValue(tmp_path / "kv")
    for read in (
        lambda: kv.get(b"0001"),
        lambda: kv.scan(b"", b"z", 10),
        lambda: kv.floor(b"0001", b""),
    ):
        with pytest.raises(Corrupt):
            read()
    kv.close()


def test_the_log_is_not_held_back_in_user_space(tmp_path: Path) -> None:
    kv = RocksKeyValue(tmp_path / "kv")
    kv.write([(b"key", b"value-to-be-found")])
    logs = [log.read_bytes() for log in (tmp_path / "kv").glob("*.log")]
    assert any(b"value-to-be-found" in log for log in logs)
    options = next((tmp_path / "kv").glob("OPTIONS-*")).read_text()
    assert "manual_wal_flush=false" in options
    assert "wal_recovery_mode=kPointInTimeRecovery" in options
    assert "paranoid_checks=true" in options
    kv.close()


def test_scans_stay_cheap_when_the_oldest_rows_are_deleted_again_and_again(tmp_path: Path) -> None:
    """Deleting pushes the memtable out, so that compaction can drop the tombstones."""
    kv = RocksKeyValue(tmp_path / "kv")
    for first in range(0, 20_000, 1000):
        kv.write([(b"%06d" % number, b"v") for number in range(first, first + 1000)])
        kv.write([(b"%06d" % number, None) for number in range(first, first + 1000)])
    kv.write([(b"alive", b"1")])
    assert kv.scan(b"", b"z", 5) == [(b"alive", b"1")]
    assert kv._deletes < 20_000
    kv.close()


class RefusesToSync:
    """RocksDB whose log cannot be synced once."""

    def __init__(self, db: Rdict) -> None:
        self._db = db

    def flush_wal(self, sync: bool) -> None:
        raise Exception("IO error: While fdatasync: Input/output error")

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)


def test_after_a_failed_sync_nothing_is_written_or_acknowledged_any_more(tmp_path: Path) -> None:
    """The kernel tells of lost pages once; a second sync that succeeds would prove nothing."""
    kv = RocksKeyValue(tmp_path / "kv")
    healthy = kv._db
    kv.write([(b"a", b"1")])
    kv._db = RefusesToSync(healthy)
    with pytest.raises(Unavailable, match="Input/output error"):
        kv.sync()
    kv._db = healthy
    with pytest.raises(Unavailable, match="no more writes"):
        kv.sync()
    with pytest.raises(Unavailable, match="no more writes"):
        kv.write([(b"b", b"1")])
    assert kv.get(b"a") == b"1"
    kv.close()
