"""The header check of Produce, walking and stamping: Kafka's codes for bad bytes, no change to good ones."""

import random
import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.batch import (
    CODEC_LZ4,
    CODEC_ZSTD,
    CONTROL_BIT,
    HEADER_SIZE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    check_batches,
    has_valid_crc,
    read_header,
    stamp,
    stamp_all,
    stored_batches,
    walk,
    with_append_time,
)
from floe.wire.records import Record, decode, encode

moderate = settings(max_examples=60, deadline=None)
RECORDS = [Record(i, 1_700_000_000_000 + i * 7, b"k%d" % i, b"value %d" % i) for i in range(5)]


def check(data, **options):
    return check_batches(memoryview(data), **{"batch_size_max": 1 << 20} | options)


def refusal(data, **options):
    with pytest.raises(Rejected) as caught:
        check(data, **options)
    assert str(caught.value)
    return caught.value.code


def changed(data, position, layout, value, *, resign=True):
    """The batch with one field replaced, by default under a checksum that fits again."""
    copy = bytearray(data)
    struct.pack_into(">" + layout, copy, position, value)
    if resign:
        struct.pack_into(">I", copy, 17, crc32c(memoryview(copy)[21:]))
    return bytes(copy)


def test_a_foreign_batch_passes_with_all_its_header_fields(foreign_batch):
    data = foreign_batch(RECORDS, codec=CODEC_ZSTD, transactional=True, producer=(900, 3, 17))
    (batch,) = check(data)
    assert bytes(batch.view) == data
    assert batch.size == len(data)
    assert batch.record_count == 5
    assert (batch.base_timestamp, batch.max_timestamp) == (RECORDS[0].timestamp, RECORDS[-1].timestamp)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (900, 3, 17)
    assert batch.codec == CODEC_ZSTD
    assert batch.is_transactional
    assert not batch.is_log_append_time


def test_the_view_is_of_the_given_bytes_and_copies_none():
    buffer = bytearray(encode(RECORDS))
    (batch,) = check_batches(memoryview(buffer), batch_size_max=1 << 20)
    buffer[-1] ^= 0xFF
    assert bytes(batch.view) == bytes(buffer)


@pytest.mark.parametrize("records", [None, memoryview(b"")])
def test_nothing_is_no_batch(records):
    with pytest.raises(Rejected) as caught:
        check_batches(records, batch_size_max=1 << 20)
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_every_truncation_is_refused():
    data = encode(RECORDS)
    codes = {refusal(data[:size]) for size in range(1, len(data))}
    assert codes == {ErrorCode.INVALID_RECORD}


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused_as_kafka_refuses_them(magic):
    assert refusal(changed(encode(RECORDS), 16, "b", magic)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_unknown_formats_are_corrupt(magic):
    assert refusal(changed(encode(RECORDS), 16, "b", magic)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_impossible_lengths_are_corrupt(length):
    assert refusal(changed(encode(RECORDS), 8, "i", length)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [14, 40, HEADER_SIZE - 13])
def test_lengths_too_short_for_a_header_are_corrupt(length):
    assert refusal(changed(encode(RECORDS), 8, "i", length)) == ErrorCode.CORRUPT_MESSAGE
    assert refusal(changed(encode(RECORDS), 8, "i", length)[: length + 12]) == ErrorCode.CORRUPT_MESSAGE


def test_lengths_past_the_end_hold_no_batch():
    data = encode(RECORDS)
    for extra in (1, 1000, 2**31 - 1 - len(data)):
        assert refusal(changed(data, 8, "i", len(data) - 12 + extra)) == ErrorCode.INVALID_RECORD


def test_a_length_that_ends_early_fails_the_checksum():
    data = encode(RECORDS)
    assert refusal(changed(data, 8, "i", len(data) - 12 - 3)) == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_may_be_as_large_as_the_limit_and_no_larger():
    data = encode(RECORDS)
    assert check(data, batch_size_max=len(data))
    assert refusal(data, batch_size_max=len(data) - 1) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_refused(codec):
    assert refusal(changed(encode(RECORDS), 21, "h", codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_is_refused_where_the_request_may_not_carry_it():
    data = encode(RECORDS, codec=CODEC_ZSTD)
    assert check(data)
    assert refusal(data, codec_max=CODEC_LZ4) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("position", "layout", "value"),
    [
        (57, "i", 0),
        (57, "i", -1),
        (57, "i", 4),
        (57, "i", 6),
        (57, "i", 2**31 - 1),
        (23, "i", -1),
        (23, "i", 3),
        (23, "i", 2**31 - 1),
        (0, "q", 1),
        (0, "q", -1),
        (21, "h", CONTROL_BIT),
        (21, "h", CONTROL_BIT | TRANSACTIONAL_BIT),
    ],
)
def test_headers_that_contradict_themselves_are_invalid(position, layout, value):
    assert refusal(changed(encode(RECORDS), position, layout, value)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("producer", [(5, 0, -1), (5, -1, 0), (5, -1, -1), (-2, -1, -1), (-2, 0, 0)])
def test_producer_fields_that_disagree_are_invalid(producer):
    producer_id, epoch, sequence = producer
    data = encode(RECORDS, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    assert refusal(data) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("epoch", "sequence"), [(-1, -1), (0, 0), (-1, 0), (3, 9)])
def test_without_a_producer_id_whatever_a_client_puts_into_the_other_fields_is_ignored(epoch, sequence):
    data = encode(RECORDS, producer_epoch=epoch, base_sequence=sequence)
    (batch,) = check(data)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


def test_a_transactional_batch_needs_a_producer():
    assert refusal(encode(RECORDS, transactional=True)) == ErrorCode.INVALID_RECORD
    assert check(encode(RECORDS, transactional=True, producer_id=1, producer_epoch=0, base_sequence=0))


def test_a_client_may_set_the_timestamp_type():
    (batch,) = check(encode(RECORDS, append_time=1_800_000_000_000))
    assert batch.is_log_append_time


def test_more_than_one_batch_is_refused_unless_asked_for():
    data = encode(RECORDS) + encode(RECORDS[:2])
    assert refusal(data) == ErrorCode.INVALID_RECORD
    assert [batch.record_count for batch in check(data, batches_max=2)] == [5, 2]


@given(tail=st.binary(min_size=1, max_size=80))
@moderate
def test_bytes_after_the_batch_are_never_dropped_in_silence(tail):
    for batches_max in (1, 2):
        assert refusal(encode(RECORDS) + tail, batches_max=batches_max) in {
            ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE,
        }  # fmt: skip


def test_every_flip_under_the_checksum_is_corrupt():
    data = encode(RECORDS)
    for position in range(61, len(data)):
        broken = bytearray(data)
        broken[position] ^= 1 << position % 8
        assert refusal(broken) == ErrorCode.CORRUPT_MESSAGE


def test_mutations_are_refused_or_harmless_and_never_crash():
    """Whatever survives mutation differs only where the check need not look: the leader epoch."""
    rng = random.Random(7)
    data = encode(RECORDS, codec=CODEC_LZ4, producer_id=4, producer_epoch=0, base_sequence=0)
    for _ in range(3000):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 6)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.2:
            del broken[rng.randrange(len(broken)) :]
        try:
            check(broken, batches_max=3)
        except Rejected:
            continue
        assert broken[:12] == data[:12]
        assert broken[16:] == data[16:]


@given(data=st.binary(max_size=200))
@moderate
def test_noise_is_refused(data):
    assert refusal(data) in {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE}


def test_stamping_changes_sixteen_bytes_and_not_the_original():
    data = encode(RECORDS)
    view = memoryview(data)
    prefix, rest = stamp(view, 123_456_789_012, 9)
    stamped = prefix + rest
    header = read_header(stamped)
    assert (header.base_offset, header.leader_epoch) == (123_456_789_012, 9)
    assert stamped[8:12] == data[8:12]
    assert stamped[16:] == data[16:]
    assert data == encode(RECORDS)
    assert has_valid_crc(stamped)
    assert [record.offset for record in decode(stamped)] == [123_456_789_012 + i for i in range(5)]


def test_stamping_neighbours_gives_offsets_that_follow_each_other():
    run = b"".join(encode(RECORDS[:count]) for count in (3, 1, 5))
    sent = b"".join(stamp_all(memoryview(run), 40, 2))
    assert [(base, count) for _, _, base, count in walk(sent)] == [(40, 3), (43, 1), (44, 5)]
    assert len(sent) == len(run)


def test_walking_gives_positions_and_counts_that_fit():
    batches = [encode(RECORDS[:count], base_offset=0) for count in (2, 5, 1)]
    data = b"".join(batches)
    positions = [(position, size, count) for position, size, _, count in walk(data)]
    assert positions == [(0, len(batches[0]), 2), (len(batches[0]), len(batches[1]), 5),
                         (len(batches[0]) + len(batches[1]), len(batches[2]), 1)]  # fmt: skip
    assert list(walk(b"")) == []


def test_walking_stops_at_lies():
    good = encode(RECORDS)
    lies = [
        good[:-1],
        good + good[:30],
        changed(good, 8, "i", len(good)),
        changed(good, 8, "i", 5),
        changed(good, 8, "i", -1),
        changed(good, 16, "b", 1),
        changed(good, 23, "i", -5),
    ]
    for data in lies:
        with pytest.raises(Corrupt):
            list(walk(data))


def test_reading_a_header_needs_a_whole_batch():
    good = encode(RECORDS)
    assert read_header(b"xyz" + good, 3).record_count == 5
    for data, position in ((good, 1), (good, -1), (good[:60], 0), (good[:-1], 0), (good, len(good))):
        with pytest.raises(Corrupt):
            read_header(data, position)


def test_stored_batches_hide_the_fields_of_producers_that_are_none():
    without = encode(RECORDS, producer_epoch=0, base_sequence=0)
    with_producer = encode(RECORDS, producer_id=8, producer_epoch=1, base_sequence=2)
    first, second = stored_batches(memoryview(without + with_producer))
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (-1, -1, -1)
    assert (second.producer_id, second.producer_epoch, second.base_sequence) == (8, 1, 2)


def test_append_time_is_set_in_a_copy_that_still_checks():
    data = bytearray(encode(RECORDS, codec=CODEC_ZSTD))
    before = bytes(data)
    (batch,) = check(data)
    later = with_append_time(batch, 1_900_000_000_000)
    assert bytes(data) == before
    assert later.attributes == batch.attributes | TIMESTAMP_TYPE_BIT
    assert later.max_timestamp == 1_900_000_000_000
    (again,) = check(later.view)
    assert again.max_timestamp == 1_900_000_000_000
    assert {record.timestamp for record in decode(later.view)} == {1_900_000_000_000}
    assert [record.value for record in decode(later.view)] == [record.value for record in RECORDS]
