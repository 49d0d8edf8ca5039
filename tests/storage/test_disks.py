"""The simulated disk behaves as the real one until it crashes; a crash forgets what was not synced."""

import errno
from pathlib import Path
from random import Random

import pytest

from floe.storage.disk import Disk, File
from floe.storage.os_disk import OsDisk
from floe.testing.sim_disk import PowerCut, SimDisk

PATHS = ["a", "b", "d/a", "d/b", "d/e/a", "x/y"]
FOLDERS = ["", "d", "d/e", "x"]


def act(disk: Disk, files: list[File], source: Random) -> object:
    """One random call; what it answers, or the kind of its error."""
    path, other, folder = source.choice(PATHS), source.choice(PATHS), source.choice(FOLDERS)
    choice = source.randrange(11)
    pick = source.random()
    data = source.randbytes(source.randrange(2000))
    try:
        match choice:
            case 0:
                file = disk.create(path)
                size = file.write([data])
                file.close()
                return size
            case 1:
                files.append(disk.create_unnamed())
                return files[-1].write([data, b"end"])
            case 2:
                disk.link(path, other)
            case 3:
                disk.rename(path, other) if path != other else None
            case 4:
                disk.unlink(path)
            case 5:
                disk.make_folders(folder)
            case 6:
                disk.remove_folder(folder) if folder else None
            case 7:
                return disk.list(folder)
            case 8:
                file = disk.open(path)
                content = (file.size(), file.read(0, 10_000), file.read(5, 7))
                file.close()
                return content
            case 9 if files:
                file = files[int(pick * len(files))]
                file.sync()
                return file.write([data])
            case _ if files:
                disk.publish(files.pop(), other)
    except OSError as error:
        # Which of several reasons is named first is the kernel's choice; that it refuses is not.
        return "refused" if error.errno != errno.EEXIST else "exists"
    return None


@pytest.mark.parametrize("seed", range(40))
def test_both_disks_answer_the_same(tmp_path: Path, seed: int) -> None:
    real, simulated = OsDisk(tmp_path), SimDisk(Random(seed))
    real_files: list[File] = []
    simulated_files: list[File] = []
    first, second = Random(seed), Random(seed)
    for _ in range(80):
        assert act(real, real_files, first) == act(simulated, simulated_files, second)
    for file in real_files:
        file.close()


@pytest.mark.parametrize("seed", range(20))
def test_synced_content_under_a_synced_name_survives(seed: int) -> None:
    disk = SimDisk(Random(seed))
    file = disk.create("a")
    file.write([b"durable"])
    file.sync()
    disk.sync_folder("")
    file.write([b" and lost or torn"])
    disk.crash()
    assert disk.open("a").read(0, 7) == b"durable"


def outcomes(run: object, seeds: int = 60) -> set[object]:
    return {run(Random(seed)) for seed in range(seeds)}  # type: ignore[operator]


def test_unsynced_content_is_lost_kept_or_torn() -> None:
    def run(random: Random) -> str:
        disk = SimDisk(random)
        file = disk.create("a")
        disk.sync_folder("")
        file.write([b"x" * 3000])
        disk.crash()
        data = disk.open("a").read(0, 5000)
        return (
            "none" if not data else "all" if data == b"x" * 3000 else "some" if set(data) == {120} else "torn"
        )

    assert outcomes(run) == {"none", "all", "some", "torn"}


def test_a_name_that_was_not_synced_may_be_there_or_not() -> None:
    def run(random: Random) -> tuple[str, ...]:
        disk = SimDisk(random)
        disk.create("old").sync()
        disk.sync_folder("")
        disk.unlink("old")
        disk.create("new").sync()
        disk.crash()
        return tuple(name for name, _ in disk.list(""))

    assert outcomes(run) == {(), ("old",), ("new",), ("new", "old")}


def test_a_rename_never_loses_the_file() -> None:
    def run(random: Random) -> tuple[str, ...]:
        disk = SimDisk(random)
        disk.make_folders("d")
        disk.create("old").sync()
        disk.sync_folder("")
        disk.rename("old", "d/new")
        disk.sync_folder("")
        disk.crash()
        return tuple(name for name, _ in disk.list("d") + disk.list("") if name != "d")

    assert outcomes(run) == {("old",), ("new",), ("new", "old")}


def test_files_without_a_name_and_files_opened_before_are_gone() -> None:
    disk = SimDisk(Random(1))
    unnamed, named = disk.create_unnamed(), disk.create("a")
    for file in (unnamed, named):
        file.write([b"x"])
        file.sync()
    disk.crash()
    with pytest.raises(OSError, match="crashed"):
        unnamed.write([b"x"])
    with pytest.raises(OSError, match="crashed"):
        named.read(0, 1)


def test_a_power_cut_stays_until_the_crash_and_errors_come_on_demand() -> None:
    disk = SimDisk(Random(1))
    disk.fail("create", errno.ENOSPC, errno.EIO)
    for code in (errno.ENOSPC, errno.EIO):
        with pytest.raises(OSError, match=r".") as caught:
            disk.create("a")
        assert caught.value.errno == code
    disk.power_cut_at = disk.steps + 2
    with pytest.raises(PowerCut):
        disk.create("a")
    with pytest.raises(PowerCut):
        disk.list("")
    disk.crash()
    disk.list("")


def test_the_same_seed_gives_the_same_disk() -> None:
    def run(seed: int) -> bytes:
        disk = SimDisk(Random(seed))
        for number in range(20):
            disk.create(f"f{number}").write([b"x" * 2000])
        disk.crash()
        return b"|".join(name.encode() + disk.open(name).read(0, 3000) for name, _ in disk.list(""))

    assert run(7) == run(7)
    assert run(7) != run(8)
