"""The object store as a folder of files, durable against power cuts.

The asynchronous shell of `blocking_files`: each call is one hop to a small pool of threads of its own, so
that a slow disk cannot exhaust the pool that others use.

A cancelled call goes on in its thread to its end; its outcome is then unknown to the caller, as after any
`Unavailable`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from floe.model.errors import Unavailable
from floe.storage.disk import Disk, File
from floe.storage.objects.blocking_files import BlockingFiles
from floe.storage.objects.keys import check_key, check_span
from floe.storage.objects.port import Body, Buffer, ObjectInfo, ObjectWriter
from floe.storage.quick_thread import QuickThreads

THREADS_DEFAULT = 4
_DELETE_PAGE = 256

R = TypeVar("R")


class FileObjects:
    """Objects as files of `disk`.

    `drop_reads` keeps what is read out of the page cache too: for readers far behind, who read once.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        threads: int = THREADS_DEFAULT,
        executor: Executor | None = None,
        drop_reads: bool = False,
    ) -> None:
        self._disk = disk
        self._files = BlockingFiles(disk, drop_reads=drop_reads)
        self._executor = executor or QuickThreads("floe-files", threads)

    async def put(self, key: str, body: Body) -> None:
        await self._run(self._files.put, check_key(key), body)

    async def get(self, key: str) -> bytes:
        return await self._run(self._files.get, check_key(key))

    async def get_range(self, key: str, position: int, size: int) -> memoryview:
        return (await self.get_ranges(key, [(position, size)]))[0]

    async def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        for position, size in spans:
            check_span(position, size)
        return await self._run(self._files.get_ranges, check_key(key), spans)

    async def stream(self, key: str, position: int, size: int, chunk_bytes: int) -> AsyncIterator[memoryview]:
        check_span(position, size)
        file = await self._run(self._files.open, check_key(key))
        try:
            end = position + size
            for start in range(position, end, chunk_bytes):
                part = min(chunk_bytes, end - start)
                yield await self._run(self._files.read, file, key, start, part)
        finally:
            file.close()

    async def head(self, key: str) -> ObjectInfo:
        return await self._run(self._files.head, check_key(key))

    async def delete(self, keys: Sequence[str]) -> dict[str, str]:
        failures: dict[str, str] = {}
        for first in range(0, len(keys), _DELETE_PAGE):
            page = [check_key(key) for key in keys[first : first + _DELETE_PAGE]]
            failures.update(await self._run(self._files.delete, page))
        return failures

    async def list(self, prefix: str, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        keys = self._files.walk(prefix, start_after)
        while page := await self._run(self._files.list_page, keys):
            for info in page:
                yield info

    async def writer(self, key: str) -> ObjectWriter:
        file = await self._run(self._files.create, check_key(key))
        return _FileWriter(self, key, file)

    async def close(self) -> None:
        await asyncio.to_thread(self._executor.shutdown)
        self._disk.close()

    async def _run(self, function: Callable[..., R], *arguments: object) -> R:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)
        except OSError as error:
            raise Unavailable(f"file store: {error}") from error

    def _publish(self, file: File, key: str) -> None:
        try:
            self._files.publish(file, key)
        finally:
            file.close()


class _FileWriter:
    """An unnamed file that gets its name at commit."""

    def __init__(self, objects: FileObjects, key: str, file: File) -> None:
        self._objects = objects
        self._key = key
        self._file: File | None = file

    async def write(self, data: Buffer) -> None:
        await self._objects._run(self._open_file().write, [data])

    async def commit(self) -> None:
        file = self._open_file()
        self._file = None
        await self._objects._run(self._objects._publish, file, self._key)

    async def abort(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            await self._objects._run(file.close)

    def _open_file(self) -> File:
        if self._file is None:
            raise ValueError("the writer has ended")
        return self._file
