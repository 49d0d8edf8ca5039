"""Object files: layout without copies, the index, blocks, and objects that contradict themselves."""

import random
import struct

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.coordinates import RowFlags
from floe.model.errors import Corrupt
from floe.wire.batch import check_batches, read_header, stored_batches
from floe.wire.object_check import check_span, verify
from floe.wire.object_file import (
    ENTRY,
    NO_OBJECT,
    POINT,
    POINT_SPACING,
    START_MAGIC,
    TRAILER,
    TRAILER_CRC_AT,
    ObjectBuilder,
    Span,
    build,
    spans_of,
)
from floe.wire.object_index import read_index, tail_size
from floe.wire.records import Record, encode

moderate = settings(max_examples=40, deadline=None)
TIME = 1_700_000_000_000


def batch(count=1, size=10, time=TIME, **options):
    data = encode([Record(i, time, None, bytes(size)) for i in range(count)], **options)
    (made,) = check_batches(memoryview(data), batch_size_max=1 << 30)
    return made


def whole(built):
    return b"".join(built.pieces)


SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 40)), min_size=1, max_size=5)
SPANS = st.lists(st.tuples(st.integers(0, 2**62), SHAPES), max_size=8, unique_by=lambda span: span[0]).map(
    lambda spans: [Span(r, [batch(*shape) for shape in shapes]) for r, shapes in sorted(spans)]
)


@given(spans=SPANS)
@moderate
def test_what_was_built_is_read_and_verifies(spans):
    built = build(spans, object_id=77)
    data = whole(built)
    assert len(data) == built.size
    report = verify(data)
    assert report.problems == ()
    index = report.index
    assert (index.object_id, index.size) == (77, built.size)
    assert [e.range for e in index.entries] == [span.range for span in spans]
    flat = [made for span in spans for made in span.batches]
    assert len(built.positions) == len(flat)
    for position, made in zip(built.positions, flat, strict=True):
        assert data[position : position + made.size] == bytes(made.view)
    for span in spans:
        (entry,) = index.entries_of(span.range)
        assert entry.batch_count == len(span.batches)
        assert entry.record_count == sum(made.record_count for made in span.batches)
    assert index.entries_of(2**62 + 1) == ()


def test_the_pieces_are_the_views_given():
    spans = [Span(1, [batch(), batch()]), Span(2, [batch()])]
    pieces = build(spans).pieces
    assert len(pieces) == 5
    for piece, made in zip(pieces[1:4], [m for span in spans for m in span.batches], strict=True):
        assert piece is made.view


def test_entries_are_grouped_in_the_order_they_came():
    made = [batch(n) for n in (1, 2, 3, 4)]
    spans = spans_of([(5, made[0]), (5, made[1]), (6, made[2]), (9, made[3])])
    assert [(span.range, list(span.batches)) for span in spans] == [
        (5, made[:2]),
        (6, [made[2]]),
        (9, [made[3]]),
    ]
    assert spans_of([]) == []


def test_an_object_of_nothing_is_an_object():
    report = verify(whole(build([])))
    assert report.ok
    assert report.index.object_id == NO_OBJECT


def test_ranges_out_of_order_are_a_bug():
    with pytest.raises(AssertionError):
        build([Span(2, [batch()]), Span(1, [batch()])])


def test_the_tail_alone_gives_the_index():
    data = whole(build([Span(r, [batch(2, 500)]) for r in range(20)], object_id=5))
    needed = tail_size(data[-TRAILER.size :])
    assert needed == 20 * ENTRY.size + TRAILER.size
    index = read_index(data[-needed:])
    assert (index.size, len(index.entries), index.entries[0].position) == (len(data), 20, len(START_MAGIC))
    assert read_index(memoryview(bytearray(data[-needed - 100 :]))).entries == index.entries
    with pytest.raises(Corrupt, match="does not fit"):
        read_index(data[-needed + 1 :])


def stamped(range_id, pairs, *, level=1):
    builder = ObjectBuilder(9)
    pieces = [
        START_MAGIC,
        *builder.add_stamped(range_id, pairs, level=level, leader_epoch=3),
        builder.footer(),
    ]
    return b"".join(pieces)


def large_span():
    """Offsets with gaps, timestamps that go up and down, blocks of several batches and of one large one."""
    rng = random.Random(5)
    offset, pairs = 1000, []
    for index in range(40):
        size = 1_500_000 if index == 20 else rng.randrange(50_000, 400_000)
        made = batch(3, size // 3, time=TIME + rng.randrange(-1000, 1000))
        pairs.append((offset, made))
        offset += 3 + rng.randrange(3)
    return pairs


def test_points_lie_a_mebibyte_apart_and_lead_to_every_offset():
    pairs = large_span()
    data = stamped(7, pairs, level=2)
    report = verify(data)
    assert report.problems == ()
    index = report.index
    (entry,) = index.entries
    assert (entry.first, entry.last, entry.level) == (1000, pairs[-1][0] + 2, 2)
    for base, made in pairs:
        for offset in (base, base + 2):
            position, size = index.block_of(entry, offset)
            assert size <= max(POINT_SPACING, made.size)
            headers = [
                read_header(m.view) for m in stored_batches(memoryview(data)[position : position + size])
            ]
            assert any(h.base_offset <= offset <= h.base_offset + h.last_offset_delta for h in headers)
            assert all(h.leader_epoch == 3 for h in headers)
    assert index.block_of(entry, 0)[0] == entry.position


def test_the_first_block_with_a_time_is_found():
    pairs = large_span()
    index = read_index(stamped(7, pairs))
    (entry,) = index.entries
    for wanted in range(TIME - 1001, TIME + 1001, 97):
        first = next((base for base, made in pairs if made.max_timestamp >= wanted), None)
        block = index.block_at_time(entry, wanted)
        assert block == (None if first is None else index.block_of(entry, first))


def test_spans_without_points_are_one_block():
    index = read_index(whole(build([Span(1, [batch(3)]), Span(2, [batch(2)])])))
    for entry in index.entries:
        assert index.block_of(entry, 1) == (entry.position, entry.size)
        assert index.block_at_time(entry, TIME) == (entry.position, entry.size)
        assert index.block_at_time(entry, TIME + 1) is None


def test_a_span_can_be_verified_by_itself():
    data = whole(build([Span(1, [batch(3), batch(1)]), Span(2, [batch(2)])]))
    index = read_index(data)
    first, second = index.entries
    good = memoryview(data)[second.position : second.position + second.size]
    assert check_span(index, second, good) == []
    assert check_span(index, first, good)
    assert check_span(index, second, good[:-1])


def test_batches_that_changed_places_are_found():
    one, two = batch(1, 10), batch(1, 10, time=TIME - 5)
    data = whole(build([Span(1, [one, two])]))
    swapped = data.replace(bytes(one.view) + bytes(two.view), bytes(two.view) + bytes(one.view))
    assert swapped != data
    assert not verify(swapped).ok


def test_the_index_of_another_object_does_not_fit():
    one, two = whole(build([Span(1, [batch(1, 10)])])), whole(build([Span(1, [batch(1, 11)])]))
    footer = tail_size(two)
    assert not verify(one[: -tail_size(one)] + two[-footer:]).ok


def test_problems_are_told_up_to_a_bound():
    data = bytearray(whole(build([Span(r, [batch()]) for r in range(300)])))
    for entry in read_index(data).entries:
        data[entry.position + 70] ^= 1
    report = verify(data)
    assert len(report.problems) == 100
    assert "range 0 at position 8" in report.problems[0]


def resigned(data):
    """A footer that somebody changed and signed again: only its own sense can betray it."""
    start = len(data) - tail_size(data)
    end = len(data) - TRAILER.size + TRAILER_CRC_AT
    struct.pack_into(">I", data, end, crc32c(memoryview(data)[start:end]))
    return data


def test_signed_nonsense_in_the_index_never_crashes():
    rng = random.Random(11)
    originals = [
        stamped(7, [(10, batch(2)), (15, batch(1))]),
        whole(build([Span(1, [batch(3), batch(1)]), Span(2, [batch(2)])])),
    ]
    found = 0
    for _ in range(3000):
        data = bytearray(rng.choice(originals))
        start = len(data) - tail_size(data)
        for _ in range(rng.randint(1, 3)):
            position = rng.randrange(start, len(data) - 8)
            data[position] = rng.randrange(256)
        try:
            resigned(data)
        except Corrupt:
            continue
        except struct.error:
            continue
        found += not verify(data).ok
    assert found > 1000


@pytest.mark.parametrize("field", [0, 8, 16], ids=["offset", "position", "timestamp"])
def test_a_point_that_names_no_batch_is_found(field):
    data = bytearray(stamped(7, large_span()))
    second_point = len(data) - tail_size(data) + ENTRY.size + POINT.size
    (value,) = struct.unpack_from(">q", data, second_point + field)
    struct.pack_into(">q", data, second_point + field, value - 1)
    assert not verify(resigned(data)).ok


def test_a_stamped_span_remembers_that_it_has_transactions():
    plain, transactional = (
        batch(),
        batch(transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
    )
    report = verify(stamped(7, [(0, plain), (1, transactional)]))
    assert report.ok
    assert report.index.entries[0].flags == RowFlags.OFFSETS_STAMPED | RowFlags.TRANSACTIONAL


@given(data=st.binary(max_size=300))
@moderate
def test_noise_is_no_object(data):
    assert not verify(data).ok
    with pytest.raises(Corrupt):
        read_index(data)


def test_markers_take_an_offset_and_no_bytes():
    builder = ObjectBuilder()
    builder.add_marker(4, 10, timestamp=TIME, producer_id=1, producer_epoch=0, flags=RowFlags.MARKER_ABORT)
    data = START_MAGIC + builder.footer()
    report = verify(data)
    assert report.ok
    (entry,) = report.index.entries
    assert (entry.is_marker, entry.first, entry.last, entry.size) == (True, 10, 10, 0)
    assert report.index.block_at_time(entry, 0) is None
