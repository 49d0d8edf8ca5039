"""Codecs both ways, their limits, and bytes that lie about their size."""

import gzip
import random

import cramjam
import lz4.frame
import pytest
import zstandard
from aiokafka import codec as foreign
from hypothesis import given, settings
from hypothesis import strategies as st

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError, Rejected
from floe.wire.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD
from floe.wire.compression import compress, decompress

CODECS = [CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD]
SIZE_MAX = 1 << 20
PAYLOADS = st.binary(max_size=2000) | st.binary(min_size=1, max_size=20).map(lambda piece: piece * 5000)


@pytest.mark.parametrize("codec", CODECS)
@given(data=PAYLOADS)
@settings(max_examples=40, deadline=None)
def test_what_was_compressed_comes_back(codec, data):
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    assert decompress(codec, memoryview(bytearray(packed)), SIZE_MAX) == data


@pytest.mark.parametrize("codec", CODECS)
def test_one_byte_above_the_limit_is_refused(codec):
    data = b"abc" * 50_000
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    for limit in (len(data) - 1, 1, 0):
        with pytest.raises(Rejected) as caught:
            decompress(codec, packed, limit)
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (CODEC_GZIP, gzip.compress),
        (CODEC_GZIP, lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:])),
        (CODEC_SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
        (CODEC_SNAPPY, foreign.snappy_encode),
        (
            CODEC_SNAPPY,
            lambda data: foreign.snappy_encode(data, xerial_blocksize=1000),
        ),
        (CODEC_LZ4, lz4.frame.compress),
        (CODEC_LZ4, lambda data: lz4.frame.compress(data, content_checksum=True, block_checksum=True)),
        (CODEC_LZ4, lambda data: lz4.frame.compress(data, store_size=False, block_linked=True)),
        (CODEC_ZSTD, zstandard.ZstdCompressor(write_checksum=True).compress),
        (CODEC_ZSTD, zstandard.ZstdCompressor(write_content_size=False, level=19).compress),
        (CODEC_ZSTD, lambda data: zstandard.compress(data[:100]) + zstandard.compress(data[100:])),
    ],
)
def test_every_shape_that_clients_write_is_read(codec, pack):
    data = random.Random(2).randbytes(3000) + b"repeated " * 20_000
    assert decompress(codec, pack(data), SIZE_MAX) == data


@pytest.mark.parametrize(
    ("codec", "unpack"),
    [
        (CODEC_GZIP, gzip.decompress),
        (CODEC_SNAPPY, foreign.snappy_decode),
        (CODEC_LZ4, lz4.frame.decompress),
        (CODEC_ZSTD, zstandard.decompress),
    ],
)
def test_others_read_what_we_write(codec, unpack):
    data = random.Random(3).randbytes(3000) + b"repeated " * 20_000
    assert bytes(unpack(compress(codec, data))) == data


def test_lz4_frames_have_independent_blocks_since_java_reads_no_others():
    info = lz4.frame.get_frame_info(compress(CODEC_LZ4, b"x" * 200_000))
    assert not info["block_linked"]


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        (CODEC_SNAPPY, b"\xff\xff\xff\xff\x07ab"),  # says 2 GiB in 7 bytes
        (CODEC_SNAPPY, b"\xff" * 20),
        (CODEC_SNAPPY, b""),
        (CODEC_SNAPPY, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xff"),
        (CODEC_SNAPPY, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0"),
        (CODEC_LZ4, compress(CODEC_LZ4, b"abc") + b"more"),
        (CODEC_LZ4, b""),
        (CODEC_GZIP, compress(CODEC_GZIP, b"abc") + b"more"),
        (CODEC_ZSTD, b"\x28\xb5\x2f\xfd\xe4" + b"\xff" * 8),  # a frame that says 2^64 - 1 bytes
    ],
)
def test_lying_sizes_are_corrupt(codec, packed):
    with pytest.raises(Corrupt):
        decompress(codec, packed, SIZE_MAX)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_mutated_and_truncated_bytes_give_bounded_output_or_an_error(codec):
    rng = random.Random(codec)
    packed = compress(codec, b"hello world %d" * 2000)
    for _ in range(500):
        broken = bytearray(packed)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if rng.random() < 0.3:
            del broken[rng.randrange(len(broken)) :]
        try:
            assert len(decompress(codec, broken, 100_000)) <= 100_000
        except FloeError:
            continue


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_unknown_codecs_are_refused_both_ways(codec):
    for call in (lambda: compress(codec, b""), lambda: decompress(codec, b"", 1)):
        with pytest.raises(Rejected) as caught:
            call()
        assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
