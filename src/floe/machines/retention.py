"""Retention: which rows at the front of a range are due, and when the next one can be.

A row's age counts from the lesser of its greatest timestamp and the time of its commit, so that a bogus
future timestamp keeps nothing for ever; a row without timestamps counts from its commit. By size, the first
row goes when the range still holds at least its limit without it. Only rows are judged, so retention never
passes the log end.
"""

from typing import NamedTuple

UNLIMITED = -1
NEVER = -1
FAR_FUTURE_MS = 1 << 62  # keeps sums of configured times within 63 bits


class RangeLimits(NamedTuple):
    """A range's limits; -1 is no limit."""

    retention_ms: int = UNLIMITED
    retention_bytes: int = UNLIMITED


def row_time(max_timestamp: int, committed_at: int) -> int:
    """The time from which a row's age counts."""
    if max_timestamp < 0:
        return committed_at
    return min(max_timestamp, committed_at)


def is_over_size(limits: RangeLimits, stored_bytes: int, head_size: int) -> bool:
    """Whether the range holds its limit even without its first row."""
    return 0 <= limits.retention_bytes <= stored_bytes - head_size


def is_due(limits: RangeLimits, stored_bytes: int, head_time: int, head_size: int, now_ms: int) -> bool:
    """Whether the first row of a range is to be dropped now."""
    if 0 <= limits.retention_ms <= now_ms - head_time:
        return True
    return is_over_size(limits, stored_bytes, head_size)


def due_at(limits: RangeLimits, stored_bytes: int, head_time: int, head_size: int, now_ms: int) -> int:
    """When the first row of a range is to be dropped, as far as is known now; `NEVER` without a reason."""
    by_time = min(head_time + limits.retention_ms, FAR_FUTURE_MS) if limits.retention_ms >= 0 else NEVER
    if is_over_size(limits, stored_bytes, head_size):
        return now_ms if by_time == NEVER else min(now_ms, by_time)
    return by_time
