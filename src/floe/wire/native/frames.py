"""Frames of the native protocol: a length, a short header, a payload, a MAC.

    0  size          u32   bytes after this field: header rest + payload + MAC
    4  kind          u8    request, response, error, cancel
    5  flags         u8    0
    6  method        u16
    8  call id       u32   chosen by the caller, unique among its calls under way
    12 payload             msgpack
    .. MAC           16    HMAC-SHA256, cut to 16 bytes, over the frame's number and all bytes before it

Each direction has a key of its own from the handshake and numbers its frames from 0; the number is not
sent. So a frame that was changed, injected, dropped, repeated or reordered on the way fails its MAC.
docs/reference/native-frames.md gives the reasons.

Sans I/O: bytes in, frames out. A peer that breaks the rules is not talked to again.
"""

import hmac
from enum import IntEnum
from struct import Struct

import msgspec

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError, Rejected

FRAME_SIZE_MAX = 16 << 20  # of a frame's `size`; what a peer may make this side hold
MAC_SIZE = 16
HEADER_SIZE = 12
CALL_ID_MAX = 0xFFFFFFFF

_HEADER = Struct(">IBBHI")
_SIZE = Struct(">I")
_NUMBER = Struct(">Q")
_SIZE_MIN = HEADER_SIZE - _SIZE.size + MAC_SIZE


class Kind(IntEnum):
    """What a frame is. `CANCEL` is kept for streams: it has a number now so that no one else takes it."""

    REQUEST = 1
    RESPONSE = 2
    ERROR = 3
    CANCEL = 4


_KINDS = {int(kind): kind for kind in Kind}


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One frame whose MAC was right; `method` is a number that may be unknown to this side."""

    kind: Kind
    method: int
    call_id: int
    payload: bytes


class NativeEncoder:
    """One direction's sender: numbers frames and signs them with that direction's key."""

    def __init__(self, key: bytes, *, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self._key = key
        self._frame_size_max = frame_size_max
        self._number = 0

    def encode(self, kind: Kind, method: int, call_id: int, payload: bytes) -> bytes:
        """The frame's bytes, to be sent after those of every earlier call.

        Raise `Rejected(MESSAGE_TOO_LARGE)` for a payload that no peer would take; nothing was numbered then.
        """
        size = len(payload) + _SIZE_MIN
        if size > self._frame_size_max:
            raise Rejected(
                ErrorCode.MESSAGE_TOO_LARGE, f"frame of {size} bytes; at most {self._frame_size_max} are sent"
            )
        body = _HEADER.pack(size, kind, 0, method, call_id) + payload
        mac = _mac(self._key, self._number, body)
        self._number += 1
        return body + mac


class NativeDecoder:
    """One direction's receiver: cuts bytes into frames and checks their MACs.

    However the bytes are split, the frames are the same. The first broken rule ends it: `feed` still
    returns the frames before it, `failure` says what was wrong, and every later `feed` raises that.
    """

    def __init__(self, key: bytes, *, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self._key = key
        self._frame_size_max = frame_size_max
        self._number = 0
        self._buffer = bytearray()
        self.failure: FloeError | None = None

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Take bytes and return the frames that they complete."""
        if self.failure is not None:
            raise self.failure
        buffer = self._buffer
        buffer += data
        frames: list[Frame] = []
        position = 0
        while len(buffer) - position >= _SIZE.size:
            (size,) = _SIZE.unpack_from(buffer, position)
            if not _SIZE_MIN <= size <= self._frame_size_max:
                self._fail(Rejected(ErrorCode.INVALID_REQUEST, f"frame of {size} bytes is not taken"))
                return frames
            end = position + _SIZE.size + size
            if end > len(buffer):
                break
            frame = self._frame(bytes(memoryview(buffer)[position:end]))
            if frame is None:
                return frames
            frames.append(frame)
            position = end
        del buffer[:position]
        return frames

    def _frame(self, data: bytes) -> Frame | None:
        body = data[:-MAC_SIZE]
        if not hmac.compare_digest(_mac(self._key, self._number, body), data[-MAC_SIZE:]):
            self._fail(Corrupt(f"MAC of frame {self._number} is wrong"))
            return None
        self._number += 1
        _, code, flags, method, call_id = _HEADER.unpack_from(body)
        kind = _KINDS.get(code)
        if kind is None or flags != 0:
            self._fail(Rejected(ErrorCode.INVALID_REQUEST, f"frame of kind {code}, flags {flags}"))
            return None
        return Frame(kind, method, call_id, body[HEADER_SIZE:])

    def _fail(self, error: FloeError) -> None:
        self.failure = error
        self._buffer.clear()


def _mac(key: bytes, number: int, body: bytes) -> bytes:
    return hmac.digest(key, _NUMBER.pack(number) + body, "sha256")[:MAC_SIZE]
