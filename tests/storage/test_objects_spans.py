"""Merged reads cover every span and no more than the gap allows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from floe.storage.objects.spans import cut, merged

spans_of = st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 400)), max_size=12)


@given(spans_of, st.integers(0, 300))
def test_every_span_is_cut_from_what_is_read(spans: list[tuple[int, int]], gap: int) -> None:
    content = memoryview(bytes(number % 251 for number in range(4000)))
    wholes = merged(spans, gap)
    contents = [content[position : position + size] for position, size in wholes]
    assert [bytes(view) for view in cut(spans, wholes, contents)] == [
        bytes(content[position : position + size]) for position, size in spans
    ]


@given(spans_of, st.integers(0, 300))
def test_reads_are_ordered_apart_and_waste_no_more_than_the_gap(
    spans: list[tuple[int, int]], gap: int
) -> None:
    wholes = merged(spans, gap)
    for (first, size), (second, _) in pairwise(wholes):
        assert second > first + size + gap
    wanted = {byte for position, size in spans for byte in range(position, position + size)}
    read = {byte for position, size in wholes for byte in range(position, position + size)}
    assert wanted <= read
    assert len(read) - len(wanted) <= gap * max(len(spans) - len(wholes), 0)
