"""Metadata: the brokers, the topics and who leads what; topics asked for by name may be created.

An answer depends on the request's bytes and the topics alone, so its encoded form is kept until a topic
changes. A created topic is visible when its creation returns: no client ever sees a topic without a leader.
"""

from collections.abc import Iterable

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.kafka.topic_lookup import LEADER_EPOCH
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError, Rejected
from floe.model.ids import ZERO_TOPIC_ID
from floe.model.topic import Topic, check_topic_name
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    decode_request,
    encode_response,
)

_CREATED_MAX = 100  # topics created by one request; the rest are created when the client asks again


def handle(door: Door, call: Call) -> Outcome:
    """Answer from the kept answers, else from the directory, else after creating what is missing."""
    key = (call.version, bytes(call.body))
    kept = door.answers.get(door.metadata.topics.version, key)
    if kept is not None:
        return call.with_head(kept)
    request = decode_request(ApiKey.METADATA, call.version, call.body)
    assert isinstance(request, MetadataRequest)
    missing = _to_create(door, request)
    if missing:
        return _create_and_answer(door, call, request, missing)
    body = _body(door, call.version, request, {})
    door.answers.keep(key, body)
    return call.with_head(body)


def _to_create(door: Door, request: MetadataRequest) -> list[str]:
    if not (door.settings.auto_create_topics and request.allow_auto_topic_creation):
        return []
    topics = door.metadata.topics
    names = (topic.name for topic in request.topics or () if topic.topic_id == ZERO_TOPIC_ID)
    unknown = dict.fromkeys(name for name in names if name and topics.by_name(name) is None)
    return [name for name in unknown if _is_creatable(name)]


def _is_creatable(name: str) -> bool:
    try:
        check_topic_name(name)
    except Rejected:
        return False
    return True


async def _create_and_answer(door: Door, call: Call, request: MetadataRequest, names: list[str]) -> Pieces:
    failures: dict[str, ErrorCode] = {}
    for name in names[:_CREATED_MAX]:
        try:
            await door.metadata.create_topic(
                name, partitions=door.settings.partitions_default, config=door.settings.topic_config
            )
        except FloeError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                failures[name] = error.code
    return call.with_head(_body(door, call.version, request, failures))


def _body(door: Door, version: int, request: MetadataRequest, failures: dict[str, ErrorCode]) -> Pieces:
    facts = door.facts
    asked = request.topics
    if asked is None or (version == 0 and not asked):
        topics = [_described(topic, facts.broker_id) for topic in door.metadata.topics.all()]
    else:
        topics = [_answered(door, topic, failures) for topic in _once(asked)]
    message = MetadataResponse(
        brokers=[MetadataResponseBroker(facts.broker_id, facts.host, facts.port, facts.rack)],
        cluster_id=facts.cluster_id,
        controller_id=facts.broker_id,
        topics=topics,
    )
    return [b"".join(encode_response(ApiKey.METADATA, version, message))]


def _once(asked: Iterable[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    return {(topic.name, topic.topic_id): topic for topic in asked}.values()


def _answered(
    door: Door, asked: MetadataRequestTopic, failures: dict[str, ErrorCode]
) -> MetadataResponseTopic:
    directory = door.metadata.topics
    if asked.topic_id != ZERO_TOPIC_ID:
        topic = directory.by_id(asked.topic_id)
        if topic is None:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id)
        return _described(topic, door.facts.broker_id)
    name = asked.name or ""
    topic = directory.by_name(name)
    if topic is not None:
        return _described(topic, door.facts.broker_id)
    try:
        check_topic_name(name)
    except Rejected as error:
        return MetadataResponseTopic(error.code, name)
    return MetadataResponseTopic(failures.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), name)


def _described(topic: Topic, broker_id: int) -> MetadataResponseTopic:
    nodes = [broker_id]
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        partitions=[
            MetadataResponsePartition(ErrorCode.NONE, index, broker_id, LEADER_EPOCH, nodes, nodes)
            for index in range(len(topic.ranges))
        ],
    )
