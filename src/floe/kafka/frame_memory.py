"""Memory for one request that is received in several pieces.

`bytearray(n)` fills its memory with zeros that the socket overwrites at once; for a 1 MiB request that
costs as much as receiving it. CPython's own constructor leaves the memory as it is when it is given no
source.

Invariant: nobody reads a frame before all of it was received, so old memory is never seen.
"""

import ctypes
import sys
from collections.abc import Callable

_FILLING_IS_CHEAPER_BYTES = 64 << 10  # below this the call through ctypes costs more than the zeros


def _unfilled() -> Callable[[int], bytearray]:
    """CPython's constructor without a source, or the plain one elsewhere."""
    if sys.implementation.name != "cpython":
        return bytearray
    constructor = ctypes.pythonapi.PyByteArray_FromStringAndSize
    constructor.restype = ctypes.py_object
    constructor.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)

    def make(size: int) -> bytearray:
        made = constructor(None, size)
        assert isinstance(made, bytearray)
        return made

    return make


_make_unfilled = _unfilled()


def frame_memory(size: int) -> memoryview:
    """A writable view of `size` bytes whose content is undefined."""
    return memoryview(bytearray(size) if size < _FILLING_IS_CHEAPER_BYTES else _make_unfilled(size))
