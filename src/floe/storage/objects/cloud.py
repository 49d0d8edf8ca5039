"""Object stores of the clouds (S3, GCS, Azure and what speaks like them) through obstore.

Two clients of one bucket are used. Puts go through one that never repeats a request by itself: a repeat that
met its own first attempt would look like `AlreadyExists` and hide the unknown outcome from `retrying.py`,
which settles it. Deletes do too, lest a throttled key is repeated with its whole page. Reads and the parts of
an upload may be repeated harmlessly below us.

Conditional writes: `put` is a single request with If-None-Match (or the store's own form of it). A writer's
object is put the same way while it fits one part. Beyond that it is a multipart upload, which obstore cannot
make conditional: `commit` asks by HEAD just before it completes the upload, so two commits of one key within
that moment would both succeed, the last one winning. A broken writer aborts its upload; a killed process
leaves one that the bucket's lifecycle rule must collect.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore

from floe.model.errors import FloeError, Unavailable
from floe.storage.objects.cloud_delete import delete_many, first_line
from floe.storage.objects.keys import body_size, check_key, check_span, past_end
from floe.storage.objects.port import (
    AlreadyExists,
    Body,
    Buffer,
    Denied,
    ObjectInfo,
    ObjectNotFound,
    ObjectWriter,
)
from floe.storage.objects.spans import cut, merged

if TYPE_CHECKING:
    from obstore import AsyncWritableFile, ObjectMeta

PART_BYTES = 8 << 20  # at most 10,000 parts: 80 GiB an object
_PARTS_IN_FLIGHT_MAX = 4
_READS_IN_FLIGHT_MAX = 8
_LIST_PAGE = 1000

# What obstore raises: its own tree, and FileNotFoundError for a missing key.
_ERRORS = (BaseError, OSError)


class CloudObjects:
    """`store` must not repeat requests; `repeating` is the same bucket through a client that does."""

    def __init__(
        self, store: ObjectStore, *, repeating: ObjectStore | None = None, part_bytes: int = PART_BYTES
    ) -> None:
        self._store = store
        self._repeating = repeating or store
        self._part_bytes = part_bytes

    async def put(self, key: str, body: Body) -> None:
        check_key(key)
        try:
            await obstore.put_async(self._store, key, list(body), mode="create", use_multipart=False)
        except FileNotFoundError as error:
            raise Denied(f"no such bucket: {first_line(error)}") from error
        except _ERRORS as error:
            raise _translated(error, key) from error

    async def get(self, key: str) -> bytes:
        try:
            result = await obstore.get_async(self._repeating, check_key(key))
            return bytes(await result.bytes_async())
        except _ERRORS as error:
            raise _translated(error, key) from error

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        check_key(key)
        check_span(position, size)
        return await self._get_one(key, position, size) if size else memoryview(b"")

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        check_key(key)
        for position, size in spans:
            check_span(position, size)
        # obstore's own reader of several ranges panics when one lies past the end.
        wholes = merged([span for span in spans if span[1]])
        contents: list[memoryview] = []
        for first in range(0, len(wholes), _READS_IN_FLIGHT_MAX):
            part = wholes[first : first + _READS_IN_FLIGHT_MAX]
            contents += await asyncio.gather(*(self._get_one(key, *whole) for whole in part))
        return [cut([span], wholes, contents)[0] if span[1] else memoryview(b"") for span in spans]

    async def _get_one(self, key: str, position: int, size: int) -> memoryview:
        try:
            data = await obstore.get_range_async(self._repeating, key, start=position, length=size)
        except _ERRORS as error:
            raise await self._read_error(error, key, position, size) from error
        view = memoryview(data)
        if len(view) != size:
            raise await self._read_error(None, key, position, size)
        return view

    async def _read_error(self, error: Exception | None, key: str, position: int, size: int) -> FloeError:
        """Whether a failed or short read asked for too much (`Corrupt`) or was a failure of the store."""
        if isinstance(error, FileNotFoundError | PermissionDeniedError | UnauthenticatedError):
            return _translated(error, key)
        info = await self.head(key)
        if position + size > info.size:
            return past_end(key, position, size, info.size)
        return _translated(error, key) if error else Unavailable(f"the store sent too few bytes. key={key}")

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        check_key(key)
        check_span(position, size)
        if not size:
            return
        received = 0
        try:
            result = await obstore.get_async(
                self._repeating, key, options={"range": (position, position + size)}
            )
            async for piece in result.stream(min_chunk_size=chunk_bytes):
                view = memoryview(piece)
                received += len(view)
                for start in range(0, len(view), chunk_bytes):
                    yield view[start : start + chunk_bytes]
        except _ERRORS as error:
            raise await self._read_error(error, key, position, size) from error
        if received != size:
            raise await self._read_error(None, key, position, size)

    async def head(self, key: str) -> ObjectInfo:
        try:
            return _info(await obstore.head_async(self._repeating, check_key(key)))
        except _ERRORS as error:
            raise _translated(error, key) from error

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        for key in keys:
            check_key(key)
        return await delete_many(self._store, keys)

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        # obstore lists whole folders; what the prefix says about names in the last folder is checked here.
        folder = prefix.rpartition("/")[0] or None
        try:
            pages = obstore.list(self._repeating, folder, offset=start_after or None, chunk_size=_LIST_PAGE)
            async for page in pages:
                for meta in page:
                    if meta["path"].startswith(prefix) and meta["path"] > start_after:
                        yield _info(meta)
        except _ERRORS as error:
            raise _translated(error, prefix) from error

    async def writer(self, key: str) -> ObjectWriter:
        await self.check_free(key)
        return _CloudWriter(self, key)

    async def check_free(self, key: str) -> None:
        try:
            await self.head(key)
        except ObjectNotFound:
            return
        raise AlreadyExists(f"object exists. key={key}")

    async def close(self) -> None:
        """Connections close when the clients are collected."""


class _CloudWriter:
    """Holds up to one part; beyond that the upload takes the bytes."""

    def __init__(self, objects: CloudObjects, key: str) -> None:
        self._objects = objects
        self._key = key
        self._held: list[Buffer] = []
        self._held_bytes = 0
        self._upload: AsyncWritableFile | None = None
        self._is_ended = False

    async def write(self, data: Buffer) -> None:
        self._check_open()
        try:
            if self._upload is not None:
                await self._upload.write(data)
                return
            self._held.append(bytes(data))
            self._held_bytes += body_size([data])
            if self._held_bytes > self._objects._part_bytes:
                await self._start_upload()
        except _ERRORS as error:
            raise _translated(error, self._key) from error

    async def _start_upload(self) -> None:
        self._upload = obstore.open_writer_async(
            self._objects._repeating,
            self._key,
            buffer_size=self._objects._part_bytes,
            max_concurrency=_PARTS_IN_FLIGHT_MAX,
        )
        held, self._held = self._held, []
        for piece in held:
            await self._upload.write(piece)

    async def commit(self) -> None:
        self._check_open()
        if self._upload is None:
            self._is_ended = True
            await self._objects.put(self._key, self._held)
            return
        await self._objects.check_free(self._key)
        self._is_ended = True
        try:
            await self._upload.close()
        except _ERRORS as error:
            raise _translated(error, self._key) from error

    async def abort(self) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self._held.clear()
        if self._upload is not None:
            stop = InterruptedError("the writer was aborted")
            try:
                # Leaving the block with an error is how obstore is told to abort the upload.
                await self._upload.__aexit__(type(stop), stop, None)
            except _ERRORS as error:
                raise _translated(error, self._key) from error

    def _check_open(self) -> None:
        if self._is_ended:
            raise ValueError("the writer has ended")


def _translated(error: Exception, key: str) -> FloeError:
    match error:
        case AlreadyExistsError() | PreconditionError():
            return AlreadyExists(f"object exists. key={key}")
        case FileNotFoundError():
            return ObjectNotFound(f"no such object. key={key}")
        case PermissionDeniedError() | UnauthenticatedError():
            return Denied(first_line(error))
        case _:
            return Unavailable(first_line(error))


def _info(meta: "ObjectMeta") -> ObjectInfo:
    return ObjectInfo(meta["path"], meta["size"], int(meta["last_modified"].timestamp() * 1000))
