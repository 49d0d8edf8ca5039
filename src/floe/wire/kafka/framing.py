"""Frames and headers: a 4-byte length, a header, a body.

Request headers are of version 1 (key, version, correlation id, client id) and from an API's first flexible
version on of version 2, which adds a tagged section; an unknown API is read as version 1. Response headers
hold the correlation id and, from the first flexible version on, a tagged section; but ApiVersions answers
without one in every version, since the client does not yet know what we understand.
"""

from struct import Struct as Format
from struct import error as FormatError

import msgspec

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.kafka.apis import API, ApiKey, ApiSpec
from floe.wire.kafka.coding import encode_request, encode_response_after
from floe.wire.kafka.schema.fields import LAST_VERSION, Buffer, Struct
from floe.wire.kafka.varint import skip_tags

LENGTH_SIZE = 4

_LENGTH = Format(">i")
_REQUEST = Format(">hhih")
_RESPONSE = Format(">i")
_RESPONSE_FLEXIBLE = Format(">ix")
_FRAME = Format(">ii")
_FRAME_FLEXIBLE = Format(">iix")

_FLEXIBLE_RESPONSE_HEADER_SINCE = {
    key: LAST_VERSION + 1
    if spec.first_flexible is None or key == ApiKey.API_VERSIONS
    else spec.first_flexible
    for key, spec in API.items()
}


class RequestHeader(msgspec.Struct, gc=False):
    """Who asks for what; `client_id` is None when the client gave none."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def read_header(view: memoryview) -> tuple[RequestHeader, int]:
    """The header that begins a request (the frame's length not included) and the body's position.

    Raises Rejected(INVALID_REQUEST). Neither key nor version need be known.
    """
    try:
        return _read_header(view)
    except (IndexError, ValueError, FormatError) as fault:
        raise Rejected(ErrorCode.INVALID_REQUEST, f"malformed request header: fault={fault}") from fault


def _read_header(view: memoryview) -> tuple[RequestHeader, int]:
    api_key, version, correlation_id, length = _REQUEST.unpack_from(view)
    position = _REQUEST.size
    client_id = None
    if length >= 0:
        end = position + length
        if end > len(view):
            raise IndexError("client_id")
        client_id = view[position:end].tobytes().decode()
        position = end
    spec = API.get(api_key)
    if spec is not None and spec.is_flexible(version):
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, len(view), tags)
    return RequestHeader(api_key, version, correlation_id, client_id), position


def write_request_header(spec: ApiSpec, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request, as a client sends it."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    head = _REQUEST.pack(spec.key, version, correlation_id, length) + name
    return head + b"\0" if spec.is_flexible(version) else head


def write_response_header(spec: ApiSpec, version: int, correlation_id: int) -> bytes:
    """The header of a response."""
    if _has_flexible_response_header(spec, version):
        return _RESPONSE_FLEXIBLE.pack(correlation_id)
    return _RESPONSE.pack(correlation_id)


def read_response_header(spec: ApiSpec, version: int, view: memoryview) -> tuple[int, int]:
    """The correlation id and the body's position; raises Corrupt."""
    try:
        (correlation_id,) = _RESPONSE.unpack_from(view)
        position = _RESPONSE.size
        if _has_flexible_response_header(spec, version):
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, len(view), tags)
    except (IndexError, ValueError, FormatError) as fault:
        raise Corrupt(f"malformed response header: fault={fault}") from fault
    return correlation_id, position


def frame(pieces: list[Buffer]) -> list[Buffer]:
    """The pieces of one message with their common length before them."""
    return [_LENGTH.pack(sum(map(len, pieces))), *pieces]


def request_frame(
    spec: ApiSpec, version: int, correlation_id: int, client_id: str | None, message: Struct
) -> list[Buffer]:
    """A whole request, as a client sends it."""
    head = write_request_header(spec, version, correlation_id, client_id)
    return frame([head, *encode_request(spec.key, version, message)])


def response_frame(spec: ApiSpec, version: int, correlation_id: int, message: Struct) -> list[Buffer]:
    """A whole response; length and header stand in the first piece, so that no piece is added for them."""
    form = _FRAME_FLEXIBLE if _has_flexible_response_header(spec, version) else _FRAME
    head = bytearray(form.pack(0, correlation_id))
    pieces = encode_response_after(head, spec.key, version, message)
    size = len(head) if len(pieces) == 1 else sum(map(len, pieces))
    _LENGTH.pack_into(head, 0, size - LENGTH_SIZE)
    return pieces


def _has_flexible_response_header(spec: ApiSpec, version: int) -> bool:
    return version >= _FLEXIBLE_RESPONSE_HEADER_SINCE[spec.key]
