"""What the file store does in its threads: every call here blocks.

A put writes an unnamed file, syncs it, drops it from the page cache (the broker keeps its own cache of hot
bytes, and in a virtual machine fresh page-cache pages cost more than the write), names it with a create-only
link and syncs the folder. The name appears after the content is durable, so no crash shows a torn object.

Invariant: when `put` or `publish` returns, content, name and every folder above are durable.
Deletes sync the folders they touched, so that a deleted object does not come back unowned.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from floe.model.errors import Corrupt
from floe.storage.disk import Disk, File
from floe.storage.objects.keys import body_size, past_end
from floe.storage.objects.port import AlreadyExists, Body, ObjectInfo, ObjectNotFound

LIST_PAGE = 1000
_PUBLISH_ATTEMPTS_MAX = 4


class BlockingFiles:
    """Objects as files of `disk`; the key is the path. Safe from several threads."""

    def __init__(self, disk: Disk, *, drop_reads: bool = False) -> None:
        self._disk = disk
        self._drop_reads = drop_reads

    def put(self, key: str, body: Body) -> None:
        file = self._disk.create_unnamed()
        try:
            size = body_size(body)
            written = file.write(body)
            if written != size:
                raise Corrupt(
                    f"the body changed while it was written. key={key} size={size} written={written}"
                )
            self.publish(file, key)
        finally:
            file.close()

    def create(self, key: str) -> File:
        """An unnamed file to be published under `key`, which must be free by now."""
        try:
            self._disk.open(key).close()
        except (FileNotFoundError, NotADirectoryError):
            return self._disk.create_unnamed()
        raise AlreadyExists(f"object exists. key={key}")

    def publish(self, file: File, key: str) -> None:
        """Make a written file durable, then its name."""
        file.sync()
        file.drop_cache()
        folder = key.rpartition("/")[0]
        for attempt in range(1, _PUBLISH_ATTEMPTS_MAX + 1):
            self._disk.make_folders(folder)
            try:
                self._disk.publish(file, key)
                break
            except FileExistsError:
                # Whoever takes this for an earlier attempt of theirs relies on the name being durable.
                self._disk.sync_folder(folder)
                raise AlreadyExists(f"object exists. key={key}") from None
            except FileNotFoundError:
                # A delete elsewhere removed the folder, empty until now, after we made sure of it.
                if attempt == _PUBLISH_ATTEMPTS_MAX:
                    raise
        try:
            self._disk.sync_folder(folder)
        except OSError:
            # A system may report a failed sync once and then call the folder clean. Without the name, the
            # next attempt writes it again, and with it the folder.
            with suppress(OSError):
                self._disk.unlink(key)
            raise

    def open(self, key: str) -> File:
        try:
            return self._disk.open(key)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectNotFound(f"no such object. key={key}") from None

    def get(self, key: str) -> bytes:
        file = self.open(key)
        try:
            return file.read(0, file.size())
        finally:
            file.close()

    def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        file = self.open(key)
        try:
            return [self.read(file, key, position, size) for position, size in spans]
        finally:
            file.close()

    def read(self, file: File, key: str, position: int, size: int) -> memoryview:
        data = file.read(position, size)
        if len(data) != size:
            raise past_end(key, position, size, file.size())
        if self._drop_reads:
            file.drop_cache()
        return memoryview(data)

    def head(self, key: str) -> ObjectInfo:
        file = self.open(key)
        try:
            return ObjectInfo(key, file.size(), self._disk.modified_ms(key))
        except FileNotFoundError:
            raise ObjectNotFound(f"no such object. key={key}") from None
        finally:
            file.close()

    def delete(self, keys: Sequence[str]) -> dict[str, str]:
        """Unlink all, then sync each folder once; a key whose unlink or sync failed is reported."""
        failures: dict[str, str] = {}
        folders: dict[str, list[str]] = {}
        for key in keys:
            try:
                self._disk.unlink(key)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                failures[key] = str(error)
                continue
            folders.setdefault(key.rpartition("/")[0], []).append(key)
        for folder, gone in folders.items():
            try:
                self._disk.sync_folder(folder)
            except OSError as error:
                failures.update(dict.fromkeys(gone, str(error)))
                continue
            self._remove_empty(folder)
        return failures

    def list_page(self, keys: Iterator[str]) -> list[ObjectInfo]:
        """The next objects of a `walk`; empty at its end."""
        page: list[ObjectInfo] = []
        for key in keys:
            try:
                page.append(self.head(key))
            except ObjectNotFound:
                continue
            if len(page) == LIST_PAGE:
                break
        return page

    def walk(self, prefix: str, start_after: str) -> Iterator[str]:
        """Keys in byte order; a folder sorts as its name plus a slash, as its keys do."""
        above = prefix.rpartition("/")[0]
        pending = [f"{above}/" if above else ""]
        while pending:
            path = pending.pop()
            if path and not path.endswith("/"):
                yield path
                continue
            children = []
            for name, is_folder in self._entries(path.rstrip("/")):
                key = f"{path}{name}/" if is_folder else f"{path}{name}"
                if not name.startswith(".") and _may_match(key, prefix, start_after):
                    children.append(key)
            children.sort(reverse=True)
            pending.extend(children)

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        try:
            return self._disk.list(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _remove_empty(self, folder: str) -> None:
        while folder:
            try:
                self._disk.remove_folder(folder)
            except OSError:
                return
            folder = folder.rpartition("/")[0]


def _may_match(key: str, prefix: str, start_after: str) -> bool:
    """Whether `key`, or, when it is a folder (ends with a slash), some key below it, may be listed."""
    if key.endswith("/"):
        in_prefix = key.startswith(prefix) or prefix.startswith(key)
        return in_prefix and (key > start_after or start_after.startswith(key))
    return key.startswith(prefix) and key > start_after
