"""CreatePartitions: raise a topic's number of partitions."""

from collections import Counter

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError, Rejected
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    decode_request,
)


def handle(door: Door, call: Call) -> Outcome:
    request = decode_request(ApiKey.CREATE_PARTITIONS, call.version, call.body)
    assert isinstance(request, CreatePartitionsRequest)
    return _add_all(door, call, request)


async def _add_all(door: Door, call: Call, request: CreatePartitionsRequest) -> Pieces:
    times = Counter(topic.name for topic in request.topics)
    distinct = {topic.name: topic for topic in request.topics}.values()
    results = [
        await _add(door, topic, times[topic.name], validate_only=request.validate_only) for topic in distinct
    ]
    return call.encode(CreatePartitionsResponse(results=results))


async def _add(
    door: Door, asked: CreatePartitionsTopic, times: int, *, validate_only: bool
) -> CreatePartitionsTopicResult:
    try:
        _check(door, asked, times)
        await door.metadata.add_partitions(asked.name, total=asked.count, validate_only=validate_only)
    except FloeError as error:
        return CreatePartitionsTopicResult(asked.name, error.code, str(error) or None)
    return CreatePartitionsTopicResult(asked.name)


def _check(door: Door, asked: CreatePartitionsTopic, times: int) -> None:
    """Raise `Rejected` for what Kafka refuses before it looks at the topic's own rules."""
    if times > 1:
        raise Rejected(ErrorCode.INVALID_REQUEST, "the topic is named more than once in the request")
    topic = door.metadata.topics.by_name(asked.name)
    if topic is None:
        raise Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
    count = len(topic.ranges)
    if asked.count == count:
        raise Rejected(ErrorCode.INVALID_PARTITIONS, f"the topic already has {count} partition(s)")
    if asked.count < count:
        message = f"the topic has {count} partitions; it cannot be reduced to {asked.count}"
        raise Rejected(ErrorCode.INVALID_PARTITIONS, message)
    if asked.assignments is not None and len(asked.assignments) != asked.count - count:
        message = f"{len(asked.assignments)} assignments for {asked.count - count} new partitions"
        raise Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
