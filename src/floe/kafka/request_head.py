"""A request's header on the hot path: nothing is allocated, and the client id is not looked at."""

from struct import Struct

from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected
from floe.wire.kafka.apis import ApiSpec
from floe.wire.kafka.framing import read_header

HEAD_SIZE = 10  # before the client id
_unpack = Struct(">hhih").unpack_from


def peek(frame: memoryview) -> tuple[int, int, int, int]:
    """(API key, version, correlation id, size of the client id or -1); raises `Rejected`."""
    if len(frame) < HEAD_SIZE:
        raise Rejected(ErrorCode.INVALID_REQUEST, f"a request header takes {HEAD_SIZE} bytes at least")
    head: tuple[int, int, int, int] = _unpack(frame)
    return head


def body_position(frame: memoryview, spec: ApiSpec, version: int, client_id_size: int) -> int:
    """Where the body begins; raises `Rejected` when the header is cut off."""
    position = HEAD_SIZE + client_id_size if client_id_size > 0 else HEAD_SIZE
    if spec.first_flexible is not None and version >= spec.first_flexible:
        if position < len(frame) and frame[position] == 0:
            return position + 1
        return read_header(frame)[1]  # tagged fields, which no client is known to send; or cut off
    if position > len(frame):
        raise Rejected(ErrorCode.INVALID_REQUEST, "the client id is cut off")
    return position
