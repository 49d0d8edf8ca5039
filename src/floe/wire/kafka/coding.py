"""Bodies of requests and responses to messages and back.

Whatever bytes arrive, decoding a request returns a message or raises Rejected: UNSUPPORTED_VERSION for a
version no table describes, INVALID_REQUEST for everything else. Decoding a response raises Corrupt. A message
that cannot be encoded is a bug and raises Internal.
"""

import struct
from collections.abc import Iterable
from functools import cache

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Internal, Rejected
from floe.wire.kafka.apis import API, ApiKey, ApiSpec
from floe.wire.kafka.codec import Reader, Writer, reader, writer
from floe.wire.kafka.registry import MESSAGES
from floe.wire.kafka.schema.fields import Buffer, Struct

# A hostile body can hold an element in two bytes, and a decoded element takes some fifty; requests without
# records never come near this.
PLAIN_BODY_MAX = 16 << 20

_MALFORMED = (IndexError, ValueError, struct.error)
_UNENCODABLE = (AttributeError, TypeError, ValueError, struct.error)


def decode_request(api_key: int, version: int, body: memoryview) -> Struct:
    """The request in a body. Records are views of the body.

    Bytes after the request are ignored, as Kafka ignores them: librdkafka 2 sends three when it asks for
    all topics.
    """
    read = request_reader(api_key, version)
    end = len(body)
    if end > PLAIN_BODY_MAX and api_key != ApiKey.PRODUCE:
        raise Rejected(ErrorCode.INVALID_REQUEST, f"request too large: key={api_key} size={end}")
    try:
        return read(body, 0, end)[0]
    except _MALFORMED as fault:
        text = f"malformed request: key={api_key} version={version} fault={fault}"
        raise Rejected(ErrorCode.INVALID_REQUEST, text) from fault


def decode_response(api_key: int, version: int, body: memoryview) -> Struct:
    """The response in a body, which must end where the response ends. Records are views of the body."""
    read = _response_reader(api_key, version)
    end = len(body)
    try:
        message, position = read(body, 0, end)
    except _MALFORMED as fault:
        raise Corrupt(f"malformed response: key={api_key} version={version} fault={fault}") from fault
    if position != end:
        raise Corrupt(f"bytes after the response: key={api_key} version={version} count={end - position}")
    return message


def encode_request(api_key: int, version: int, message: Struct) -> list[Buffer]:
    """The pieces of a request's body; pieces of records are those of the message."""
    return _encode(_request_writer(api_key, version), message, bytearray())


def encode_response(api_key: int, version: int, message: Struct) -> list[Buffer]:
    """The pieces of a response's body; pieces of records are those of the message."""
    return _encode(response_writer(api_key, version), message, bytearray())


def encode_response_after(head: bytearray, api_key: int, version: int, message: Struct) -> list[Buffer]:
    """As `encode_response`, with `head` at the front of the first piece."""
    return _encode(response_writer(api_key, version), message, head)


def prepare(keys: Iterable[int]) -> None:
    """Make the readers and writers a broker needs for these APIs now rather than at the first request."""
    for key in keys:
        for version in range(API[key].min_version, API[key].max_version + 1):
            request_reader(key, version)
            response_writer(key, version)


@cache
def request_reader(api_key: int, version: int) -> Reader:
    spec = _known(api_key, version)
    return reader(MESSAGES[api_key][0], version, spec.is_flexible(version))


@cache
def response_writer(api_key: int, version: int) -> Writer:
    spec = _known(api_key, version)
    return writer(MESSAGES[api_key][1], version, spec.is_flexible(version))


@cache
def _response_reader(api_key: int, version: int) -> Reader:
    spec = _known(api_key, version)
    return reader(MESSAGES[api_key][1], version, spec.is_flexible(version))


@cache
def _request_writer(api_key: int, version: int) -> Writer:
    spec = _known(api_key, version)
    return writer(MESSAGES[api_key][0], version, spec.is_flexible(version))


def _known(api_key: int, version: int) -> ApiSpec:
    spec = API.get(api_key)
    if spec is None or not spec.knows(version):
        raise Rejected(ErrorCode.UNSUPPORTED_VERSION, f"unknown: key={api_key} version={version}")
    return spec


def _encode(write: Writer, message: Struct, head: bytearray) -> list[Buffer]:
    pieces: list[Buffer] = []
    try:
        last = write(message, head, pieces)
    except _UNENCODABLE as fault:
        raise Internal(f"cannot encode: message={type(message).__name__} fault={fault}") from fault
    pieces.append(last)
    return pieces
