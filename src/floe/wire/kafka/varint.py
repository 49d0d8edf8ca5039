"""Variable-length numbers and tagged sections: what generated readers and writers call.

A reader has read a number's first byte together with the fields before it, so `rest` continues from there.
"""

from floe.wire.kafka.schema.fields import Buffer


class Malformed(ValueError):
    """A received message does not follow its table; the text names the field."""


def rest(view: memoryview, position: int, first: int) -> tuple[int, int]:
    """The number whose first byte, at least 128, was `first`; and the position after it."""
    second = view[position]
    if second < 128:
        return first & 127 | second << 7, position + 1
    third = view[position + 1]
    low = first & 127 | (second & 127) << 7
    if third < 128:
        return low | third << 14, position + 2
    fourth = view[position + 2]
    low |= (third & 127) << 14
    if fourth < 128:
        return low | fourth << 21, position + 3
    fifth = view[position + 3]
    if fifth < 128:
        return low | (fourth & 127) << 21 | fifth << 28, position + 4
    raise Malformed("a number is longer than 5 bytes")


def number(view: memoryview, position: int) -> tuple[int, int]:
    """The number at a position; and the position after it."""
    first = view[position]
    position += 1
    return (first, position) if first < 128 else rest(view, position, first)


def encoded(value: int) -> bytes:
    """A number of at most 32 bits, as it is sent."""
    if value < 128:
        return bytes((value,))
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    tail = encoded(value >> 21)
    return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14 & 127 | 128)) + tail


def skip_tags(view: memoryview, position: int, end: int, first: int) -> int:
    """The position after a tagged section none of whose fields is known; `first` began its count."""
    count, position = tag_count(view, position, end, first)
    for _ in range(count):
        _, _, position = tag_bounds(view, position, end)
    return position


def tag_count(view: memoryview, position: int, end: int, first: int) -> tuple[int, int]:
    """How many tagged fields follow; each takes two bytes at least."""
    count = first
    if first > 127:
        count, position = rest(view, position, first)
    if count * 2 > end - position:
        raise Malformed("more tagged fields than bytes")
    return count, position


def tag_bounds(view: memoryview, position: int, end: int) -> tuple[int, int, int]:
    """A tagged field's number, where its value begins and where it ends."""
    tag, position = number(view, position)
    size, position = number(view, position)
    if size > end - position:
        raise Malformed("a tagged field is longer than the message")
    return tag, position, position + size


def tag_section(tags: list[tuple[int, Buffer]]) -> bytes:
    """A tagged section with these values, given in the order of their numbers."""
    pieces: list[Buffer] = [encoded(len(tags))]
    for tag, value in tags:
        pieces += (encoded(tag), encoded(len(value)), value)
    return b"".join(pieces)
