"""What one version of a struct looks like on the wire, worked out from the struct's annotations."""

from dataclasses import dataclass
from functools import cache
from struct import calcsize
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import msgspec

from floe.wire.kafka.schema.fields import (
    Batches,
    Blob,
    Fixed,
    NullSince,
    Rare,
    Struct,
    Tag,
    Text,
    Versions,
)


@dataclass(frozen=True, slots=True)
class Nested:
    """A struct within a struct."""

    struct: type[Struct]


@dataclass(frozen=True, slots=True)
class Array:
    """A list of `element`s."""

    element: "Kind"


Kind = Fixed | Text | Blob | Batches | Nested | Array


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a struct, as one version has it."""

    name: str
    kind: Kind
    present: bool
    nullable: bool
    tag: int | None
    rare: bool
    default: object  # an empty list stands for "a new list"


@dataclass(frozen=True, slots=True)
class Layout:
    """All attributes of a struct in the order of the class, and those the version carries."""

    struct: type[Struct]
    fields: tuple[Field, ...]

    @property
    def plain(self) -> tuple[Field, ...]:
        """The fields that stand one after the other, in the order of the wire."""
        return tuple(field for field in self.fields if field.present and field.tag is None)

    @property
    def tagged(self) -> tuple[Field, ...]:
        """The fields of the tagged section, by number."""
        found = [field for field in self.fields if field.present and field.tag is not None]
        return tuple(sorted(found, key=lambda field: field.tag or 0))

    @property
    def fixed_prefix(self) -> str | None:
        """The struct format of all plain fields, if each has a fixed width and all lead the class.

        Then the values of one element, in order, are the leading arguments of the class.
        """
        plain = self.plain
        if not plain or self.fields[: len(plain)] != plain:
            return None
        codes = [field.kind.code for field in plain if isinstance(field.kind, Fixed)]
        return "".join(codes) if len(codes) == len(plain) else None


@cache
def layout(struct: type[Struct], version: int) -> Layout:
    """The layout of a struct in one version."""
    hints = get_type_hints(struct, include_extras=True)
    infos = msgspec.structs.fields(struct)
    return Layout(struct, tuple(_field(info, hints[info.name], version) for info in infos))


def smallest(kind: Kind, version: int, flexible: bool) -> int:
    """The fewest bytes a value can take; bounds how many elements a buffer can hold."""
    match kind:
        case Fixed(code):
            return calcsize(">" + code)
        case Text():
            return 1 if flexible else 2
        case Blob() | Batches() | Array():
            return 1 if flexible else 4
        case Nested(struct):
            fields = layout(struct, version).plain
            sizes = (
                1 if _is_null_flag(field) else smallest(field.kind, version, flexible) for field in fields
            )
            return max(1, sum(sizes) + flexible)


def _is_null_flag(field: Field) -> bool:
    """A nullable struct is one byte when it is null."""
    return field.nullable and isinstance(field.kind, Nested)


def _field(info: msgspec.structs.FieldInfo, hint: object, version: int) -> Field:
    kind, nullable, marks = _resolve(hint)
    span = next((mark for mark in marks if isinstance(mark, Versions)), None)
    null_since = next((mark.version for mark in marks if isinstance(mark, NullSince)), 0)
    return Field(
        name=info.name,
        kind=kind,
        present=span is None or span.first <= version <= span.last,
        nullable=nullable and version >= null_since,
        tag=next((mark.number for mark in marks if isinstance(mark, Tag)), None),
        rare=any(isinstance(mark, Rare) for mark in marks),
        default=[] if info.default_factory is list else info.default,
    )


def _resolve(hint: object) -> tuple[Kind, bool, tuple[object, ...]]:
    """The kind, whether None is allowed, and what else the annotation says."""
    marks: tuple[object, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        marks = tuple(metadata)
    kind: Kind | None = next(
        (mark for mark in marks if isinstance(mark, Fixed | Text | Blob | Batches)), None
    )
    nullable = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if kind is None and nullable:
        (inner,) = (argument for argument in get_args(hint) if argument is not NoneType)
        return _resolve(inner)[0], True, marks
    return kind or _kind(hint), nullable, marks


def _kind(hint: object) -> Kind:
    if get_origin(hint) is list:
        (element,) = get_args(hint)
        return Array(_resolve(element)[0])
    assert isinstance(hint, type)
    assert issubclass(hint, Struct), f"no wire type: {hint}"
    return Nested(hint)
