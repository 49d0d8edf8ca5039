"""The records inside a batch, decoded and encoded in full.

Brokers do this for look-ups by timestamp, for markers and in tests, never on the way of Produce or Fetch.
A batch is checked as it is read: checksum, counts, that every length ends where the record ends, that
offsets stay inside the batch. What does not fit raises `Corrupt`; format 0 and 1, unknown codecs and
records too large when decompressed raise `Rejected`. Nothing else is raised, whatever the bytes.
"""

from collections.abc import Iterator, Sequence
from struct import Struct

import msgspec
from crc32c import crc32c

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.batch import (
    CODEC_MASK,
    CODEC_NONE,
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from floe.wire.compression import compress, decompress
from floe.wire.varint import append_varint, read_rest, read_varint

DECOMPRESSED_SIZE_MAX = 128 << 20
_RECORD_SIZE_MIN = 7  # length, attributes, two deltas, two lengths and a header count of one byte each
_HEADER_FROM_ATTRIBUTES = Struct(">hiqqqhii")
_HEADER_TO_CRC = Struct(">qiibI")

Header = tuple[str, bytes | None]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record with its real offset; a key or value of None is Kafka's null.

    A header's key that is not UTF-8 keeps its bytes as surrogates, so that encoding gives them back.
    """

    offset: int = 0
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


def decode(
    batch: Buffer, *, base_offset: int | None = None, size_max: int = DECOMPRESSED_SIZE_MAX
) -> list[Record]:
    """The records of one whole batch.

    Offsets count from `base_offset`, or from the header's for a batch that carries its real offsets.
    """
    header, data = _open(batch, size_max)
    base = header.base_offset if base_offset is None else base_offset
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    records: list[Record] = []
    try:
        position = _read_records(data, header, base, append_time, records)
    except IndexError:
        raise Corrupt("record data ends inside a record") from None
    if position != len(data):
        raise Corrupt(f"{len(data) - position} bytes after the last of {header.record_count} records")
    return records


def offsets_and_timestamps(
    batch: Buffer, *, base_offset: int | None = None, size_max: int = DECOMPRESSED_SIZE_MAX
) -> Iterator[tuple[int, int]]:
    """(offset, timestamp) of each record, skipping over keys and values."""
    header, data = _open(batch, size_max)
    base = header.base_offset if base_offset is None else base_offset
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    position = 0
    for _ in range(header.record_count):
        length, start = read_varint(data, position)
        timestamp_delta, after = read_varint(data, start + 1)
        offset_delta, after = read_varint(data, after)
        position = start + length
        if not after < position <= len(data):
            raise Corrupt(f"record of {length} bytes does not fit at position {start}")
        timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
        yield base + _inside(offset_delta, header), timestamp


def _open(batch: Buffer, size_max: int) -> tuple[BatchHeader, bytes]:
    """The checked header and the decompressed records of exactly one batch."""
    view = memoryview(batch)
    if len(view) > 16 and view[16] in (0, 1):
        raise Rejected(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"message format {view[16]} is not read")
    header = read_header(view)
    if header.size != len(view):
        raise Corrupt(f"{len(view)} bytes given for a batch of {header.size}")
    if not has_valid_crc(view):
        raise Corrupt("checksum of the batch is wrong")
    data = decompress(header.attributes & CODEC_MASK, view[HEADER_SIZE:], size_max)
    if not 0 <= header.record_count * _RECORD_SIZE_MIN <= len(data):
        raise Corrupt(f"{len(data)} bytes cannot hold {header.record_count} records")
    return header, data


def _inside(offset_delta: int, header: BatchHeader) -> int:
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise Corrupt(f"offset delta {offset_delta} is outside of the batch")
    return offset_delta


def _read_records(
    data: bytes, header: BatchHeader, base_offset: int, append_time: int | None, records: list[Record]
) -> int:
    """Append every record and return the position after the last; an IndexError means that the data ended.

    Lengths are believed only once the record was found to end where its own length says: until then a
    lying one costs at most a short slice.
    """
    position = 0
    base_timestamp, last_offset_delta = header.base_timestamp, header.last_offset_delta
    for _ in range(header.record_count):
        length, position = read_varint(data, position)
        end = position + length
        raw = data[position + 1]  # the byte before it holds attributes, which are not in use
        position += 2
        if raw > 0x7F:
            raw, position = read_rest(data, position, raw)
        timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1)) if append_time is None else append_time
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = read_rest(data, position, raw)
        if raw & 1 or raw >> 1 > last_offset_delta:
            raise Corrupt(f"an offset before position {position} is outside of the batch")
        offset = base_offset + (raw >> 1)
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        headers: tuple[Header, ...] = ()
        if data[position]:
            headers, position = _read_headers(data, position)
        else:
            position += 1
        if position != end:
            raise Corrupt(f"record that should end at {end} ends at {position}")
        records.append(Record(offset, timestamp, key, value, headers))
    return position


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    raw = data[position]
    position += 1
    if raw > 0x7F:
        raw, position = read_rest(data, position, raw)
    if raw & 1:
        if raw != 1:
            raise Corrupt(f"a length before position {position} is below -1")
        return None, position
    end = position + (raw >> 1)
    return data[position:end], end


def _read_headers(data: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= len(data) - position:
        raise Corrupt(f"{count} headers do not fit at position {position}")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise Corrupt(f"header without a key before position {position}")
        value, position = _read_bytes(data, position)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def encode(
    records: Sequence[Record],
    *,
    codec: int = CODEC_NONE,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = -1,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    append_time: int | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """One batch; records are in order of offset, none below `base_offset`.

    `append_time` makes it a batch of LogAppendTime. `last_offset_delta` is given for a cleaned batch, which
    keeps the end of the batch it came from; only such a batch may have no records.
    """
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    attributes = codec & CODEC_MASK
    if append_time is not None:
        attributes |= TIMESTAMP_TYPE_BIT
        max_timestamp = append_time
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT
    parts: list[bytes | bytearray] = []
    for record in records:
        _append_record(parts, record, base_offset, base_timestamp)
    body = compress(codec, b"".join(parts))
    header = _HEADER_FROM_ATTRIBUTES.pack(
        attributes, last_offset_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, len(records),
    )  # fmt: skip
    length = HEADER_SIZE + len(body) - LENGTH_END
    start = _HEADER_TO_CRC.pack(base_offset, length, leader_epoch, MAGIC, crc32c(body, crc32c(header)))
    return b"".join((start, header, body))


def _append_record(
    parts: list[bytes | bytearray], record: Record, base_offset: int, base_timestamp: int
) -> None:
    before = bytearray(1)  # attributes
    append_varint(before, record.timestamp - base_timestamp)
    append_varint(before, record.offset - base_offset)
    _append_bytes(before, record.key)
    value = record.value
    append_varint(before, -1 if value is None else len(value))
    after = bytearray()
    append_varint(after, len(record.headers))
    for key, header_value in record.headers:
        _append_bytes(after, key.encode("utf-8", "surrogateescape"))
        _append_bytes(after, header_value)
    length = bytearray()
    append_varint(length, len(before) + len(value or b"") + len(after))
    parts += (length, before, value or b"", after)


def _append_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        append_varint(out, -1)
    else:
        append_varint(out, len(value))
        out += value
