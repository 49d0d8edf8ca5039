"""Record batches v2: the 61-byte header, its check on the way in and its stamp on the way out.

A batch is opaque bytes behind its header. Brokers read the header and never the records:

    0  base offset        i64      27 base timestamp     i64
    8  length             i32      35 max timestamp      i64
    12 leader epoch       i32      43 producer id        i64
    16 magic              i8       51 producer epoch     i16
    17 crc32c of 21..     u32      53 base sequence      i32
    21 attributes         i16      57 record count       i32
    23 last offset delta  i32      61 records

`length` counts the bytes after itself. The checksum leaves out the first 21 bytes, so a broker may
stamp base offset and leader epoch into a copied prefix without touching, or even reading, the rest.

Invariant: no function here changes the bytes it is given; views may be uploads under way or cache.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import msgspec
from crc32c import crc32c

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected

Buffer = bytes | bytearray | memoryview

HEADER_SIZE = 61
PREFIX_SIZE = 16  # base offset, length, leader epoch: what a stamp replaces
CRC_START = 21  # the first byte that the batch's own checksum covers
LENGTH_END = 12  # the length field counts the bytes from here on
MAGIC = 2

CODEC_MASK = 0x07
CODEC_NONE = 0
CODEC_GZIP = 1
CODEC_SNAPPY = 2
CODEC_LZ4 = 3
CODEC_ZSTD = 4
TIMESTAMP_TYPE_BIT = 0x08  # set: LogAppendTime; clear: CreateTime
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_SEQUENCE = -1
NO_EPOCH = -1
RECORD_COUNT_MAX = 0x7FFFFFFF

_HEADER = Struct(">qiibIhiqqqhii")
_PREFIX = Struct(">qii")
_WALK = Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_CRC = Struct(">I")
_LENGTH_MIN_V0 = 14  # Kafka calls a batch with a shorter length corrupt, whatever its magic

assert _HEADER.size == HEADER_SIZE


class BatchHeader(NamedTuple):
    """Every field of a header, in file order."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + LENGTH_END


class Batch(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A batch whose header was read, with a view of all of its bytes.

    A batch without a producer has -1 in all three producer fields, whatever the client sent.
    Compared by identity: two batches of equal bytes are two batches.
    """

    view: memoryview
    size: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def codec(self) -> int:
        """One of the CODEC_ constants."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & TIMESTAMP_TYPE_BIT != 0


def check_batches(
    records: memoryview | None, *, batch_size_max: int, codec_max: int = CODEC_ZSTD, batches_max: int = 1
) -> list[Batch]:
    """Check what a client sent for one partition and return its batches, as views.

    Raise `Rejected` with the code that Kafka answers. As in Kafka a partition's records hold exactly
    one batch unless `batches_max` says otherwise. Bytes after the last batch are refused: Kafka drops
    an incomplete second batch in silence and acknowledges it. `codec_max` is CODEC_LZ4 for Produce
    before version 7, which may not carry zstd.
    """
    total = 0 if records is None else len(records)
    if records is None or total == 0:
        raise Rejected(ErrorCode.INVALID_RECORD, "no record batch for the partition")
    batches: list[Batch] = []
    position = 0
    while position < total:
        if len(batches) == batches_max:
            raise Rejected(
                ErrorCode.INVALID_RECORD, f"more than {batches_max} record batch for the partition"
            )
        batch = _check_batch(records, position, total - position, batch_size_max, codec_max)
        batches.append(batch)
        position += batch.size
    return batches


def _check_batch(
    records: memoryview, position: int, remaining: int, batch_size_max: int, codec_max: int
) -> Batch:
    """One test of everything on the way of a good batch; `_refusal` says what was wrong with a bad one."""
    if remaining < HEADER_SIZE:
        raise _refusal_of_short(records, position, remaining)
    header = _HEADER.unpack_from(records, position)
    (
        base_offset, length, _, magic, crc, attributes, last_offset_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, record_count,
    ) = header  # fmt: skip
    size = length + LENGTH_END
    if (
        magic != MAGIC
        or size > remaining
        or size > batch_size_max
        or size < HEADER_SIZE
        or record_count <= 0
        or last_offset_delta + 1 != record_count
        or base_offset != 0
        or attributes & CONTROL_BIT
        or attributes & CODEC_MASK > codec_max
    ):
        raise _refusal(BatchHeader._make(header), remaining, batch_size_max)
    view = records if size == remaining and position == 0 else records[position : position + size]
    if crc32c(view[CRC_START:]) != crc:
        raise Rejected(
            ErrorCode.CORRUPT_MESSAGE, f"checksum of the batch is not {crc:#010x} as its header says"
        )
    if producer_id == -1:
        # KafkaJS sends 0 and 0, Sarama -1 and 0, Java -1 and -1: without a producer neither field counts.
        producer_epoch = NO_EPOCH
        base_sequence = NO_SEQUENCE
        if attributes & TRANSACTIONAL_BIT:
            raise Rejected(ErrorCode.INVALID_RECORD, "transactional batch without a producer id")
    elif producer_id < 0 or producer_epoch < 0 or base_sequence < 0:
        raise Rejected(
            ErrorCode.INVALID_RECORD,
            f"producer id {producer_id}, epoch {producer_epoch} and sequence {base_sequence} disagree",
        )
    return Batch(
        view,
        size,
        record_count,
        base_timestamp,
        max_timestamp,
        attributes,
        producer_id,
        producer_epoch,
        base_sequence,
    )


def _refusal_of_short(records: memoryview, position: int, remaining: int) -> Rejected:
    """Too few bytes for a header: Kafka sees no batch there, unless what it can see is corrupt."""
    if remaining >= LENGTH_END:
        length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
        if length < _LENGTH_MIN_V0 or length + LENGTH_END <= remaining:
            return Rejected(ErrorCode.CORRUPT_MESSAGE, f"batch length {length} is too small for a header")
    return Rejected(ErrorCode.INVALID_RECORD, f"{remaining} bytes hold no record batch")


def _refusal(header: BatchHeader, remaining: int, batch_size_max: int) -> Rejected:
    """Why a header is refused, in the order in which Kafka looks."""
    size = header.size
    if header.length < _LENGTH_MIN_V0 or not 0 <= header.magic <= MAGIC:
        return Rejected(
            ErrorCode.CORRUPT_MESSAGE, f"batch of length {header.length} and magic {header.magic}"
        )
    if size > remaining:
        return Rejected(ErrorCode.INVALID_RECORD, f"batch of {size} bytes is cut off after {remaining}")
    if header.magic != MAGIC:
        return Rejected(
            ErrorCode.INVALID_RECORD, f"message format {header.magic} is not taken, only format 2 is"
        )
    if header.base_offset != 0:
        return Rejected(
            ErrorCode.INVALID_RECORD, f"base offset of a produced batch is {header.base_offset}, not 0"
        )
    if size > batch_size_max:
        return Rejected(
            ErrorCode.MESSAGE_TOO_LARGE, f"batch of {size} bytes; at most {batch_size_max} are taken"
        )
    if size < HEADER_SIZE:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"batch of {size} bytes is shorter than a header")
    codec = header.attributes & CODEC_MASK
    if header.record_count > 0 and header.last_offset_delta + 1 == header.record_count:
        if header.attributes & CONTROL_BIT:
            return Rejected(ErrorCode.INVALID_RECORD, "clients may not write control records")
        return Rejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {codec} is not taken")
    return Rejected(
        ErrorCode.INVALID_RECORD,
        f"record count {header.record_count} with last offset delta {header.last_offset_delta}",
    )


def read_header(records: Buffer, position: int = 0) -> BatchHeader:
    """The header of a stored batch; raise `Corrupt` unless a whole batch of magic 2 lies there."""
    remaining = len(records) - position
    if position < 0 or remaining < HEADER_SIZE:
        raise Corrupt(f"no room for a batch header at position {position}")
    header = BatchHeader._make(_HEADER.unpack_from(records, position))
    if header.magic != MAGIC or not HEADER_SIZE <= header.size <= remaining:
        raise Corrupt(f"no batch at position {position}: length={header.length} magic={header.magic}")
    return header


def walk(records: Buffer) -> Iterator[tuple[int, int, int, int]]:
    """Each stored batch as (position, size, base offset, offset count), by header alone.

    The offset count is last offset delta + 1: the record count too, except in batches that were
    cleaned. Raise `Corrupt` at a length that does not fit or bytes that are no batch.
    """
    total = len(records)
    unpack = _WALK.unpack_from
    position = 0
    while position < total:
        if total - position < HEADER_SIZE:
            raise Corrupt(f"{total - position} stray bytes at position {position}")
        base_offset, length, magic, last_offset_delta = unpack(records, position)
        size = length + LENGTH_END
        if magic != MAGIC or size < HEADER_SIZE or size > total - position or last_offset_delta < 0:
            raise Corrupt(f"no batch at position {position}: length={length} magic={magic}")
        yield position, size, base_offset, last_offset_delta + 1
        position += size


def stored_batches(records: memoryview) -> list[Batch]:
    """Stored bytes as `Batch` values, without checksums; raise `Corrupt` where no batch lies."""
    batches = []
    position = 0
    while position < len(records):
        header = read_header(records, position)
        batches.append(_batch_of(header, records[position : position + header.size]))
        position += header.size
    return batches


def _batch_of(header: BatchHeader, view: memoryview) -> Batch:
    has_producer = header.producer_id >= 0
    return Batch(
        view,
        header.size,
        header.record_count,
        header.base_timestamp,
        header.max_timestamp,
        header.attributes,
        header.producer_id if has_producer else -1,
        header.producer_epoch if has_producer else NO_EPOCH,
        header.base_sequence if has_producer else NO_SEQUENCE,
    )


def has_valid_crc(batch_view: Buffer) -> bool:
    """Whether one whole batch holds the bytes that its checksum says."""
    view = memoryview(batch_view)
    return bool(crc32c(view[CRC_START:]) == _CRC.unpack_from(view, 17)[0])


def stamp(view: memoryview, base_offset: int, leader_epoch: int) -> tuple[bytes, memoryview]:
    """One batch with its real offset, as a fresh prefix and the untouched rest."""
    return _PREFIX.pack(base_offset, len(view) - LENGTH_END, leader_epoch), view[PREFIX_SIZE:]


def stamp_all(records: memoryview, base_offset: int, leader_epoch: int) -> list[Buffer]:
    """Neighbouring batches of one range as pieces to send, stamped with offsets that follow each other."""
    pieces: list[Buffer] = []
    pack = _PREFIX.pack
    for position, size, _, offset_count in walk(records):
        pieces.append(pack(base_offset, size - LENGTH_END, leader_epoch))
        pieces.append(records[position + PREFIX_SIZE : position + size])
        base_offset += offset_count
    return pieces


def with_append_time(batch: Batch, timestamp: int) -> Batch:
    """A copy of the batch that says LogAppendTime, for topics with message.timestamp.type=LogAppendTime.

    Attributes and greatest timestamp lie under the checksum, so this costs a copy of the batch and one
    more pass of CRC32C (about 0.1 ms per MiB together); the given bytes stay as they are. Records keep
    their deltas: with this bit set readers take every record's time from the header.
    """
    copy = bytearray(batch.view)
    attributes = batch.attributes | TIMESTAMP_TYPE_BIT
    copy[21:23] = attributes.to_bytes(2, "big", signed=True)
    copy[35:43] = timestamp.to_bytes(8, "big", signed=True)
    view = memoryview(copy)
    _CRC.pack_into(copy, 17, crc32c(view[CRC_START:]))
    return msgspec.structs.replace(
        batch, view=view.toreadonly(), attributes=attributes, max_timestamp=timestamp
    )
