"""Encoded answers that stay right until a topic changes."""

from floe.kafka.call import Pieces

_ENTRIES_MAX = 256
_KEY_BYTES_MAX = 8 << 10
_BYTES_MAX = 16 << 20

Key = tuple[int, bytes]


class KeptAnswers:
    """Bodies by version and request bytes; forgotten when the directory's version moves, and when full."""

    __slots__ = ("_bodies", "_bytes", "_version")

    def __init__(self) -> None:
        self._bodies: dict[Key, Pieces] = {}
        self._bytes = 0
        self._version = -1

    def get(self, directory_version: int, key: Key) -> Pieces | None:
        """What was kept at this version of the directory."""
        if directory_version != self._version:
            self._forget()
            self._version = directory_version
        return self._bodies.get(key)

    def keep(self, key: Key, body: Pieces) -> None:
        """Keep an answer made at the version that `get` was last asked for."""
        size = sum(map(len, body)) + len(key[1])
        if len(key[1]) > _KEY_BYTES_MAX or size > _BYTES_MAX:
            return
        if len(self._bodies) >= _ENTRIES_MAX or self._bytes + size > _BYTES_MAX:
            self._forget()
        self._bodies[key] = body
        self._bytes += size

    def _forget(self) -> None:
        self._bodies.clear()
        self._bytes = 0
