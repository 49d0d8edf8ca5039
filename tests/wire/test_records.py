"""Records both ways, with two other implementations as judges, and hostile bytes."""

import random
import struct
import tracemalloc
import warnings

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError, Rejected
from floe.wire.batch import (
    CODEC_GZIP,
    CODEC_LZ4,
    CODEC_NONE,
    CODEC_SNAPPY,
    CODEC_ZSTD,
    check_batches,
    read_header,
)
from floe.wire.compression import compress
from floe.wire.records import Record, decode, encode, offsets_and_timestamps

with warnings.catch_warnings():  # kafka-python uses what the standard library has deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

moderate = settings(max_examples=30, deadline=None)
CODECS = [CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD]
WITHOUT_SNAPPY = [codec for codec in CODECS if codec != CODEC_SNAPPY]  # kafka-python needs a package for it
HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=30)), max_size=4).map(tuple)


@st.composite
def record_lists(draw, min_size=1):
    count = draw(st.integers(min_size, 12))
    start = draw(st.integers(0, 2**45))
    return [
        Record(
            offset,
            start + draw(st.integers(-5000, 5000)) if draw(st.booleans()) else start,
            draw(st.none() | st.binary(max_size=200)),
            draw(st.none() | st.binary(max_size=300)),
            draw(HEADERS),
        )
        for offset in range(count)
    ]


def as_records(foreign):
    return [Record(r.offset, r.timestamp, r.key, r.value, as_headers(r.headers)) for r in foreign]


def as_headers(headers):
    return tuple((key, None if value is None else bytes(value)) for key, value in headers)


@pytest.mark.parametrize("codec", CODECS)
@given(records=record_lists())
@moderate
def test_what_was_encoded_is_decoded(codec, records):
    data = encode(records, codec=codec)
    assert decode(data) == records
    assert list(offsets_and_timestamps(data)) == [(r.offset, r.timestamp) for r in records]
    (batch,) = check_batches(memoryview(data), batch_size_max=1 << 30)
    assert batch.max_timestamp == max(r.timestamp for r in records)


@pytest.mark.parametrize("codec", CODECS)
@given(records=record_lists())
@moderate
def test_aiokafka_reads_what_we_write(codec, records):
    theirs = AiokafkaBatch(encode(records, codec=codec, producer_id=7, producer_epoch=2, base_sequence=44))
    assert theirs.validate_crc()
    assert as_records(theirs) == records
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (7, 2, 44)


@pytest.mark.parametrize("codec", WITHOUT_SNAPPY)
@given(records=record_lists())
@settings(max_examples=15, deadline=None)
def test_kafka_python_reads_what_we_write(codec, records):
    theirs = KafkaPythonBatch(encode(records, codec=codec, base_offset=0))
    assert theirs.validate_crc()
    assert as_records(theirs) == records


@pytest.mark.parametrize("codec", CODECS)
@given(records=record_lists())
@moderate
def test_we_read_what_aiokafka_writes(codec, records, foreign_batch):
    assert decode(foreign_batch(records, codec=codec)) == records


@pytest.mark.parametrize("codec", WITHOUT_SNAPPY)
@given(records=record_lists())
@settings(max_examples=15, deadline=None)
def test_we_read_what_kafka_python_writes(codec, records):
    builder = KafkaPythonBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for r in records:
        assert builder.append(r.offset, r.timestamp, r.key, r.value, list(r.headers)) is not None
    assert decode(bytes(builder.build())) == records


def test_uncompressed_bytes_equal_those_of_aiokafka(foreign_batch):
    records = [Record(i, 1000 + i, b"k", b"v" * i, (("h", b"x"), ("n", None))) for i in range(20)]
    ours, theirs = bytearray(encode(records)), bytearray(foreign_batch(records))
    ours[12:16] = theirs[12:16] = bytes(4)  # the leader epoch, which a producer may set at will
    assert ours == theirs


def test_raw_snappy_is_read_as_well_as_xerials():
    records = [Record(i, 5, None, b"snap" * 100) for i in range(3)]
    plain = encode(records)
    raw = bytes(cramjam.snappy.compress_raw(plain[61:]))
    header = bytearray(plain[:61])
    struct.pack_into(">i", header, 8, 61 - 12 + len(raw))
    struct.pack_into(">h", header, 21, CODEC_SNAPPY)
    data = header + raw
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    assert decode(data) == records


def test_offsets_count_from_the_offset_given():
    data = encode([Record(i, 9, None, b"") for i in range(3)])
    assert [r.offset for r in decode(data, base_offset=2**40)] == [2**40, 2**40 + 1, 2**40 + 2]
    assert [offset for offset, _ in offsets_and_timestamps(data, base_offset=50)] == [50, 51, 52]


def test_offsets_may_have_gaps_and_the_batch_keeps_its_end():
    records = [Record(100, 1, b"a", b"1"), Record(107, 2, b"b", b"2")]
    data = encode(records, base_offset=98, last_offset_delta=15)
    assert decode(data) == records
    header = read_header(data)
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (98, 15, 2)


def test_a_cleaned_batch_may_be_empty():
    assert decode(encode([], base_offset=4, last_offset_delta=3)) == []


def test_append_time_stands_for_every_record():
    records = [Record(i, 1000 - i, None, b"x") for i in range(4)]
    data = encode(records, append_time=5555)
    assert {r.timestamp for r in decode(data)} == {5555}
    assert {timestamp for _, timestamp in offsets_and_timestamps(data)} == {5555}
    assert {r.timestamp for r in AiokafkaBatch(data)} == {5555}


def test_timestamps_may_be_missing_or_far_away():
    records = [Record(0, -1, None, b""), Record(1, 2**62, None, b""), Record(2, 0, None, b"")]
    assert decode(encode(records)) == records


def test_header_keys_that_are_no_text_survive():
    record = Record(0, 1, None, None, ((b"\xff\xfe".decode("utf-8", "surrogateescape"), b"v"),))
    assert decode(encode([record])) == [record]


def test_a_large_record_survives_every_codec():
    records = [Record(0, 1, b"k", random.Random(1).randbytes(1 << 20) + bytes(1 << 20))]
    for codec in CODECS:
        assert decode(encode(records, codec=codec)) == records


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_is_refused_in_bounded_memory(codec):
    records = [Record(0, 1, None, bytes(64 << 20))]
    data = encode(records, codec=codec)
    tracemalloc.start()
    try:
        with pytest.raises(Rejected) as caught:
            decode(data, size_max=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert peak < 8 << 20


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_not_read(magic):
    data = bytearray(encode([Record(0, 1, None, b"x")]))
    data[16] = magic
    with pytest.raises(Rejected) as caught:
        decode(data)
    assert caught.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def with_body(body, count=1, codec=CODEC_NONE, last_offset_delta=None):
    """A batch of right length and checksum around any bytes."""
    packed = compress(codec, body)
    last = count - 1 if last_offset_delta is None else last_offset_delta
    rest = struct.pack(">hiqqqhii", codec, last, 0, 0, -1, -1, -1, count) + packed
    return struct.pack(">qiibI", 0, 9 + len(rest), 0, 2, crc32c(rest)) + rest


GOOD = bytes((0x0E, 0, 0, 0, 1, 2, 0x78, 0))  # length 7; no key, value x, no headers


def test_the_hand_made_record_is_good():
    assert decode(with_body(GOOD)) == [Record(0, 0, None, b"x")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        GOOD[:-1],
        GOOD + b"\0",
        GOOD + GOOD,
        bytes((0x10,)) + GOOD[1:],  # longer than its fields
        bytes((0x0C,)) + GOOD[1:],  # shorter than its fields
        bytes((0x01,)) + GOOD[1:],  # of negative length
        bytes((0x0E, 0, 0, 1, 1, 2, 0x78, 0)),  # offset delta -1
        bytes((0x0E, 0, 0, 2, 1, 2, 0x78, 0)),  # offset delta past the end
        bytes((0x0E, 0, 0, 0, 3, 2, 0x78, 0)),  # key of length -2
        bytes((0x0E, 0, 0, 0, 1, 0x7E, 0x78, 0)),  # value past the end
        bytes((0x0E, 0, 0, 0, 1, 2, 0x78, 1)),  # -1 headers
        bytes((0x0E, 0, 0, 0, 1, 2, 0x78, 0x7E)),  # 63 headers that are not there
        bytes((0x10, 0, 0, 0, 1, 2, 0x78, 2, 1)),  # a header without a key
        b"\xff" * 8,
        b"\xff" * 40,
        bytes((0x0E, 0)) + b"\x80" * 20,
    ],
)
@pytest.mark.parametrize("codec", [CODEC_NONE, CODEC_ZSTD])
def test_records_that_lie_are_corrupt(body, codec):
    with pytest.raises(Corrupt):
        decode(with_body(body, codec=codec))


@pytest.mark.parametrize("count", [-1, 2, 3, 2**31 - 1])
def test_counts_that_lie_are_corrupt(count):
    data = with_body(GOOD, count=count, last_offset_delta=5)
    with pytest.raises(Corrupt):
        decode(data)
    with pytest.raises(Corrupt):
        list(offsets_and_timestamps(data))


def test_a_wrong_checksum_is_corrupt():
    data = bytearray(with_body(GOOD))
    data[-2] ^= 1
    with pytest.raises(Corrupt, match="checksum"):
        decode(data)
    with pytest.raises(Corrupt, match="checksum"):
        list(offsets_and_timestamps(data))


def test_exactly_one_batch_is_decoded():
    data = with_body(GOOD)
    for other in (data + data, data + b"x"):
        with pytest.raises(Corrupt):
            decode(other)


def test_unknown_codecs_are_not_read():
    data = bytearray(with_body(GOOD))
    struct.pack_into(">h", data, 21, 6)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    with pytest.raises(Rejected) as caught:
        decode(data)
    assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", CODECS)
def test_mutated_records_under_a_right_checksum_never_crash(codec):
    """An attacker signs his own bytes, so the checksum protects nothing here."""
    rng = random.Random(codec)
    records = [Record(i, 1000 + i, b"key", b"value" * 5, (("h", b"v"),)) for i in range(8)]
    data = encode(records, codec=codec)
    outcomes = set()
    for _ in range(800):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 5)):
            broken[rng.randrange(21, len(broken))] = rng.randrange(256)
        if rng.random() < 0.3:
            del broken[rng.randrange(61, len(broken)) :]
        struct.pack_into(">i", broken, 8, len(broken) - 12)
        struct.pack_into(">I", broken, 17, crc32c(memoryview(broken)[21:]))
        for read in (decode, lambda data, size_max: list(offsets_and_timestamps(data, size_max=size_max))):
            try:
                read(broken, size_max=1 << 20)
                outcomes.add("read")
            except FloeError as error:
                outcomes.add(type(error).__name__)
    assert "Corrupt" in outcomes


@given(data=st.binary(max_size=300))
@moderate
def test_noise_is_never_read(data):
    with pytest.raises(FloeError):
        decode(data)
