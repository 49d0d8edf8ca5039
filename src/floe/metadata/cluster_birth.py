"""How a cluster is born, and how every later start makes sure that metadata and objects belong together.

The cluster's id is chosen once and made durable in the metadata (vnode 0) as a proposal; then `cluster.json`
is put into the object store, create-only; then the metadata notes that the cluster is born. A crash after any
of these is made good by the next start, since a proposal is put again and a put of our own id that was
there already is ours. Whoever finds another id, or a store that lacks what the metadata says was put there,
must not go on: brokers would look for objects where they are not, and fsck would take theirs for strays.
"""

from base64 import urlsafe_b64encode
from random import Random

import msgspec

from floe.metadata import keys
from floe.metadata.vnode import Transaction, Vnode
from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.observability.clock import Clock
from floe.storage.objects.port import AlreadyExists, ObjectNotFound, Objects

OBJECT_KEY = "cluster.json"
FORMAT_VERSION = 1
_ROW_KEY = keys.CLUSTER + b"identity"


class ClusterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What `cluster.json` says; fields that a later version adds are ignored."""

    cluster_id: str
    version: int = FORMAT_VERSION
    created_ms: int = 0
    vnode_count: int = 0


class _Row(msgspec.Struct, frozen=True):
    """What the metadata says: the identity, and whether it is known to be in the object store."""

    identity: ClusterIdentity
    is_born: bool


class ClusterBirth:
    """Brings metadata and object store together; `vnode` is vnode 0."""

    def __init__(
        self, vnode: Vnode, objects: Objects, *, clock: Clock, random: Random, vnode_count: int
    ) -> None:
        self._vnode = vnode
        self._objects = objects
        self._clock = clock
        self._random = random
        self._vnode_count = vnode_count

    async def join(self) -> ClusterIdentity:
        """The identity of the cluster that both belong to; `Rejected` says what is wrong if they differ."""
        row = await self._vnode.run(self._read)
        found = await self._found()
        if row is None:
            if found is not None:
                raise _refused(
                    f"the object store belongs to cluster {found.cluster_id}, whose metadata is not here: "
                    "start with that cluster's data folder, or choose an unused bucket or prefix"
                )
            row = await self._vnode.run(self._propose)
        elif found is None and row.is_born:
            raise _refused(
                f"the object store has no {OBJECT_KEY}, but cluster {row.identity.cluster_id} has written to "
                "it before: this is the wrong bucket or prefix for this data folder"
            )
        found = found or await self._put(row.identity)
        self._check(row.identity, found)
        if not row.is_born:
            await self._vnode.run(self._note_birth)
        return row.identity

    def _check(self, own: ClusterIdentity, found: ClusterIdentity) -> None:
        if found.version != FORMAT_VERSION:
            raise _refused(
                f"the object store has format {found.version}: use a version of Floe that reads it"
            )
        if found.cluster_id != own.cluster_id:
            raise _refused(
                f"the metadata belongs to cluster {own.cluster_id}, the object store to cluster "
                f"{found.cluster_id}: this is the wrong bucket or prefix for this data folder"
            )
        if found.vnode_count != self._vnode_count:
            raise _refused(
                f"the cluster was born with {found.vnode_count} vnodes and cannot be run with "
                f"{self._vnode_count}"
            )

    async def _found(self) -> ClusterIdentity | None:
        try:
            content = await self._objects.get(OBJECT_KEY)
        except ObjectNotFound:
            return None
        try:
            return msgspec.json.decode(content, type=ClusterIdentity)
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{OBJECT_KEY} in the object store cannot be read: {error}") from error

    async def _put(self, identity: ClusterIdentity) -> ClusterIdentity:
        """Put the identity; returns the one that is then there, ours or that of whoever was faster."""
        try:
            await self._objects.put(OBJECT_KEY, [msgspec.json.encode(identity)])
        except AlreadyExists:
            found = await self._found()
            if found is None:
                raise Corrupt(f"{OBJECT_KEY} was taken away from the object store") from None
            return found
        return identity

    async def _read(self, tx: Transaction) -> _Row | None:
        value = await tx.get(_ROW_KEY)
        if value is None:
            return None
        try:
            return msgspec.json.decode(value, type=_Row)
        except msgspec.MsgspecError as error:
            raise Corrupt(f"the metadata's cluster row is damaged: {error}") from error

    async def _propose(self, tx: Transaction) -> _Row:
        identity = ClusterIdentity(
            cluster_id=_fresh_id(self._random),
            created_ms=self._clock.now_ms(),
            vnode_count=self._vnode_count,
        )
        row = _Row(identity=identity, is_born=False)
        tx.put(_ROW_KEY, msgspec.json.encode(row))
        return row

    async def _note_birth(self, tx: Transaction) -> None:
        row = await self._read(tx)
        assert row is not None
        tx.put(_ROW_KEY, msgspec.json.encode(_Row(identity=row.identity, is_born=True)))


def _fresh_id(random: Random) -> str:
    """As Kafka writes cluster ids: 16 random bytes in 22 letters, of which the first is no dash."""
    while True:
        text = urlsafe_b64encode(random.randbytes(16)).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def _refused(sentence: str) -> Rejected:
    return Rejected(ErrorCode.INVALID_CONFIG, sentence)
