"""Frames: any split of the stream gives the same frames; anything that was tampered with gives none."""

import hashlib
import hmac
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.native.frames import HEADER_SIZE, MAC_SIZE, Frame, Kind, NativeDecoder, NativeEncoder

KEY = b"k" * 32
moderate = settings(max_examples=80, deadline=None)
FRAMES = st.lists(
    st.builds(
        Frame,
        st.sampled_from(Kind),
        st.integers(0, 0xFFFF),
        st.integers(0, 0xFFFFFFFF),
        st.binary(max_size=60),
    ),
    max_size=6,
)
THREE = [
    Frame(Kind.REQUEST, 3, 1, b"one"),
    Frame(Kind.RESPONSE, 3, 1, b""),
    Frame(Kind.ERROR, 4, 2, b"three"),
]


def encode_all(frames, key=KEY):
    encoder = NativeEncoder(key)
    return [encoder.encode(frame.kind, frame.method, frame.call_id, frame.payload) for frame in frames]


@given(frames=FRAMES, data=st.data())
@moderate
def test_any_split_of_the_stream_gives_the_same_frames(frames, data):
    stream = b"".join(encode_all(frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    decoder = NativeDecoder(KEY)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += decoder.feed(memoryview(stream)[start:end])
    assert found == frames
    assert decoder.failure is None


def test_a_byte_at_a_time_is_enough():
    decoder = NativeDecoder(KEY)
    found = [frame for byte in b"".join(encode_all(THREE)) for frame in decoder.feed(bytes((byte,)))]
    assert found == THREE


@given(frames=FRAMES.filter(bool), data=st.data())
@moderate
def test_no_changed_byte_is_taken_and_frames_before_it_are(frames, data):
    pieces = encode_all(frames)
    stream = bytearray(b"".join(pieces))
    position = data.draw(st.integers(0, len(stream) - 1))
    stream[position] ^= data.draw(st.integers(1, 255))
    whole, untouched = 0, 0
    for piece in pieces:
        untouched += len(piece)
        if untouched > position:
            break
        whole += 1
    decoder = NativeDecoder(KEY)
    assert decoder.feed(stream) == frames[:whole]
    # A length that grew may only make the decoder wait for bytes that never come.
    assert decoder.failure is not None or decoder.feed(b"") == []


def test_after_a_failure_nothing_is_taken_any_more():
    first, second, third = encode_all(THREE)
    broken = bytearray(second)
    broken[-1] ^= 1
    decoder = NativeDecoder(KEY)
    assert decoder.feed(first + broken + third) == THREE[:1]
    assert isinstance(decoder.failure, Corrupt)
    with pytest.raises(Corrupt):
        decoder.feed(third)


@pytest.mark.parametrize(
    "order", [(1,), (0, 0), (0, 2), (1, 0)], ids=["dropped", "repeated", "skipped", "swapped"]
)
def test_frames_cannot_be_dropped_repeated_or_reordered(order):
    pieces = encode_all(THREE)
    decoder = NativeDecoder(KEY)
    decoder.feed(b"".join(pieces[index] for index in order))
    assert isinstance(decoder.failure, Corrupt)


def test_another_key_is_refused():
    decoder = NativeDecoder(KEY)
    assert decoder.feed(b"".join(encode_all(THREE, key=b"x" * 32))) == []
    assert isinstance(decoder.failure, Corrupt)


@pytest.mark.parametrize("size", [0, HEADER_SIZE + MAC_SIZE - 5, 201, 2**31, 2**32 - 1])
def test_sizes_are_checked_before_any_byte_is_awaited(size):
    decoder = NativeDecoder(KEY, frame_size_max=200)
    assert decoder.feed(struct.pack(">I", size)) == []
    assert isinstance(decoder.failure, Rejected)
    assert decoder.failure.code == ErrorCode.INVALID_REQUEST


def test_a_frame_may_be_as_large_as_the_limit_and_no_larger():
    room = 200 - (HEADER_SIZE - 4 + MAC_SIZE)
    encoder = NativeEncoder(KEY, frame_size_max=200)
    with pytest.raises(Rejected) as caught:
        encoder.encode(Kind.REQUEST, 1, 1, bytes(room + 1))
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    (frame,) = NativeDecoder(KEY, frame_size_max=200).feed(encoder.encode(Kind.REQUEST, 1, 1, bytes(room)))
    assert len(frame.payload) == room


def signed(body, number=0):
    """A frame signed as documented, by other code than the encoder's."""
    return body + hmac.new(KEY, struct.pack(">Q", number) + body, hashlib.sha256).digest()[:16]


def test_the_layout_is_as_documented():
    body = bytes.fromhex("00 00 00 19 01 00 00 03 01 02 03 04 90")
    assert encode_all([Frame(Kind.REQUEST, 3, 0x01020304, b"\x90")]) == [signed(body)]


@pytest.mark.parametrize(("kind", "flags"), [(0, 0), (5, 0), (255, 0), (1, 1)])
def test_unknown_kinds_and_flags_are_refused_even_when_signed(kind, flags):
    decoder = NativeDecoder(KEY)
    assert decoder.feed(signed(struct.pack(">IBBHI", 24, kind, flags, 1, 1))) == []
    assert isinstance(decoder.failure, Rejected)
