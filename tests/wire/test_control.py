"""Transaction markers, as consumers read them."""

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord
from aiokafka.record.default_records import DefaultRecordBatch

from floe.model.errors import Corrupt, Rejected
from floe.wire.batch import check_batches
from floe.wire.control import Marker, decode_marker, encode_marker
from floe.wire.records import Record, encode


def marker(is_commit):
    return Marker(
        offset=77,
        timestamp=1_700_000_000_000,
        producer_id=2**40,
        producer_epoch=5,
        is_commit=is_commit,
        coordinator_epoch=3,
    )


@pytest.mark.parametrize(("is_commit", "expected"), [(True, COMMIT_MARKER), (False, ABORT_MARKER)])
def test_a_consumer_reads_the_marker(is_commit, expected):
    batch = DefaultRecordBatch(encode_marker(marker(is_commit), leader_epoch=4))
    assert batch.validate_crc()
    assert batch.is_control_batch
    assert batch.is_transactional
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch) == (77, 2**40, 5)
    (record,) = list(batch)
    assert ControlRecord.parse(record.key) == expected


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_marker_comes_back(is_commit):
    assert decode_marker(encode_marker(marker(is_commit))) == marker(is_commit)


def test_a_client_may_not_produce_one():
    first = Marker(offset=0, timestamp=1, producer_id=1, producer_epoch=0, is_commit=True)
    with pytest.raises(Rejected, match="control records"):
        check_batches(memoryview(encode_marker(first)), batch_size_max=1 << 20)


@pytest.mark.parametrize(
    "batch",
    [
        encode([Record(0, 1, b"\0\0\0\1", b"\0\0\0\0\0\0")]),
        encode([Record(0, 1, b"\0\0\0\2", b"\0\0\0\0\0\0")], control=True),
        encode([Record(0, 1, b"\0\0\0", b"\0\0\0\0\0\0")], control=True),
        encode([Record(0, 1, b"\0\0\0\1", None)], control=True),
        encode([Record(0, 1, b"\0\0\0\1", bytes(6)), Record(1, 1, b"\0\0\0\1", bytes(6))], control=True),
        b"",
    ],
    ids=["no control bit", "other type", "short key", "no value", "two records", "nothing"],
)
def test_anything_else_is_no_marker(batch):
    with pytest.raises(Corrupt):
        decode_marker(batch)
