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
from floe.wire.batch import CODEC_LZ4, CODEC_ZSTD, TRANSACTIONAL_BIT, Batch, check_batches, with_append_time
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
    decode_request,
)

_log = get_log("kafka")
_PRODUCE = int(ApiKey.PRODUCE)
_ACKS = (-1, 1, 0)
_TOPIC_ID_VERSION = 13
_ZSTD_VERSION = 7
_NO_OFFSET = -1

Entry = tuple[RangeId, Batch]


class _Taken:
    """What passed the check, and where in the answer each entry's outcome belongs."""

    __slots__ = ("codec_max", "entries", "waiting")

    def __init__(self, codec_max: int) -> None:
        self.codec_max = codec_max
        self.entries: list[Entry] = []
        self.waiting: list[PartitionProduceResponse] = []


def handle(door: Door, call: Call) -> Outcome:
    """Check every partition, append what passes, answer when the engine has an outcome for each."""
    version = call.version
    request = decode_request(_PRODUCE, version, call.body)
    assert isinstance(request, ProduceRequest)
    acks = request.acks
    response = ProduceResponse()
    if request.transactional_id is not None or acks not in _ACKS:
        return _refuse_all(call, request, response)
    taken = _Taken(CODEC_ZSTD if version >= _ZSTD_VERSION else CODEC_LZ4)
    topics = door.topics
    for topic in request.topic_data:
        by_name = version < _TOPIC_ID_VERSION
        route = topics.by_name(topic.name) if by_name else topics.by_id(topic.topic_id)
        parts = _take(door, route, topic, taken) if route is not None else _unknown(topic, version)
        response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, parts))
    if not taken.entries:
        return _answer(call, acks, response)
    door.log.append(taken.entries).add_done_callback(partial(_appended, door, call, acks, response, taken))
    return None


def _take(
    door: Door, route: TopicRoute, topic: TopicProduceData, taken: _Taken
) -> list[PartitionProduceResponse]:
    """The topic's part of the answer; good batches join the entries."""
    parts: list[PartitionProduceResponse] = []
    for part in topic.partition_data:
        index = part.index
        answer = PartitionProduceResponse(index)
        parts.append(answer)
        if not 0 <= index < route.partition_count:
            _refuse(answer, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        try:
            (batch,) = check_batches(
                part.records, batch_size_max=route.batch_bytes_max, codec_max=taken.codec_max
            )
        except Rejected as error:
            _refuse(answer, error.code, error.message)
            continue
        if route.is_special or batch.attributes & TRANSACTIONAL_BIT:
            special = _take_special(door, route, batch, answer)
            if special is None:
                continue
            batch = special
        taken.entries.append((route.ranges[index], batch))
        taken.waiting.append(answer)
    return parts


def _take_special(
    door: Door, route: TopicRoute, batch: Batch, answer: PartitionProduceResponse
) -> Batch | None:
    """The batch as it is to be stored, or None when it is refused."""
    if not route.is_produced_by_kafka:
        reason = "the topic's ranges split and merge; produce to it with the native client"
        _refuse(answer, ErrorCode.POLICY_VIOLATION, reason)
        return None
    if batch.is_transactional:
        _refuse(answer, ErrorCode.INVALID_TXN_STATE, "the batch is part of no open transaction")
        return None
    answer.log_append_time_ms = door.clock.now_ms()
    return with_append_time(batch, answer.log_append_time_ms)


def _unknown(topic: TopicProduceData, version: int) -> list[PartitionProduceResponse]:
    by_name = version < _TOPIC_ID_VERSION
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
    return [PartitionProduceResponse(part.index, code, _NO_OFFSET) for part in topic.partition_data]


def _refuse(answer: PartitionProduceResponse, code: ErrorCode, message: str | None = None) -> None:
    answer.error_code = code
    answer.base_offset = _NO_OFFSET
    answer.error_message = message


def _refuse_all(call: Call, request: ProduceRequest, response: ProduceResponse) -> Outcome:
    """No partition can be taken, for a reason that lies in the request as a whole."""
    if request.acks not in _ACKS:
        code, message = ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; it must be -1, 0 or 1"
    else:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        message = "transactions are not available on this broker"
    for topic in request.topic_data:
        parts = [
            PartitionProduceResponse(part.index, code, _NO_OFFSET, error_message=message)
            for part in topic.partition_data
        ]
        response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, parts))
    return _answer(call, request.acks, response)


def _appended(
    door: Door,
    call: Call,
    acks: int,
    response: ProduceResponse,
    taken: _Taken,
    future: "asyncio.Future[list[EntryResult]]",
) -> None:
    """The engine has an outcome for every entry, or failed as a whole."""
    results = _results(future, len(taken.entries))
    records = 0
    for answer, result, entry in zip(taken.waiting, results, taken.entries, strict=True):
        answer.error_code = result.error
        answer.base_offset = result.base_offset
        answer.log_start_offset = result.log_start
        if not result.error:
            records += entry[1].record_count
    door.counters.records_in += records
    pieces = _answer(call, acks, response)
    if pieces is not None:
        call.connection.finished(call, pieces)


def _results(future: "asyncio.Future[list[EntryResult]]", count: int) -> Sequence[EntryResult]:
    try:
        return future.result()
    except asyncio.CancelledError:
        # The future was cancelled by its owner; this callback is not a task that could be.
        return [EntryResult(ErrorCode.REQUEST_TIMED_OUT)] * count
    except FloeError as error:
        return [EntryResult(error.code)] * count
    except Exception:  # noqa: BLE001 - the engine's boundary: its fault is answered, not left unanswered
        _log.exception("append failed")
        return [EntryResult(ErrorCode.UNKNOWN_SERVER_ERROR)] * count


def _answer(call: Call, acks: int, response: ProduceResponse) -> Pieces | None:
    """The answer; None when the connection was ended instead."""
    if acks != 0:
        return call.encode(response)
    for topic in response.responses:
        for part in topic.partition_responses:
            if part.error_code != 0:
                call.fail("produce with acks=0 failed", error=ErrorCode(part.error_code).name)
                return None
    return NO_ANSWER
