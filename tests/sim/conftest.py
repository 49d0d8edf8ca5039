"""Named mutations: small patches of the real classes, each of which breaks one promise of the log."""

import asyncio
import contextlib

import pytest

from floe.machines import producer_state
from floe.metadata.coordinators.objects import ObjectHome
from floe.metadata.vnode import Vnode
from floe.model.errors import FloeError
from floe.storage.objects.blocking_files import BlockingFiles
from floe.storage.objects.retrying import RetryingObjects
from floe.testing.sim_store import GatedKeyValue


def acknowledge_before_upload(patch):
    """A put returns at once and goes on in the background."""
    put = RetryingObjects.put
    under_way = {}

    async def background(self, key, body):
        with contextlib.suppress(FloeError):
            await put(self, key, body)

    async def put_later(self, key, body):
        if "/objects/" not in key:
            return await put(self, key, body)
        pieces = [bytes(piece) for piece in body]
        task = asyncio.get_running_loop().create_task(background(self, key, pieces))
        under_way[task] = None
        task.add_done_callback(under_way.pop)
        return None

    patch.setattr(RetryingObjects, "put", put_later)


def acknowledge_before_commit(patch):
    """A transaction returns when it is decided, not when it is durable."""
    accept = Vnode._accept

    def accept_and_go_on(self, transaction):
        durable = accept(self, transaction)
        if durable is not None:
            durable.add_done_callback(lambda future: future.cancelled() or future.exception())

    patch.setattr(Vnode, "_accept", accept_and_go_on)


def no_sync_of_files(patch):
    """An object is named before anything of it is synced."""

    publish = BlockingFiles.publish

    def publish_unsynced(self, file, key):
        if "/objects/" not in key:
            publish(self, file, key)
            return
        self._disk.make_folders(key.rpartition("/")[0])
        self._disk.publish(file, key)

    patch.setattr(BlockingFiles, "publish", publish_unsynced)


def no_sync_of_metadata(patch):
    """Group commits are acknowledged unsynced."""
    patch.setattr(GatedKeyValue, "sync", lambda self: None)


def no_sequence_check(patch):
    """Every batch of an idempotent producer is taken."""
    patch.setattr(producer_state, "judge", lambda *_: producer_state.ACCEPTED)


def delete_without_asking_holders(patch):
    """The close of a bucket takes every object for an orphan."""
    finish = ObjectHome.finish_close

    async def finish_with_no_holders(self, bucket, held):
        await finish(self, bucket, {})

    patch.setattr(ObjectHome, "finish_close", finish_with_no_holders)


MUTATIONS = {
    function.__name__: function
    for function in (
        acknowledge_before_upload,
        acknowledge_before_commit,
        no_sync_of_files,
        no_sync_of_metadata,
        no_sequence_check,
        delete_without_asking_holders,
    )
}


@pytest.fixture
def mutate():
    """A block in which the broker is broken, by the name of a mutation."""

    @contextlib.contextmanager
    def broken(name):
        with pytest.MonkeyPatch.context() as patch:
            MUTATIONS[name](patch)
            yield

    return broken


@pytest.fixture
def mutations():
    """The names of all mutations."""
    return tuple(MUTATIONS)
