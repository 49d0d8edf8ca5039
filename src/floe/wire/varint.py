"""Zigzag varints, as records hold them: seven bits a byte, lowest first, at most 5 or 10 bytes."""

from floe.model.errors import Corrupt

_MASK64 = (1 << 64) - 1


def append_varint(out: bytearray, value: int) -> None:
    """Append a signed 64-bit value; values that fit 32 bits come out as Kafka's 32-bit varint."""
    rest = (value << 1 ^ value >> 63) & _MASK64
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """(value, position after it); raise `Corrupt` where the bytes end or never stop."""
    try:
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = read_rest(data, position, raw)
    except IndexError:
        raise Corrupt("record data ends inside a varint") from None
    return raw >> 1 ^ -(raw & 1), position


def read_rest(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Go on after a first byte above 0x7f: (value before zigzag is undone, position after it).

    For callers that read one-byte varints, which most are, in place. An IndexError means that the data
    ended.
    """
    raw = first & 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & _MASK64, position
        shift += 7
        if shift > 63:
            raise Corrupt(f"varint of more than 10 bytes before position {position}")
