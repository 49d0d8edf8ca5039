"""A key-value map that lives as long as its process; for tests and simulation."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from floe.model.errors import Unavailable
from floe.storage.kv.port import Pair, Write


class MemoryKeyValue:
    """Keeps the port's contract, crashes included: `crash` returns what a power cut would have left.

    Every write since the last `sync` is kept as an undo log, so the state after a crash may be any point of
    the history from the last sync to now.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        self._unsynced: list[list[Write]] = []  # per write call, what would undo it
        self._is_closed = False

    @property
    def unsynced_writes(self) -> int:
        """How many calls of `write` a crash could undo."""
        return len(self._unsynced)

    def get(self, key: bytes) -> bytes | None:
        self._check_open()
        return self._values.get(key)

    def scan(self, start: bytes, end: bytes, limit: int) -> list[Pair]:
        self._check_open()
        keys, values = self._keys, self._values
        first = bisect_left(keys, start)
        last = min(bisect_left(keys, end, lo=first), first + limit) if start < end else first
        return [(key, values[key]) for key in keys[first:last]]

    def floor(self, key: bytes, low: bytes) -> Pair | None:
        self._check_open()
        index = bisect_right(self._keys, key) - 1
        if index < 0 or self._keys[index] < low:
            return None
        found = self._keys[index]
        return found, self._values[found]

    def write(self, writes: Sequence[Write]) -> None:
        self._check_open()
        undo = [(key, self._values.get(key)) for key, _ in reversed(writes)]
        # The first write of a key must be undone last, to the value that was there before the call.
        self._apply(writes)
        self._unsynced.append(undo)

    def sync(self) -> None:
        self._check_open()
        self._unsynced.clear()

    def close(self) -> None:
        self._is_closed = True

    def crash(self, keep: int = 0) -> "MemoryKeyValue":
        """The map found after a power cut that kept `keep` of the unsynced writes; closes this one."""
        if not 0 <= keep <= len(self._unsynced):
            raise ValueError(f"cannot keep {keep} of {len(self._unsynced)} unsynced writes")
        while len(self._unsynced) > keep:
            self._apply(self._unsynced.pop())
        survivor = MemoryKeyValue()
        survivor._values = self._values
        survivor._keys = self._keys
        self._is_closed = True
        return survivor

    def _apply(self, writes: Sequence[Write]) -> None:
        keys, values = self._keys, self._values
        for key, value in writes:
            if value is None:
                if values.pop(key, None) is not None:
                    del keys[bisect_left(keys, key)]
                continue
            if key not in values:
                insort(keys, key)
            values[key] = value

    def _check_open(self) -> None:
        if self._is_closed:
            raise Unavailable("the key-value map is closed")
