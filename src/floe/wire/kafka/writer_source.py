"""Writes, for a message and a version, the function that encodes it: straight-line code without dispatch.

The function takes (m, w, parts): the message, the bytearray to append to and the list of finished pieces; it
returns the bytearray that is open at the end. Record batches are never copied: at a records field the open
bytearray is finished, the batches' pieces follow it, and a new bytearray is opened. Fields of fixed width,
the one-byte lengths after them and fields that are nearly always empty are packed by one call.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import pack

from floe.wire.kafka.layout import Array, Field, Kind, Layout, Nested, layout
from floe.wire.kafka.schema.fields import Batches, Blob, Fixed, Records, Struct, Text
from floe.wire.kafka.source import Source
from floe.wire.kafka.varint import encoded, tag_section


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tagged section that ends every struct of a flexible version."""

    fields: tuple[Field, ...]


_Part = Field | _Tags


def writer_source(struct: type[Struct], version: int, flexible: bool) -> Source:
    """The source of the writer of one version of a message."""
    source = Source(f"write_{struct.__name__}_{version}")
    for value in (Records, encoded, pack, tag_section):
        source.use(value.__name__, value)
    with source.block(f"def {source.name}(m, w, parts):"):
        _Writer(source, version, flexible).struct(layout(struct, version), "m")
        source.emit("return w")
    return source


def _groups(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Parts that one `pack` can cover when the rare ones are empty; the last may be of any width."""
    group: list[_Part] = []
    for part in parts:
        group.append(part)
        if isinstance(part, Field) and not part.rare and not isinstance(part.kind, Fixed):
            yield group
            group = []
    if group:
        yield group


def _is_rare(part: _Part) -> bool:
    return bool(part.fields) if isinstance(part, _Tags) else part.rare


def _absent(part: _Part, owner: str) -> list[str]:
    """Conditions under which a rare part is null, empty or its default."""
    fields = part.fields if isinstance(part, _Tags) else (part,)
    return [_is_default(field, f"{owner}.{field.name}") for field in fields]


def _is_default(field: Field, value: str) -> str:
    if isinstance(field.kind, Array):
        return f"not {value}"
    return f"{value} is None" if field.default is None else f"{value} == {field.default!r}"


class _Writer:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self._source = source
        self._emit = source.emit
        self._block = source.block
        self._fresh = source.fresh
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []  # fixed-width codes and their values, not yet written

    def struct(self, plan: Layout, owner: str) -> None:
        """Writes the struct that the variable `owner` holds."""
        parts: list[_Part] = list(plan.plain)
        if self._flexible:
            parts.append(_Tags(plan.tagged))
        for group in _groups(parts):
            absent = [condition for part in group if _is_rare(part) for condition in _absent(part, owner)]
            if not absent:
                self._group(group, owner, short=False)
                continue
            with self._block(f"if {' and '.join(absent)}:"):
                self._group(group, owner, short=True)
                self._flush()
            with self._block("else:"):
                self._group(group, owner, short=False)
                self._flush()
        self._flush()

    def _group(self, group: list[_Part], owner: str, *, short: bool) -> None:
        for part in group:
            if isinstance(part, _Tags):
                if short or not part.fields:
                    self._run.append(("B", "0"))
                else:
                    self._tags(part.fields, owner)
            elif short and part.rare:
                self._empty(part, f"{owner}.{part.name}")
            else:
                self._value(part.kind, part.nullable, f"{owner}.{part.name}")

    def _empty(self, field: Field, value: str) -> None:
        """A rare field without a value: null, or an empty list."""
        code, null, empty = self._length_form(field.kind)
        if isinstance(field.kind, Array) and not field.nullable:
            self._run.append((code, str(empty)))
        elif isinstance(field.kind, Array):
            self._run.append((code, f"{null} if {value} is None else {empty}"))
        else:
            self._run.append((code, str(null)))

    def _length_form(self, kind: Kind) -> tuple[str, int, int]:
        """How lengths are sent: the code, and what stands for null and for none."""
        if self._flexible:
            return "B", 0, 1
        return "h" if isinstance(kind, Text) else "i", -1, 0

    def _flush(self) -> None:
        if self._run:
            self._emit(f"w += {self._packed()}")
            self._run.clear()

    def _packed(self) -> str:
        codes = "".join(code for code, _ in self._run)
        values = [value for _, value in self._run]
        if all(value.lstrip("-").isdigit() for value in values):
            return repr(pack(">" + codes, *map(int, values)))
        return f"{self._source.method(codes, 'pack')}({', '.join(values)})"

    def _length(self, kind: Kind, length: str) -> None:
        """Writes a length, in the form of the version, along with the fields before it."""
        code, _, _ = self._length_form(kind)
        before = f"{self._packed()} + " if self._run else ""
        self._run.append((code, length))
        if not self._flexible:
            self._flush()
            return
        with self._block(f"if {length} < 128:"):
            self._emit(f"w += {self._packed()}" if before else f"w.append({length})")
        if before and isinstance(kind, Batches):
            self._long_lengths(length)
        with self._block("else:"):
            self._emit(f"w += {before}encoded({length})")
        self._run.clear()

    def _long_lengths(self, length: str) -> None:
        """Lengths of two and three bytes without a call: records nearly always have one of these."""
        fields = self._run[:-1]
        low, middle = f"{length} & 127 | 128", f"{length} >> 7 & 127 | 128"
        for bound, values in (
            (1 << 14, (low, f"{length} >> 7")),
            (1 << 21, (low, middle, f"{length} >> 14")),
        ):
            self._run = fields + [("B", value) for value in values]
            with self._block(f"elif {length} < {bound}:"):
                self._emit(f"w += {self._packed()}")

    def _value(self, kind: Kind, nullable: bool, value: str) -> None:
        match kind:
            case Fixed(code):
                self._run.append((code, value))
            case Batches():
                self._batches(value)
            case Nested(struct):
                self._nested(struct, nullable, value)
            case _:
                self._sized(kind, nullable, value)

    def _sized(self, kind: Text | Blob | Array, nullable: bool, value: str) -> None:
        """A string, bytes or list, which may be null."""
        held = self._fresh("x")
        self._emit(f"{held} = {value}")
        if not nullable:
            self._content(kind, held)
            return
        self._flush()
        code, null, _ = self._length_form(kind)
        with self._block(f"if {held} is None:"):
            self._emit(f"w += {pack('>' + code, null)!r}")
        with self._block("else:"):
            self._content(kind, held)
            self._flush()

    def _content(self, kind: Text | Blob | Array, held: str) -> None:
        length = self._fresh("n")
        if isinstance(kind, Text):
            self._emit(f"{held} = {held}.encode()")
        self._emit(f"{length} = len({held}){' + 1' if self._flexible else ''}")
        self._length(kind, length)
        if isinstance(kind, Array):
            self._elements(kind.element, held)
        else:
            self._emit(f"w += {held}")

    def _elements(self, element: Kind, held: str) -> None:
        if isinstance(element, Fixed) and len(element.code) == 1:
            self._emit(f"w += pack(f'>{{len({held})}}{element.code}', *{held})")
            return
        item = self._fresh("x")
        with self._block(f"for {item} in {held}:"):
            if isinstance(element, Nested):
                self.struct(layout(element.struct, self._version), item)
            else:
                self._value(element, False, item)
            self._flush()

    def _batches(self, value: str) -> None:
        """Records end the open piece; their own pieces follow it untouched."""
        held, length, pieces = self._fresh("x"), self._fresh("n"), self._fresh("p")
        more = " + 1" if self._flexible else ""
        self._emit(f"{held} = {value}")
        with self._block(f"if {held}.__class__ is Records:"):
            self._emit(f"{length} = {held}.size{more}")
            self._emit(f"{pieces} = {held}.pieces")
        with self._block(f"elif {held} is None:"):
            self._emit(f"{length} = {0 if self._flexible else -1}")
            self._emit(f"{pieces} = None")
        with self._block("else:"):
            self._emit(f"{length} = len({held}){more}")
            self._emit(f"{pieces} = ({held},)")
        self._length(Batches(), length)
        with self._block(f"if {pieces}:"):
            self._emit("parts.append(w)")
            self._emit(f"parts += {pieces}")
            self._emit("w = bytearray()")

    def _nested(self, struct: type[Struct], nullable: bool, value: str) -> None:
        held = self._fresh("x")
        self._emit(f"{held} = {value}")
        plan = layout(struct, self._version)
        if not nullable:
            self.struct(plan, held)
            return
        self._flush()
        with self._block(f"if {held} is None:"):
            self._emit(f"w += {pack('>b', -1)!r}")
        with self._block("else:"):
            self._emit(f"w += {pack('>b', 1)!r}")
            self.struct(plan, held)

    def _tags(self, fields: tuple[Field, ...], owner: str) -> None:
        """A tagged section in which some field is not its default."""
        self._flush()
        tags, outer = self._fresh("t"), self._fresh("w")
        self._emit(f"{tags} = []")
        self._emit(f"{outer} = w")
        for field in fields:
            value = f"{owner}.{field.name}"
            with self._block(f"if not ({_is_default(field, value)}):"):
                self._emit("w = bytearray()")
                nullable = field.nullable and not isinstance(field.kind, Nested)
                self._value(field.kind, nullable, value)
                self._flush()
                self._emit(f"{tags}.append(({field.tag}, w))")
        self._emit(f"w = {outer}")
        self._emit(f"w += tag_section({tags})")
