"""Writes, for a message and a version, the function that reads it: straight-line code without dispatch.

The function takes (b, o, z): a view, the position to begin at and the view's end; it returns the message and
the position after it. Fields of fixed width, and the length or first length byte of what follows them, are
taken by one `unpack_from`. Every length and count is compared with what is left of the view before anything
of that size is made. What is wrong raises Malformed, IndexError, struct.error or UnicodeDecodeError.
"""

from itertools import starmap
from struct import calcsize, unpack_from

from floe.wire.kafka.layout import Array, Field, Kind, Layout, Nested, layout, smallest
from floe.wire.kafka.schema.fields import Batches, Blob, Fixed, Struct, Text
from floe.wire.kafka.source import Source
from floe.wire.kafka.varint import Malformed, rest, skip_tags, tag_bounds, tag_count

_BULK_MIN = 4  # elements from which reading a whole array at once pays


def reader_source(struct: type[Struct], version: int, flexible: bool) -> Source:
    """The source of the reader of one version of a message."""
    source = Source(f"read_{struct.__name__}_{version}")
    for value in (Malformed, rest, skip_tags, tag_bounds, tag_count, starmap, unpack_from):
        source.use(value.__name__, value)
    with source.block(f"def {source.name}(b, o, z):"):
        message = _Reader(source, version, flexible).struct(layout(struct, version))
        source.emit(f"return {message}, o")
    return source


class _Reader:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self._source = source
        self._emit = source.emit
        self._block = source.block
        self._fresh = source.fresh
        self._version = version
        self._flexible = flexible
        self._run: list[tuple[str, str]] = []  # fixed-width codes and their variables, not yet read

    def struct(self, plan: Layout) -> str:
        """Reads a struct; returns the expression that makes it."""
        variables = {field.name: self._fresh("v") for field in plan.fields if field.present}
        for field in plan.plain:
            self._value(field.kind, field.nullable, variables[field.name], field.name)
        if self._flexible:
            self._tags(plan.tagged, variables)
        self._flush()
        arguments = [variables.get(field.name) or self._default(field) for field in plan.fields]
        return f"{self._source.use(plan.struct.__name__, plan.struct)}({', '.join(arguments)})"

    def _default(self, field: Field) -> str:
        return repr(field.default)

    def _value(self, kind: Kind, nullable: bool, target: str, name: str) -> None:
        match kind:
            case Fixed(code):
                self._run.append((code, target))
            case Text() | Blob() | Batches():
                self._span(kind, nullable, target, name)
            case Array(element):
                self._array(element, nullable, target, name)
            case Nested(struct):
                self._nested(struct, nullable, target)

    def _flush(self) -> None:
        """Reads the fields gathered so far."""
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        if codes == "B":
            self._emit(f"{self._run[0][1]} = b[o]")
        else:
            unpack = self._source.method(codes, "unpack_from")
            self._emit(f"{''.join(f'{target}, ' for _, target in self._run)}= {unpack}(b, o)")
        self._emit(f"o += {calcsize('>' + codes)}")
        self._run.clear()

    def _length(self, kind: Kind) -> str:
        """Reads a length or count as the version sends it; a compact one is one too high."""
        length = self._fresh("n")
        code = "B" if self._flexible else "h" if isinstance(kind, Text) else "i"
        self._run.append((code, length))
        self._flush()
        if self._flexible:
            with self._block(f"if {length} > 127:"):
                if isinstance(kind, Batches):
                    self._long_length(length)
                else:
                    self._emit(f"{length}, o = rest(b, o, {length})")
        return length

    def _long_length(self, length: str) -> None:
        """Lengths of two and three bytes without a call: records nearly always have one of these."""
        self._emit("c = b[o]")
        with self._block("if c < 128:"):
            self._emit(f"{length} += c - 1 << 7")
            self._emit("o += 1")
        with self._block("else:"):
            self._emit("d = b[o + 1]")
            with self._block("if d < 128:"):
                self._emit(f"{length} += (c - 1 << 7) + (d - 1 << 14)")
                self._emit("o += 2")
            with self._block("else:"):
                self._emit(f"{length}, o = rest(b, o, {length})")

    def _span(self, kind: Kind, nullable: bool, target: str, name: str) -> None:
        length = self._length(kind)
        if nullable:
            with self._block(f"if {length} {'== 0' if self._flexible else '< 0'}:"):
                self._emit(f"{target} = None")
            with self._block("else:"):
                self._bytes(kind, length, target, name)
        else:
            self._bytes(kind, length, target, name)

    def _bytes(self, kind: Kind, length: str, target: str, name: str) -> None:
        end = self._fresh("e")
        self._emit(f"{end} = o + {length}{' - 1' if self._flexible else ''}")
        self._refuse_unless(f"o <= {end} <= z", name)
        match kind:
            case Text():
                self._emit(f"{target} = b[o:{end}].tobytes().decode()")
            case Blob():
                self._emit(f"{target} = bytes(b[o:{end}])")
            case _:
                self._emit(f"{target} = b[o:{end}]")
        self._emit(f"o = {end}")

    def _refuse_unless(self, condition: str, name: str) -> None:
        with self._block(f"if not {condition}:"):
            self._emit(f"raise Malformed('{name}')")

    def _nested(self, struct: type[Struct], nullable: bool, target: str) -> None:
        plan = layout(struct, self._version)
        if not nullable:
            self._emit(f"{target} = {self.struct(plan)}")
            return
        flag = self._fresh("n")
        self._run.append(("b", flag))
        self._flush()
        with self._block(f"if {flag} < 0:"):
            self._emit(f"{target} = None")
        with self._block("else:"):
            self._emit(f"{target} = {self.struct(plan)}")

    def _array(self, element: Kind, nullable: bool, target: str, name: str) -> None:
        count = self._length(Array(element))
        if self._flexible:
            self._emit(f"{count} -= 1")
        size = smallest(element, self._version, self._flexible)
        if not nullable:
            self._refuse_unless(f"0 <= {count} * {size} <= z - o", name)
            self._elements(element, count, target, name)
            return
        with self._block(f"if {count} < 0:"):
            self._emit(f"{target} = None")
        with self._block("else:"):
            self._refuse_unless(f"{count} * {size} <= z - o", name)
            self._elements(element, count, target, name)

    def _elements(self, element: Kind, count: str, target: str, name: str) -> None:
        match element:
            case Fixed(code) if len(code) == 1:
                self._emit(f"{target} = list(unpack_from(f'>{{{count}}}{code}', b, o))")
                self._emit(f"o += {count} * {calcsize('>' + code)}")
            case Nested(struct):
                self._structs(struct, count, target)
            case _:
                value = self._fresh("v")
                self._emit(f"{target} = []")
                with self._block(f"for _ in range({count}):"):
                    self._value(element, False, value, name)
                    self._flush()
                    self._emit(f"{target}.append({value})")

    def _structs(self, struct: type[Struct], count: str, target: str) -> None:
        plan = layout(struct, self._version)
        codes = plan.fixed_prefix
        if codes is None:
            self._each(plan, count, target)
            return
        # Elements of one width: the whole array is read at once, if every tagged section is empty.
        codes += "x" * self._flexible
        size = calcsize(">" + codes)
        end = self._fresh("e")
        self._emit(f"{end} = o + {count} * {size}")
        condition = f"{count} >= {_BULK_MIN}"
        if self._flexible:
            condition += f" and bytes(b[o + {size - 1}:{end}:{size}]).count(0) == {count}"
        with self._block(f"if {condition}:"):
            make = self._source.use(plan.struct.__name__, plan.struct)
            unpack = self._source.method(codes, "iter_unpack")
            self._emit(f"{target} = list(starmap({make}, {unpack}(b[o:{end}])))")
            self._emit(f"o = {end}")
        with self._block("else:"):
            self._each(plan, count, target)

    def _each(self, plan: Layout, count: str, target: str) -> None:
        self._emit(f"{target} = []")
        with self._block(f"for _ in range({count}):"):
            self._emit(f"{target}.append({self.struct(plan)})")

    def _tags(self, fields: tuple[Field, ...], variables: dict[str, str]) -> None:
        """Reads the tagged section that ends a struct; a field that is not there has its default."""
        first = self._fresh("t")
        self._run.append(("B", first))
        self._flush()
        for field in fields:
            self._emit(f"{variables[field.name]} = {self._default(field)}")
        with self._block(f"if {first}:"):
            if fields:
                self._known_tags(fields, variables, first)
            else:
                self._emit(f"o = skip_tags(b, o, z, {first})")

    def _known_tags(self, fields: tuple[Field, ...], variables: dict[str, str], first: str) -> None:
        count, tag, end = self._fresh("n"), self._fresh("t"), self._fresh("e")
        self._emit(f"{count}, o = tag_count(b, o, z, {first})")
        with self._block(f"for _ in range({count}):"):
            self._emit(f"{tag}, o, {end} = tag_bounds(b, o, z)")
            for position, field in enumerate(fields):
                with self._block(f"{'elif' if position else 'if'} {tag} == {field.tag}:"):
                    nullable = field.nullable and not isinstance(field.kind, Nested)
                    self._value(field.kind, nullable, variables[field.name], field.name)
                    self._flush()
                    self._refuse_unless(f"o == {end}", field.name)
            with self._block("else:"):
                self._emit(f"o = {end}")
