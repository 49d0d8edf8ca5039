"""How a cluster comes to be: a create-only PUT of `cluster.json` at the root of the object store.

The id is first made durable with the metadata, then put; whoever finds another id there must not go on,
because metadata and objects would not belong together. A crash between the two is made good by the next
start.
"""

import json
import uuid
from base64 import urlsafe_b64encode
from random import Random

from floe.model.errors import Corrupt, FloeError
from floe.server.data_folder import DataFolder
from floe.server.errors import CannotStart
from floe.storage.objects.port import AlreadyExists, ObjectNotFound, Objects

KEY = "cluster.json"
_VERSION = 1


async def join_cluster(objects: Objects, folder: DataFolder | None, random: Random) -> str:
    """The id of the cluster that metadata and objects belong to; both are new, or both know it already.

    Without a folder the metadata lives as long as the objects do, so the objects' word is enough.
    """
    try:
        if folder is None:
            return await _found(objects) or await _put(objects, _fresh_id(random))
        return await _join_with_folder(objects, folder, random)
    except CannotStart:
        raise
    except FloeError as error:
        raise CannotStart(
            f"the object store cannot be used: {error}", hint="check --store and the store's credentials"
        ) from error


async def _join_with_folder(objects: Objects, folder: DataFolder, random: Random) -> str:
    own = folder.cluster_id()
    found = await _found(objects)
    if own is None:
        if found is not None:
            raise CannotStart(
                f"the object store belongs to cluster {found}, whose metadata is not in {folder.path}",
                hint="start with that cluster's data folder, or give --store an unused prefix",
            )
        own = _fresh_id(random)
        folder.set_cluster_id(own)
    joined = found or await _put(objects, own)
    if joined != own:
        raise CannotStart(
            f"the data folder {folder.path} belongs to cluster {own}, the object store to {joined}",
            hint="--data and --store must be of the same cluster",
        )
    return own


async def _found(objects: Objects) -> str | None:
    try:
        content = await objects.get(KEY)
    except ObjectNotFound:
        return None
    try:
        facts = json.loads(content)
        version, cluster_id = facts["version"], str(facts["cluster_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{KEY} in the object store is not readable") from error
    if version != _VERSION:
        raise CannotStart(f"the object store has format {version}", hint="use a newer Floe")
    return cluster_id


async def _put(objects: Objects, cluster_id: str) -> str:
    content = json.dumps({"version": _VERSION, "cluster_id": cluster_id}).encode()
    try:
        await objects.put(KEY, [content])
    except AlreadyExists:
        return await _found(objects) or cluster_id
    return cluster_id


def _fresh_id(random: Random) -> str:
    """As Kafka writes cluster ids: a random UUID in 22 letters; none begins with a dash."""
    while True:
        made = uuid.UUID(bytes=random.randbytes(16), version=4)
        text = urlsafe_b64encode(made.bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
