"""The words in which messages are described: a class per struct, an annotated attribute per field.

A field's annotation gives its type on the wire and the versions that carry it:

    class TopicProduceData(Struct):
        name: Annotated[String, until(12)] = ""
        topic_id: Annotated[TopicUuid, since(13)] = ZERO_TOPIC_ID
        partition_data: list[PartitionProduceData] = []

Rules that readers, writers and handlers rely on:

- Attributes stand in the order of the wire, tagged fields after all others.
- One class serves every version. A field that a version does not carry holds its default when read and is
  ignored when written.
- `X | None` may be null on the wire, from `null_since(n)` on where that is said. For a tagged struct None
  means that the field is absent.
- A struct has every default, so that handlers name only what they set; an empty list default is copied per
  instance.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec

from floe.model.ids import TopicId

Buffer = bytes | bytearray | memoryview


class Struct(msgspec.Struct, gc=False):
    """Base of every message and struct. Instances form no cycles, so the collector need not follow them."""


class Records(msgspec.Struct, gc=False):
    """Record batches to be sent without joining them: `size` is the sum of the pieces' sizes."""

    size: int
    pieces: list[Buffer]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A field of fixed width; `code` is its struct format."""

    code: str


@dataclass(frozen=True, slots=True)
class Text:
    """A UTF-8 string."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Opaque bytes, read as a copy because they outlive the request."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Record batches: read as a view of the request, written as pieces of the answer, never copied."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The first and last version that carry a field."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NullSince:
    """The first version in which the field may be null."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    """The field travels in the tagged section under this number, and only when it is not the default."""

    number: int


@dataclass(frozen=True, slots=True)
class Rare:
    """Null or empty in nearly every message; the writer has a short path for that."""


LAST_VERSION = 32767

Bool = Annotated[bool, Fixed("?")]
Int8 = Annotated[int, Fixed("b")]
Int16 = Annotated[int, Fixed("h")]
Int32 = Annotated[int, Fixed("i")]
Int64 = Annotated[int, Fixed("q")]
Uuid = Annotated[bytes, Fixed("16s")]
TopicUuid = Annotated[TopicId, Fixed("16s")]
String = Annotated[str, Text()]
Bytes = Annotated[bytes, Blob()]
ReceivedRecords = Annotated[memoryview | None, Batches()]
SentRecords = Annotated[Records | bytes | memoryview | None, Batches()]

RARE = Rare()


def since(first: int) -> Versions:
    """In this version and all later ones."""
    return Versions(first, LAST_VERSION)


def until(last: int) -> Versions:
    """In this version and all earlier ones."""
    return Versions(0, last)


def between(first: int, last: int) -> Versions:
    """In these versions only."""
    return Versions(first, last)


def null_since(version: int) -> NullSince:
    """Never null before this version."""
    return NullSince(version)


def tag(number: int) -> Tag:
    """A tagged field."""
    return Tag(number)
