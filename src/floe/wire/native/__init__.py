"""The native protocol: a handshake, then frames, then typed calls inside frames; no I/O."""

from floe.wire.native.calls import (
    METHODS,
    CallType,
    ErrorReply,
    Method,
    decode_call,
    decode_error,
    decode_reply,
    encode_payload,
)
from floe.wire.native.frames import FRAME_SIZE_MAX, Frame, Kind, NativeDecoder, NativeEncoder
from floe.wire.native.handshake import ClientHandshake, ServerHandshake, Session

__all__ = [
    "FRAME_SIZE_MAX",
    "METHODS",
    "CallType",
    "ClientHandshake",
    "ErrorReply",
    "Frame",
    "Kind",
    "Method",
    "NativeDecoder",
    "NativeEncoder",
    "ServerHandshake",
    "Session",
    "decode_call",
    "decode_error",
    "decode_reply",
    "encode_payload",
]
