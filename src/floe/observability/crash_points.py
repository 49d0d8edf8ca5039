"""Places at which a test can make the process die as if by `kill -9`.

`FLOE_CRASH_AT=<point>:<n>` in the environment arms one point: the n-th time it is passed, the process sends
itself SIGKILL. Unarmed, passing a point costs one comparison.
"""

import os
import signal

VARIABLE = "FLOE_CRASH_AT"
POINTS = frozenset(
    ("before_upload", "after_upload", "before_commit", "after_commit", "before_ack", "mid_group_commit")
)


class _Armed:
    """The armed point, and how many more passes it allows."""

    __slots__ = ("left", "point")

    def __init__(self, setting: str) -> None:
        point, _, count = setting.partition(":")
        if point and point not in POINTS:
            raise ValueError(f"{VARIABLE} names no crash point: {point!r}; there are {sorted(POINTS)}")
        self.point = point
        self.left = int(count or 1)


_armed = _Armed(os.environ.get(VARIABLE, ""))


def crash_point(point: str) -> None:
    """Does nothing unless armed."""
    if point == _armed.point:
        _pass()


def _pass() -> None:
    _armed.left -= 1
    if _armed.left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
