"""How a broker's process treats memory: freed buffers are kept, old objects are left alone.

The C library gives freed buffers of a megabyte back to the system and asks for them again a moment later;
each round costs a page fault per 4 KiB, and with requests of 1 MB that is more than receiving them. What is
kept is memory that requests have used before, so the bounds on requests and caches bound it too.
"""

import ctypes
import gc

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_MIB = 1 << 20
KEPT_BYTES = 256 * _MIB  # free memory that is not given back: about what requests under way may hold
APART_BYTES = 32 * _MIB  # larger buffers come from the system and go back to it
PAD_BYTES = 16 * _MIB
_GC_THRESHOLDS = (50_000, 50, 50)


def keep_freed_memory() -> bool:
    """Tell the C library; False where it is not glibc. For a process of our own, before it has threads."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((_M_MMAP_THRESHOLD, APART_BYTES), (_M_TRIM_THRESHOLD, KEPT_BYTES), (_M_TOP_PAD, PAD_BYTES))
    return all(mallopt(option, value) == 1 for option, value in wanted)


def settle_objects() -> None:
    """Keep what start-up made out of every later collection, and collect rarely: a full pass over millions of
    objects is a pause of hundreds of milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
