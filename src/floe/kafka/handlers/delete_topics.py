"""DeleteTopics: by name, and from version 6 on by id."""

import asyncio
from collections import Counter

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError, Rejected
from floe.model.ids import ZERO_TOPIC_ID
from floe.model.topic import Topic
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
    decode_request,
)

_STATES_VERSION = 6  # names are followed by names or ids
_UNDER_WAY_MAX = 16


def handle(door: Door, call: Call) -> Outcome:
    request = decode_request(ApiKey.DELETE_TOPICS, call.version, call.body)
    assert isinstance(request, DeleteTopicsRequest)
    states = request.topics
    if call.version < _STATES_VERSION:
        states = [DeleteTopicState(name) for name in request.topic_names]
    return _delete_all(door, call, states)


async def _delete_all(door: Door, call: Call, states: list[DeleteTopicState]) -> Pieces:
    times = Counter((state.name, state.topic_id) for state in states)
    distinct = list({(state.name, state.topic_id): state for state in states}.values())
    results: list[DeletableTopicResult] = []
    for start in range(0, len(distinct), _UNDER_WAY_MAX):
        some = distinct[start : start + _UNDER_WAY_MAX]
        results += await asyncio.gather(
            *(_delete(door, state, times[state.name, state.topic_id]) for state in some)
        )
    return call.encode(DeleteTopicsResponse(responses=results))


async def _delete(door: Door, state: DeleteTopicState, times: int) -> DeletableTopicResult:
    try:
        topic = _topic(door, state, times)
        await door.metadata.delete_topic(topic.id)
    except FloeError as error:
        message = str(error) or None
        return DeletableTopicResult(state.name, state.topic_id, error.code, message)
    return DeletableTopicResult(topic.name, topic.id)


def _topic(door: Door, state: DeleteTopicState, times: int) -> Topic:
    if times > 1:
        raise Rejected(ErrorCode.INVALID_REQUEST, "the topic is named more than once in the request")
    by_id = state.topic_id != ZERO_TOPIC_ID
    if by_id == (state.name is not None):
        raise Rejected(ErrorCode.INVALID_REQUEST, "a topic is deleted by its name or by its id")
    directory = door.metadata.topics
    topic = directory.by_id(state.topic_id) if by_id else directory.by_name(state.name or "")
    if topic is not None:
        return topic
    raise Rejected(
        ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "there is no such topic",
    )
