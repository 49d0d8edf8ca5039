"""After a power cut at any moment, every acknowledged put is there whole and nothing is ever torn.

Method: a fixed story of puts, writers and deletes runs on a disk that forgets what was not synced. The power
is cut before and after every single disk call, with several seeds for what the disk then forgets. Then a new
store is opened on what is left and every key is read. The check is shown to fail for stores that skip a sync.
"""

import errno
from collections.abc import Callable
from random import Random

import pytest

from floe.storage.disk import File
from floe.storage.objects.blocking_files import BlockingFiles
from floe.storage.objects.files import FileObjects
from floe.storage.objects.port import AlreadyExists, ObjectNotFound, Objects
from floe.testing.contracts.objects import ObjectsContract
from floe.testing.sim_disk import PowerCut, SimDisk

Body = list[bytes]
SEEDS = range(6)


def body_of(key: str, generation: int = 0) -> Body:
    source = Random(f"{key}#{generation}")
    return [source.randbytes(source.randrange(1500)) for _ in range(4)]


class Story:
    """What was asked and acknowledged so far, key by key."""

    def __init__(self, files: BlockingFiles) -> None:
        self.files = files
        self.acknowledged: dict[str, bytes] = {}
        self.deleted: set[str] = set()
        self.in_doubt: set[str] = set()
        self.offered: dict[str, set[bytes]] = {}

    def put(self, key: str, generation: int = 0) -> None:
        body = body_of(key, generation)
        self._offer(key, body)
        self.files.put(key, body)
        self._acknowledge(key, body)

    def write(self, key: str) -> None:
        body = body_of(key)
        self._offer(key, body)
        file = self.files.create(key)
        for piece in body:
            file.write([piece])
        self.files.publish(file, key)
        self._acknowledge(key, body)

    def delete(self, *keys: str) -> None:
        self.in_doubt |= set(keys)
        for key in keys:
            self.acknowledged.pop(key, None)
        assert self.files.delete(keys) == {}
        self.deleted |= set(keys)
        self.in_doubt -= set(keys)

    def _offer(self, key: str, body: Body) -> None:
        self.offered.setdefault(key, set()).add(b"".join(body))
        self.in_doubt.add(key)
        self.deleted.discard(key)

    def _acknowledge(self, key: str, body: Body) -> None:
        self.acknowledged[key] = b"".join(body)
        self.in_doubt.discard(key)


def tell(story: Story) -> None:
    story.put("c/1/a")
    story.put("c/1/b")
    story.write("c/2/large")
    with pytest.raises(AlreadyExists):
        story.files.put("c/1/a", body_of("c/1/a", 9))
    story.delete("c/1/a", "c/1/b")
    story.put("c/1/d")
    story.put("c/1/a", 1)
    story.delete("c/2/large", "c/1/d")
    story.put("e")


def check(story: Story, disk: SimDisk) -> None:
    """Invariant: acknowledged = there, whole; deleted = gone; in doubt = gone or whole, never torn."""
    files = BlockingFiles(disk)
    listed = set(files.walk("", ""))
    for key, content in story.acknowledged.items():
        assert files.get(key) == content, f"an acknowledged object is lost or torn: {key}"
    for key in listed - set(story.acknowledged):
        assert key not in story.deleted, f"a deleted object came back: {key}"
        assert key in story.in_doubt, f"an object nobody wrote: {key}"
        assert files.get(key) in story.offered[key], f"a torn object is visible: {key}"
    assert set(story.acknowledged) <= listed


def crash_everywhere(make: Callable[[SimDisk], BlockingFiles]) -> int:
    """Run the story with a power cut at each step in turn; how many steps there were."""
    step = 0
    while True:
        step += 1
        for seed in SEEDS:
            disk = SimDisk(Random(seed * 1000 + step))
            story = Story(make(disk))
            disk.power_cut_at = step
            try:
                tell(story)
                is_finished = True
            except PowerCut:
                is_finished = False
            disk.crash()
            check(story, disk)
        if is_finished:
            return step


def test_acknowledged_objects_survive_a_power_cut_at_any_step() -> None:
    assert crash_everywhere(BlockingFiles) > 80


class PublishesBeforeSync(BlockingFiles):
    def publish(self, file: File, key: str) -> None:
        self._disk.make_folders(key.rpartition("/")[0])
        try:
            self._disk.publish(file, key)
        except FileExistsError:
            raise AlreadyExists(key) from None
        file.sync()
        self._disk.sync_folder(key.rpartition("/")[0])


class ForgetsTheFolder(BlockingFiles):
    def publish(self, file: File, key: str) -> None:
        file.sync()
        self._disk.make_folders(key.rpartition("/")[0])
        try:
            self._disk.publish(file, key)
        except FileExistsError:
            raise AlreadyExists(key) from None


class ForgetsTheContent(BlockingFiles):
    def publish(self, file: File, key: str) -> None:
        file.sync = lambda: None  # type: ignore[method-assign]
        super().publish(file, key)


@pytest.mark.parametrize("broken", [PublishesBeforeSync, ForgetsTheFolder, ForgetsTheContent])
def test_the_check_catches_a_store_that_skips_a_sync(broken: type[BlockingFiles]) -> None:
    with pytest.raises((AssertionError, ObjectNotFound)):
        crash_everywhere(broken)


def test_the_check_catches_a_disk_that_only_pretends_to_sync() -> None:
    def lying(disk: SimDisk) -> BlockingFiles:
        disk.honours_sync = False
        return BlockingFiles(disk)

    with pytest.raises((AssertionError, ObjectNotFound)):
        crash_everywhere(lying)


@pytest.mark.parametrize("op", ["create_unnamed", "write", "sync", "make_folders", "publish", "sync_folder"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_disk_error_at_any_call_of_a_put_is_raised_and_a_repeat_settles_it(op: str, code: int) -> None:
    disk = SimDisk(Random(1))
    files = BlockingFiles(disk)
    disk.fail(op, code)
    with pytest.raises(OSError, match=r".") as caught:
        files.put("a/b", [b"body"])
    assert caught.value.errno == code
    files.put("a/b", [b"body"])
    assert files.get("a/b") == b"body"


def test_a_delete_that_fails_for_one_key_goes_on_with_the_rest() -> None:
    disk = SimDisk(Random(1))
    files = BlockingFiles(disk)
    for key in ("a/1", "a/2", "b/1"):
        files.put(key, [b"x"])
    disk.fail("unlink", errno.EIO)
    assert list(files.delete(["a/1", "a/2", "b/1"])) == ["a/1"]
    assert list(files.walk("", "")) == ["a/1"]
    disk.fail("sync_folder", errno.EIO)
    assert list(files.delete(["a/1"])) == ["a/1"]


class TestFileObjectsOnSimulatedDisk(ObjectsContract):
    @pytest.fixture
    async def objects(self) -> Objects:
        return FileObjects(SimDisk(Random(1)), threads=1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("can_unlink", [True, False])
def test_put_repeated_after_a_failed_folder_sync_is_durable(seed, can_unlink):
    """The folder's sync fails once; whoever repeats the put may be told that the object exists."""
    disk = SimDisk(Random(seed))
    files = BlockingFiles(disk)
    files.put("a/first", [b"x"])
    disk.fail("sync_folder", errno.EIO)
    if not can_unlink:
        disk.fail("unlink", errno.EIO)
    with pytest.raises(OSError, match="5"):
        files.put("a/second", [b"body"])
    try:
        files.put("a/second", [b"body"])
    except AlreadyExists:
        assert not can_unlink
    disk.crash()
    assert BlockingFiles(disk).get("a/second") == b"body"
