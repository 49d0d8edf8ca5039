"""Zigzag varints against another implementation."""

import pytest
from aiokafka.record.util import decode_varint_py, encode_varint_py
from hypothesis import example, given, settings
from hypothesis import strategies as st

from floe.model.errors import Corrupt
from floe.wire.varint import append_varint, read_varint


@given(value=st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300))
@example(-(2**63))
@example(2**63 - 1)
@settings(max_examples=200, deadline=None)
def test_values_come_back_and_bytes_are_the_others(value):
    out = bytearray()
    append_varint(out, value)
    assert read_varint(b"\xaa" + out + b"\xaa", 1) == (value, 1 + len(out))
    theirs = bytearray()
    encode_varint_py(value, theirs.append)
    assert out == theirs
    assert decode_varint_py(out) == (value, len(out))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9, b"\xff" * 11, b"\x80" * 10 + b"\x00"])
def test_bytes_that_end_or_do_not_end_are_corrupt(data):
    with pytest.raises(Corrupt):
        read_varint(data, 0)
