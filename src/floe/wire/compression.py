"""The four codecs of record batches, both ways, in bounded memory.

`decompress` never returns more than `size_max` bytes and takes no more memory than a small multiple of that
(and, for zstd, its window, which the library holds to 128 MiB): whoever wrote the bytes may have meant
harm. Too much raises `Rejected(MESSAGE_TOO_LARGE)`,
bytes that the codec cannot read raise `Corrupt`.

Snappy comes in two shapes: Java clients wrap blocks in xerial's stream, others send one raw block. Both
are read, xerial's is written, since every client reads it.
"""

import zlib
from collections.abc import Callable
from struct import Struct

import cramjam
import lz4.frame
import zstandard

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD, Buffer

_GZIP_WBITS = 31  # a gzip header and trailer around deflate
_GZIP_LEVEL = 6
_ZSTD_LEVEL = 3
_READ_BYTES = 1 << 20
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version and oldest compatible version
_XERIAL_BLOCK = 32 << 10
_SNAPPY_RATIO_MAX = 22  # three bytes copy at most 64: a length that says more is a lie
_U32 = Struct(">I")


def compress(codec: int, data: Buffer) -> bytes:
    """Compress as the Java client would read it; the same bytes give the same bytes."""
    if codec == CODEC_NONE:
        return bytes(data)
    writer = _WRITERS.get(codec)
    if writer is None:
        raise _unknown(codec)
    return writer(data)


def decompress(codec: int, data: Buffer, size_max: int) -> bytes:
    """At most `size_max` bytes, or `Rejected` or `Corrupt`."""
    if codec == CODEC_NONE:
        if len(data) > size_max:
            raise _too_large(size_max)
        return bytes(data)
    reader = _READERS.get(codec)
    if reader is None:
        raise _unknown(codec)
    return reader(memoryview(data), size_max)


def _unknown(codec: int) -> Rejected:
    return Rejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {codec} is not known")


def _too_large(size_max: int) -> Rejected:
    return Rejected(ErrorCode.MESSAGE_TOO_LARGE, f"records take more than {size_max} bytes when decompressed")


def _write_gzip(data: Buffer) -> bytes:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()


def _read_gzip(data: memoryview, size_max: int) -> bytes:
    """One member after another, as Java reads them."""
    out = bytearray()
    rest: Buffer = data
    try:
        while rest:
            decompressor = zlib.decompressobj(_GZIP_WBITS)
            out += decompressor.decompress(rest, size_max + 1 - len(out))
            if len(out) > size_max:
                raise _too_large(size_max)
            if not decompressor.eof:
                raise Corrupt("gzip data ends early")
            rest = decompressor.unused_data
    except zlib.error as error:
        raise Corrupt(f"gzip: {error}") from None
    return bytes(out)


def _write_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        pieces += (_U32.pack(len(block)), block)
    return b"".join(pieces)


def _read_snappy(data: memoryview, size_max: int) -> bytes:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _read_snappy_block(data, 0, size_max)
    out = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _U32.size:
            raise Corrupt("snappy stream ends inside a block length")
        (size,) = _U32.unpack_from(data, position)
        position += _U32.size
        if size > len(data) - position:
            raise Corrupt(f"snappy block of {size} bytes is cut off")
        out += _read_snappy_block(data[position : position + size], len(out), size_max)
        position += size
    return bytes(out)


def _read_snappy_block(block: memoryview, size_before: int, size_max: int) -> bytes:
    """The block says its decompressed size first; that is checked before memory is taken for it."""
    size = _snappy_size(block)
    if size > len(block) * _SNAPPY_RATIO_MAX:
        raise Corrupt(f"snappy block of {len(block)} bytes cannot hold {size}")
    if size_before + size > size_max:
        raise _too_large(size_max)
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise Corrupt(f"snappy: {error}") from None


def _snappy_size(block: memoryview) -> int:
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return size
    raise Corrupt("snappy block without a length")


def _write_lz4(data: Buffer) -> bytes:
    """Independent blocks, since the Java client reads no others."""
    frame = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return bytes(frame)


def _read_lz4(data: memoryview, size_max: int) -> bytes:
    decompressor = lz4.frame.LZ4FrameDecompressor()
    pieces: list[bytes] = []
    size = 0
    rest: Buffer = data
    try:
        while not decompressor.eof:
            piece = decompressor.decompress(rest, max_length=min(_READ_BYTES, size_max + 1 - size))
            rest = b""
            size += len(piece)
            if size > size_max:
                raise _too_large(size_max)
            if not piece and not decompressor.eof:
                raise Corrupt("lz4 frame ends early")
            pieces.append(piece)
    except RuntimeError as error:
        raise Corrupt(f"lz4: {error}") from None
    if decompressor.unused_data:
        raise Corrupt("bytes after the lz4 frame")
    return b"".join(pieces)


def _write_zstd(data: Buffer) -> bytes:
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(data)


def _read_zstd(data: memoryview, size_max: int) -> bytes:
    """Read in steps: neither the size that a frame claims nor its blocks decide how much memory is taken.

    A frame that is cut off between blocks comes back short; the record count tells.
    """
    pieces: list[bytes] = []
    size = 0
    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    try:
        while piece := reader.read(min(_READ_BYTES, size_max + 1 - size)):
            size += len(piece)
            if size > size_max:
                raise _too_large(size_max)
            pieces.append(piece)
    except zstandard.ZstdError as error:
        raise Corrupt(f"zstd: {error}") from None
    return b"".join(pieces)


_WRITERS: dict[int, Callable[[Buffer], bytes]] = {
    CODEC_GZIP: _write_gzip,
    CODEC_SNAPPY: _write_snappy,
    CODEC_LZ4: _write_lz4,
    CODEC_ZSTD: _write_zstd,
}
_READERS: dict[int, Callable[[memoryview, int], bytes]] = {
    CODEC_GZIP: _read_gzip,
    CODEC_SNAPPY: _read_snappy,
    CODEC_LZ4: _read_lz4,
    CODEC_ZSTD: _read_zstd,
}
