"""CreateTopics: each topic on its own, with Kafka's code and a sentence for each refusal.

Replication is the object store's business: any factor is accepted and one is reported. Explicit assignments
count partitions; which broker they name means nothing, since every broker serves every partition.
"""

import asyncio
from collections import Counter

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError, Rejected
from floe.model.topic import check_topic_name
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    decode_request,
)

_UNDER_WAY_MAX = 16
_DEFAULT = -1  # the broker's default, for partitions and replication factor
_SOURCE_TOPIC = 1  # the config was set on the topic itself
_REPLICAS = 1


def handle(door: Door, call: Call) -> Outcome:
    request = decode_request(ApiKey.CREATE_TOPICS, call.version, call.body)
    assert isinstance(request, CreateTopicsRequest)
    return _create_all(door, call, request)


async def _create_all(door: Door, call: Call, request: CreateTopicsRequest) -> Pieces:
    times = Counter(topic.name for topic in request.topics)
    distinct = list({topic.name: topic for topic in request.topics}.values())
    results: list[CreatableTopicResult] = []
    for start in range(0, len(distinct), _UNDER_WAY_MAX):
        some = distinct[start : start + _UNDER_WAY_MAX]
        results += await asyncio.gather(
            *(_create(door, topic, times[topic.name], validate_only=request.validate_only) for topic in some)
        )
    return call.encode(CreateTopicsResponse(topics=results))


async def _create(
    door: Door, asked: CreatableTopic, times: int, *, validate_only: bool
) -> CreatableTopicResult:
    try:
        _check_name(asked.name, times)
        topic = await door.metadata.create_topic(
            asked.name,
            partitions=_partitions(door, asked),
            config={**door.settings.topic_config, **_config(asked)},
            validate_only=validate_only,
        )
    except Rejected as error:
        return CreatableTopicResult(asked.name, error_code=error.code, error_message=error.message or None)
    except FloeError as error:
        return CreatableTopicResult(asked.name, error_code=error.code, error_message=str(error) or None)
    return CreatableTopicResult(
        topic.name,
        topic.id,
        num_partitions=len(topic.ranges) or _partitions(door, asked),
        replication_factor=_REPLICAS,
        configs=[
            CreatableTopicConfigs(name, value, config_source=_SOURCE_TOPIC)
            for name, value in sorted(topic.config.items())
        ],
    )


def _check_name(name: str, times: int) -> None:
    if times > 1:
        raise Rejected(ErrorCode.INVALID_REQUEST, "the topic is named more than once in the request")
    check_topic_name(name)


def _partitions(door: Door, asked: CreatableTopic) -> int:
    """How many partitions are asked for; raise `Rejected` where Kafka does."""
    if asked.assignments:
        if asked.num_partitions != _DEFAULT or asked.replication_factor != _DEFAULT:
            message = "with assignments, partitions and replication factor must both be -1"
            raise Rejected(ErrorCode.INVALID_REQUEST, message)
        indexes = sorted(assignment.partition_index for assignment in asked.assignments)
        if indexes != list(range(len(indexes))):
            message = "partitions of the assignments must be numbered from 0 on without a gap"
            raise Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if not all(assignment.broker_ids for assignment in asked.assignments):
            raise Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "an assignment names no broker")
        return len(indexes)
    if asked.replication_factor != _DEFAULT and asked.replication_factor < 1:
        message = (
            f"replication factor {asked.replication_factor}; it must be at least 1, or -1 for the default"
        )
        raise Rejected(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if asked.num_partitions == _DEFAULT:
        return door.settings.partitions_default
    if asked.num_partitions < 1:
        raise Rejected(
            ErrorCode.INVALID_PARTITIONS, f"{asked.num_partitions} partitions; at least 1 is needed"
        )
    return asked.num_partitions


def _config(asked: CreatableTopic) -> dict[str, str]:
    config: dict[str, str] = {}
    for entry in asked.configs:
        if entry.value is None:
            raise Rejected(ErrorCode.INVALID_CONFIG, f"null value for {entry.name}")
        if entry.name in config:
            raise Rejected(ErrorCode.INVALID_CONFIG, f"{entry.name} is given more than once")
        config[entry.name] = entry.value
    return config
