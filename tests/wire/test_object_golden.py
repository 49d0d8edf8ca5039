"""The object format, byte for byte: files of version 1 must be written, read and verified for ever."""

import runpy
from pathlib import Path

import pytest

from floe.model.coordinates import RowFlags
from floe.wire.batch import walk
from floe.wire.object_check import verify
from floe.wire.object_index import read_index
from floe.wire.records import decode

FOLDER = Path(__file__).parent / "golden"
GOLDEN = runpy.run_path(str(FOLDER / "make_golden.py"))["GOLDEN"]
LEVEL_0, LEVEL_1 = sorted(GOLDEN)


def golden(name):
    return (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", GOLDEN)
def test_the_same_spans_give_the_same_bytes_as_ever(name):
    assert GOLDEN[name]() == golden(name)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_object_verifies(name):
    assert verify(golden(name)).problems == ()


@pytest.mark.parametrize("name", GOLDEN)
def test_every_change_of_a_byte_is_found(name):
    data = golden(name)
    for position in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            broken = bytearray(data)
            broken[position] ^= change
            assert not verify(broken).ok, f"byte {position} changed by {change:#x}"


@pytest.mark.parametrize("name", GOLDEN)
def test_every_truncation_and_every_longer_file_is_found(name):
    data = golden(name)
    for size in range(len(data)):
        assert not verify(data[:size]).ok
        assert not verify(data[size:]).ok or size == 0
    assert not verify(data + b"\0").ok
    assert not verify(b"\0" + data).ok


def test_level_0_says_what_it_holds():
    index = read_index(golden(LEVEL_0))
    assert index.object_id == 0x00561234_00000007
    assert [(e.range, e.batch_count, e.record_count, e.level, e.flags) for e in index.entries] == [
        (3, 2, 3, 0, RowFlags.NONE),
        (4, 1, 3, 0, RowFlags.NONE),
        (900_001, 1, 1, 0, RowFlags.TRANSACTIONAL),
    ]
    assert {(e.first, e.last) for e in index.entries} == {(-1, -1)}


def test_records_come_out_with_no_metadata_at_all():
    data = golden(LEVEL_1)
    offsets = []
    for entry in read_index(data).entries:
        span = data[entry.position : entry.position + entry.size]
        offsets += [
            record.offset for at, size, *_ in walk(span) for record in decode(span[at : at + size])
        ] or [entry.first]
    assert offsets == [100, 101, 105, 106, 107, 108, 109, 110]


def test_level_1_has_offsets_points_and_a_marker():
    index = read_index(golden(LEVEL_1))
    first, marker, last = index.entries_of(3)
    assert (first.first, first.last, first.level) == (100, 108, 1)
    assert first.flags == RowFlags.OFFSETS_STAMPED
    assert first.point_end - first.point_start == 1
    assert marker.is_marker
    assert (marker.first, marker.size, marker.producer_id, marker.producer_epoch) == (109, 0, 1 << 40, 4)
    assert (last.first, last.last) == (110, 110)
