"""The unary calls of the native protocol: one request struct and one reply struct each.

A request frame names its method by number and carries the request; the answer has the same call id and
carries either the method's reply or an `ErrorReply`. Payloads are msgpack, decoded straight into typed
structs; what does not fit a type raises before any handler sees it. Lists in requests have bounds, so
that one frame cannot ask for unbounded work.
"""

from enum import IntEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, FloeError, Rejected
from floe.model.work import WorkKind
from floe.wire.native.values import (
    I64,
    Count,
    Number,
    Position,
    TopicValue,
    ViewValue,
    WireValue,
    WorkItemValue,
    error_code,
)

RANGES_MAX = 10_000  # ranges that one call may name
TOPICS_MAX = 10_000
WORK_ITEMS_MAX = 1_000
WORK_OBJECTS_MAX = 100_000
WAIT_MS_MAX = 5 * 60 * 1000
_Name = Annotated[str, Meta(max_length=249)]
_Ranges = Annotated[tuple[Number, ...], Meta(max_length=RANGES_MAX)]


class Method(IntEnum):
    """Numbers are never reused."""

    CLUSTER_INFO = 1
    DESCRIBE_TOPICS = 2
    FIND = 3
    FIND_TIMESTAMP = 4
    LIST_OFFSETS = 5
    CLAIM_WORK = 6
    FINISH_WORK = 7


class ClusterInfo(WireValue, frozen=True):
    """Who are you, and where are the others and the objects?"""


class BrokerAddress(WireValue, frozen=True):
    """Where one broker listens; port 0 means that it does not."""

    id: Number
    host: str
    kafka_port: Annotated[int, Meta(ge=0, le=65535)]
    native_port: Annotated[int, Meta(ge=0, le=65535)]
    zone: str = ""


class ClusterInfoReply(WireValue, frozen=True):
    """`objects_url` has no credentials in it; it is where bulk workers find the objects themselves."""

    cluster_id: str
    broker_id: Number
    brokers: tuple[BrokerAddress, ...]
    objects_url: str = ""


class DescribeTopics(WireValue, frozen=True):
    """Topics by name; None asks for all of them."""

    names: Annotated[tuple[_Name, ...], Meta(max_length=TOPICS_MAX)] | None = None


class DescribeTopicsReply(WireValue, frozen=True):
    """The topics that exist, by name; those not here do not exist."""

    topics: tuple[TopicValue, ...]


class FindItem(WireValue, frozen=True):
    """Rows of one range from `offset` on, about `max_bytes` of them."""

    range: Number
    offset: Position
    max_bytes: Count


class Find(WireValue, frozen=True):
    """Look up coordinates. With `wait_ms` the answer waits until one range has something past its offset."""

    requests: Annotated[tuple[FindItem, ...], Meta(max_length=RANGES_MAX)]
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)] = 0


class FindReply(WireValue, frozen=True):
    """One view per request, in order."""

    views: tuple[ViewValue, ...]


class FindTimestamp(WireValue, frozen=True):
    """The first row with a record at or after the timestamp."""

    range: Number
    timestamp: I64


class FindTimestampReply(WireValue, frozen=True):
    view: ViewValue


class ListOffsets(WireValue, frozen=True):
    """Both ends of each range."""

    ranges: _Ranges


class RangeEnds(WireValue, frozen=True):
    """Offsets are -1 when there is an error."""

    error: int
    log_start: Position = -1
    log_end: Position = -1
    last_stable: Position = -1


class ListOffsetsReply(WireValue, frozen=True):
    """One entry per range asked for, in order."""

    ends: tuple[RangeEnds, ...]


class ClaimWork(WireValue, frozen=True):
    """Lease at most `limit` items of these kinds."""

    worker: Annotated[str, Meta(min_length=1, max_length=249)]
    kinds: Annotated[tuple[WorkKind, ...], Meta(min_length=1, max_length=16)]
    limit: Annotated[int, Meta(ge=1, le=WORK_ITEMS_MAX)]


class ClaimWorkReply(WireValue, frozen=True):
    items: tuple[WorkItemValue, ...]


class FinishWork(WireValue, frozen=True):
    """The outcome of an item: the objects done; the rest go back to be claimed again."""

    item: WorkItemValue
    done: Annotated[tuple[Number, ...], Meta(max_length=WORK_OBJECTS_MAX)]


class FinishWorkReply(WireValue, frozen=True):
    """The result is stored; the coordinator carries it out."""


class ErrorReply(WireValue, frozen=True):
    """Why a call has no reply: Kafka's code and a sentence."""

    code: int
    message: str = ""

    @classmethod
    def of(cls, error: FloeError) -> "ErrorReply":
        return cls(error.code, str(error))

    def error(self) -> Rejected:
        """What the caller raises."""
        return Rejected(error_code(self.code), self.message)


class CallType(msgspec.Struct, frozen=True):
    """What a method takes and gives."""

    request: type[WireValue]
    reply: type[WireValue]


METHODS: dict[Method, CallType] = {
    Method.CLUSTER_INFO: CallType(ClusterInfo, ClusterInfoReply),
    Method.DESCRIBE_TOPICS: CallType(DescribeTopics, DescribeTopicsReply),
    Method.FIND: CallType(Find, FindReply),
    Method.FIND_TIMESTAMP: CallType(FindTimestamp, FindTimestampReply),
    Method.LIST_OFFSETS: CallType(ListOffsets, ListOffsetsReply),
    Method.CLAIM_WORK: CallType(ClaimWork, ClaimWorkReply),
    Method.FINISH_WORK: CallType(FinishWork, FinishWorkReply),
}

_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = {int(method): msgspec.msgpack.Decoder(types.request) for method, types in METHODS.items()}
_REPLIES = {int(method): msgspec.msgpack.Decoder(types.reply) for method, types in METHODS.items()}
_ERROR = msgspec.msgpack.Decoder(ErrorReply)
# What decoding raises for bytes that are not of the type asked for, nested beyond reason included.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def encode_payload(value: WireValue) -> bytes:
    """The payload of a request, a reply or an error."""
    return _ENCODER.encode(value)


def decode_call(method: int, payload: bytes) -> WireValue:
    """The request in a frame; raise `Rejected` for the caller to be told."""
    decoder = _REQUESTS.get(method)
    if decoder is None:
        raise Rejected(ErrorCode.UNSUPPORTED_VERSION, f"method {method} is not known here")
    try:
        return decoder.decode(payload)
    except _UNREADABLE as error:
        raise Rejected(ErrorCode.INVALID_REQUEST, f"{Method(method).name}: {error}") from None


def decode_reply(method: Method, payload: bytes) -> WireValue:
    """The reply to a call of this method; raise `Corrupt` when the peer's bytes are not one."""
    try:
        return _REPLIES[method].decode(payload)
    except _UNREADABLE as error:
        raise Corrupt(f"reply to {method.name}: {error}") from None


def decode_error(payload: bytes) -> ErrorReply:
    """The payload of an error frame; raise `Corrupt` when it is none."""
    try:
        return _ERROR.decode(payload)
    except _UNREADABLE as error:
        raise Corrupt(f"error reply: {error}") from None
