"""Produce: each partition's batch is checked by its header and handed to the engine, without copying.

The answer waits for nothing but the engine's own promise: durable and committed. acks=1 means the same as
acks=-1 here, since there is no moment at which a record is on one replica only. With acks=0 nobody is
answered, and as in Kafka an error then closes the connection: it is the only way to tell the client to look
again.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from floe.kafka.call import NO_ANSWER, Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.kafka.topic_lookup import TopicRoute
from floe.model.coordinates import EntryResult
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError, Rejected
from floe.model.ids import RangeId
from floe.observability.logs import get_log
from floe.wire.batch import CODEC_LZ4, CODEC_ZSTD, Batch, check_batches, with_append_time
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
    decode_request,
)

_log = get_log("kafka")
_ACKS = (-1, 0, 1)
_TOPIC_ID_VERSION = 13
_ZSTD_VERSION = 7
_NO_OFFSET = -1

Entry = tuple[RangeId, Batch]


class _Pending:
    """A request between its check and its outcome: the answer, and which of its parts wait for an entry."""

    __slots__ = ("acks", "answer", "entries", "waiting")

    def __init__(self, acks: int) -> None:
        self.acks = acks
        self.answer = ProduceResponse()
        self.entries: list[Entry] = []
        self.waiting: list[PartitionProduceResponse] = []


def handle(door: Door, call: Call) -> Outcome:
    """Check every partition, append what passes, answer when the engine has an outcome for each."""
    version = call.version
    request = decode_request(ApiKey.PRODUCE, version, call.body)
    assert isinstance(request, ProduceRequest)
    refusal = _refusal(request)
    pending = _Pending(request.acks)
    for topic in request.topic_data:
        by_id = version >= _TOPIC_ID_VERSION
        route = door.topics.by_id(topic.topic_id) if by_id else door.topics.by_name(topic.name)
        parts = [_partition(door, version, route, part, refusal, pending) for part in topic.partition_data]
        if route is None and by_id and refusal is None:
            for part in parts:
                part.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        pending.answer.responses.append(TopicProduceResponse(topic.name, topic.topic_id, parts))
    if not pending.entries:
        return _answer(call, pending)
    door.log.append(pending.entries).add_done_callback(partial(_appended, door, call, pending))
    return None


def _refusal(request: ProduceRequest) -> PartitionProduceResponse | None:
    """Why no partition of the request can be taken."""
    if request.acks not in _ACKS:
        return _refused(0, ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; it must be -1, 0 or 1")
    if request.transactional_id is not None:
        return _refused(
            0,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactions are not available on this broker",
        )
    return None


def _partition(
    door: Door,
    version: int,
    route: TopicRoute | None,
    part: PartitionProduceData,
    refusal: PartitionProduceResponse | None,
    pending: _Pending,
) -> PartitionProduceResponse:
    """The partition's place in the answer; its batch joins the entries if it is good."""
    index = part.index
    if refusal is not None:
        return _refused(index, ErrorCode(refusal.error_code), refusal.error_message)
    if route is None or not 0 <= index < route.partition_count:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    if not route.is_produced_by_kafka:
        reason = "the topic's ranges split and merge; produce to it with the native client"
        return _refused(index, ErrorCode.POLICY_VIOLATION, reason)
    try:
        (batch,) = check_batches(
            part.records,
            batch_size_max=route.batch_bytes_max,
            codec_max=CODEC_ZSTD if version >= _ZSTD_VERSION else CODEC_LZ4,
        )
    except Rejected as error:
        return _refused(index, error.code, error.message)
    if batch.is_transactional:
        return _refused(index, ErrorCode.INVALID_TXN_STATE, "the batch is part of no open transaction")
    answer = PartitionProduceResponse(index)
    if route.is_log_append_time:
        answer.log_append_time_ms = door.clock.now_ms()
        batch = with_append_time(batch, answer.log_append_time_ms)
    pending.entries.append((route.ranges[index], batch))
    pending.waiting.append(answer)
    return answer


def _refused(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index, code, _NO_OFFSET, error_message=message)


def _appended(door: Door, call: Call, pending: _Pending, future: "asyncio.Future[list[EntryResult]]") -> None:
    """The engine has an outcome for every entry, or failed as a whole."""
    results = _results(future, len(pending.entries))
    records = 0
    for answer, result, (_, batch) in zip(pending.waiting, results, pending.entries, strict=True):
        answer.error_code = result.error
        answer.base_offset = result.base_offset
        answer.log_start_offset = result.log_start
        if result.error == 0:
            records += batch.record_count
    door.counters.records_in += records
    pieces = _answer(call, pending)
    if pieces is not None:
        call.finish(pieces)


def _results(future: "asyncio.Future[list[EntryResult]]", count: int) -> Sequence[EntryResult]:
    if future.cancelled():
        return [EntryResult(ErrorCode.REQUEST_TIMED_OUT)] * count
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, FloeError):
        _log.error("append failed", exc_info=error)
        return [EntryResult(ErrorCode.UNKNOWN_SERVER_ERROR)] * count
    return [EntryResult(error.code)] * count


def _answer(call: Call, pending: _Pending) -> Pieces | None:
    """The answer; None when the connection was ended instead."""
    if pending.acks != 0:
        return call.encode(pending.answer)
    for topic in pending.answer.responses:
        for part in topic.partition_responses:
            if part.error_code != 0:
                call.fail("produce with acks=0 failed", error=ErrorCode(part.error_code).name)
                return None
    return NO_ANSWER
