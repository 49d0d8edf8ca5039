"""Which object keys are allowed, and the arithmetic of bodies; one rule for every adapter.

A key is one or more parts joined by slashes. No part is empty, starts with a dot, holds a control character
or a backslash, or is longer than 255 bytes; the whole is at most 900 bytes. So every key is a safe relative
path, and an adapter may use names that start with a dot for itself. A key that is another key's folder (`a`
and `a/b`) is the caller's mistake: object stores take it, file systems cannot.
"""

import re
from collections.abc import Sequence

from floe.model.errors import Corrupt
from floe.storage.objects.port import Body

KEY_BYTES_MAX = 900  # S3 takes 1,024; the rest is left to the store's own prefix
_PART_BYTES_MAX = 255
_PLAIN = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*\Z")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


def check_key(key: str) -> str:
    """The key itself; raises ValueError, since a bad key is a bug of the caller."""
    if len(key) <= _PART_BYTES_MAX and _PLAIN.match(key):
        return key
    if len(key.encode()) > KEY_BYTES_MAX:
        raise ValueError(f"object key is too long. key={key[:100]!r}")
    if _FORBIDDEN.search(key):
        raise ValueError(f"object key holds a forbidden character. key={key!r}")
    for part in key.split("/"):
        if not part or part.startswith(".") or len(part.encode()) > _PART_BYTES_MAX:
            raise ValueError(f"object key has a bad part. key={key!r} part={part!r}")
    return key


def body_size(body: Body) -> int:
    """Bytes of a body, whatever the item size of its memoryviews."""
    return sum(piece.nbytes if isinstance(piece, memoryview) else len(piece) for piece in body)


def check_spans(key: str, spans: Sequence[tuple[int, int]], object_size: int) -> None:
    """Raises `Corrupt` when a span reaches past the end of its object."""
    for position, size in spans:
        if position + size > object_size:
            raise past_end(key, position, size, object_size)


def past_end(key: str, position: int, size: int, object_size: int | None = None) -> Corrupt:
    known = "" if object_size is None else f" object_size={object_size}"
    return Corrupt(f"the range ends past its object. key={key} position={position} size={size}{known}")


def check_span(position: int, size: int) -> None:
    if position < 0 or size < 0:
        raise ValueError(f"a span cannot be negative. position={position} size={size}")
