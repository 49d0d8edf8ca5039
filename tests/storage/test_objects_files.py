"""The file store keeps the contract, cleans up after itself and turns disk errors into `Unavailable`."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from floe.model.errors import Unavailable
from floe.storage import os_disk
from floe.storage.objects.files import FileObjects
from floe.storage.objects.port import AlreadyExists, ObjectNotFound, Objects
from floe.storage.os_disk import OsDisk
from floe.testing.contracts.objects import ObjectsContract, keys_of


class TestFileObjects(ObjectsContract):
    @pytest.fixture
    async def objects(self, tmp_path: Path) -> AsyncIterator[Objects]:
        objects = FileObjects(OsDisk(tmp_path / "store"))
        yield objects
        await objects.close()


class TestFileObjectsWithoutUnnamedFiles(ObjectsContract):
    """The fallback for file systems that have no O_TMPFILE."""

    @pytest.fixture
    async def objects(self, tmp_path: Path) -> AsyncIterator[Objects]:
        objects = FileObjects(OsDisk(tmp_path / "store", has_unnamed_files=False), drop_reads=True)
        yield objects
        await objects.close()
        assert list((tmp_path / "store").glob(f"{os_disk.TEMPORARY_FOLDER}/*")) == []


async def test_folders_go_with_their_last_object(tmp_path: Path) -> None:
    objects = FileObjects(OsDisk(tmp_path))
    await objects.put("cluster/bucket-1/a", [b"x"])
    await objects.put("cluster/bucket-2/b", [b"x"])
    await objects.delete(["cluster/bucket-1/a"])
    assert os.listdir(tmp_path / "cluster") == ["bucket-2"]
    await objects.delete(["cluster/bucket-2/b"])
    assert os.listdir(tmp_path) == []
    await objects.put("cluster/bucket-1/a", [b"y"])
    assert await objects.get("cluster/bucket-1/a") == b"y"
    await objects.close()


async def test_puts_survive_deletes_that_remove_their_folder(tmp_path: Path) -> None:
    """Two brokers share a folder: one empties and removes it while the other writes to it."""
    writer, deleter = FileObjects(OsDisk(tmp_path)), FileObjects(OsDisk(tmp_path))
    done = False

    async def churn() -> None:
        while not done:
            await deleter.put("a/b/other", [b"x"])
            await deleter.delete(["a/b/other"])

    churning = asyncio.create_task(churn())
    for number in range(40):
        await writer.put(f"a/b/{number}", [b"%d" % number])
        assert await writer.get(f"a/b/{number}") == b"%d" % number
        await writer.delete([f"a/b/{number}"])
    done = True
    await churning
    await writer.close()
    await deleter.close()


async def test_leftovers_of_a_dead_process_are_swept_and_a_living_ones_are_not(tmp_path: Path) -> None:
    temporary = tmp_path / os_disk.TEMPORARY_FOLDER
    living = OsDisk(tmp_path, has_unnamed_files=False).create_unnamed()
    (temporary / "dead-1").write_bytes(b"half")
    OsDisk(tmp_path)
    assert len(os.listdir(temporary)) == 1
    living.close()
    assert os.listdir(temporary) == []


async def test_names_of_the_store_itself_are_not_listed(tmp_path: Path) -> None:
    objects = FileObjects(OsDisk(tmp_path))
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "1-1").write_bytes(b"half")
    (tmp_path / ".hidden").write_bytes(b"x")
    await objects.put("a", [b"x"])
    assert await keys_of(objects) == ["a"]
    await objects.close()


async def test_disk_errors_are_unavailable_and_keep_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FileObjects(OsDisk(tmp_path))

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(Unavailable, match="No space left"):
        await objects.put("a", [b"x"])
    monkeypatch.undo()
    assert await keys_of(objects) == []
    await objects.put("a", [b"x"])
    await objects.close()


async def test_a_partial_write_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FileObjects(OsDisk(tmp_path))
    pieces = [bytes([number]) * (number % 50) for number in range(200)]
    writev = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, buffers: writev(fd, _first_bytes(buffers, 37)))
    await objects.put("a", pieces)
    monkeypatch.undo()
    assert await objects.get("a") == b"".join(pieces)
    await objects.close()


def _first_bytes(buffers: list[bytes], size: int) -> list[bytes]:
    return [b"".join(buffers)[:size]]


async def test_a_key_below_another_objects_key_is_not_found(tmp_path: Path) -> None:
    objects = FileObjects(OsDisk(tmp_path))
    await objects.put("a", [b"x"])
    with pytest.raises(ObjectNotFound):
        await objects.get("a/b")
    assert await objects.delete(["a/b"]) == {}
    with pytest.raises(AlreadyExists):
        await objects.put("a", [b"y"])
    await objects.close()


async def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    objects = FileObjects(OsDisk(tmp_path))
    for number in range(100):
        await objects.put(f"folder-{number}/a", [b"x"])
        await objects.get_range(f"folder-{number}/a", 0, 1)
        stream = objects.stream(f"folder-{number}/a", 0, 1, 1)
        assert [bytes(view) async for view in stream] == [b"x"]
    writer = await objects.writer("w")
    await writer.abort()
    await objects.close()
    assert len(os.listdir("/proc/self/fd")) <= before
