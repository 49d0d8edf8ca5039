"""ListOffsets: the ends of partitions, and offsets by time exact to the record.

Ends never come from a cache: LATEST must not go back, through any broker.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.kafka.topic_lookup import LEADER_EPOCH, epoch_error
from floe.metadata.api import FindRequest
from floe.model.coordinates import RangeView
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError
from floe.model.ids import Offset, RangeId
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    decode_request,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
_FIRST_VERSION = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
_READ_COMMITTED = 1
_SEARCHES_MAX = 16  # searches by time of one request that are under way at once


@dataclass(slots=True)
class _Asked:
    """One partition of the request and its place in the answer."""

    range_id: RangeId
    timestamp: int
    answer: ListOffsetsPartitionResponse


def handle(door: Door, call: Call) -> Outcome:
    """Resolve the partitions now, ask the coordinators in a task."""
    request = decode_request(ApiKey.LIST_OFFSETS, call.version, call.body)
    assert isinstance(request, ListOffsetsRequest)
    response = ListOffsetsResponse()
    asked: list[_Asked] = []
    for topic in request.topics:
        route = door.topics.by_name(topic.name)
        times = Counter(part.partition_index for part in topic.partitions)
        answers: list[ListOffsetsPartitionResponse] = []
        for part in topic.partitions:
            index = part.partition_index
            answer = ListOffsetsPartitionResponse(index)
            answers.append(answer)
            if times[index] > 1:
                answer.error_code = ErrorCode.INVALID_REQUEST
            elif part.timestamp < 0 and call.version < _FIRST_VERSION.get(part.timestamp, 1 << 15):
                answer.error_code = ErrorCode.UNSUPPORTED_VERSION
            elif route is None or not 0 <= index < route.partition_count:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                answer.error_code = epoch_error(part.current_leader_epoch)
                if not answer.error_code:
                    asked.append(_Asked(route.ranges[index], part.timestamp, answer))
        response.topics.append(ListOffsetsTopicResponse(topic.name, answers))
    if not asked:
        return call.encode(response)
    return _ask(door, call, response, asked, reads_committed=request.isolation_level == _READ_COMMITTED)


async def _ask(
    door: Door, call: Call, response: ListOffsetsResponse, asked: list[_Asked], *, reads_committed: bool
) -> Pieces:
    ends = [one for one in asked if one.timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED)]
    searches = [one for one in asked if one.timestamp >= 0 or one.timestamp == MAX_TIMESTAMP]
    if ends:
        await _ask_ends(door, ends, reads_committed=reads_committed)
    for start in range(0, len(searches), _SEARCHES_MAX):
        await asyncio.gather(*(_search(door, one) for one in searches[start : start + _SEARCHES_MAX]))
    return call.encode(response)


async def _ask_ends(door: Door, asked: list[_Asked], *, reads_committed: bool) -> None:
    try:
        views = await door.metadata.find([FindRequest(one.range_id, Offset(0), 0) for one in asked])
    except FloeError as error:
        views = [RangeView(error.code)] * len(asked)
    for one, view in zip(asked, views, strict=True):
        if view.error:
            one.answer.error_code = view.error
            continue
        if one.timestamp == LATEST:
            one.answer.offset = view.last_stable if reads_committed else view.log_end
        elif one.timestamp in (EARLIEST, EARLIEST_LOCAL):
            one.answer.offset = view.log_start
        else:
            # As in a Kafka without tiered storage: an object topic's records are never on two tiers.
            continue
        one.answer.leader_epoch = LEADER_EPOCH


async def _search(door: Door, one: _Asked) -> None:
    try:
        if one.timestamp == MAX_TIMESTAMP:
            offset, timestamp = await door.log.offset_of_max_timestamp(one.range_id)
        else:
            offset, timestamp = await door.log.offset_for_timestamp(one.range_id, one.timestamp)
    except FloeError as error:
        one.answer.error_code = error.code
        return
    one.answer.offset = offset
    one.answer.timestamp = timestamp
    if offset >= 0:
        one.answer.leader_epoch = LEADER_EPOCH
