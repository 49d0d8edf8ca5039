"""Metadata, CreateTopics, DeleteTopics, CreatePartitions: topics as clients see and change them."""

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
    MetadataRequest,
    MetadataRequestTopic,
)

# Metadata.


@pytest.mark.parametrize("version", range(14))
async def test_topics_are_described_in_every_version(wire, version):
    created = await wire.create("t", 3)
    answer = await wire.call(ApiKey.METADATA, version, MetadataRequest([MetadataRequestTopic(name="t")]))
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host) == (1, "127.0.0.1")
    (topic,) = answer.topics
    assert (topic.error_code, topic.name) == (0, "t")
    assert topic.topic_id == (created.topic_id if version >= 10 else bytes(16))
    assert [part.partition_index for part in topic.partitions] == [0, 1, 2]
    for part in topic.partitions:
        assert (part.error_code, part.leader_id, part.replica_nodes, part.isr_nodes) == (0, 1, [1], [1])
        assert part.leader_epoch == (0 if version >= 7 else -1)


async def test_all_topics_and_none(wire):
    await wire.create("a")
    await wire.create("b")
    everything = await wire.call(ApiKey.METADATA, 9, MetadataRequest(None))
    assert [topic.name for topic in everything.topics] == ["a", "b"]
    assert (await wire.call(ApiKey.METADATA, 9, MetadataRequest([]))).topics == []
    in_version_0 = await wire.call(ApiKey.METADATA, 0, MetadataRequest([]))
    assert [topic.name for topic in in_version_0.topics] == ["a", "b"]


async def test_asking_for_a_topic_creates_it_with_the_default_partitions(open_house):
    house = await open_house(num_partitions=5, log_retention_ms=1234)
    wire = await house.connect()
    answer = await wire.describe("new", create=True)
    assert (answer.topics[0].error_code, len(answer.topics[0].partitions)) == (0, 5)
    topic = house.broker.metadata.topics.by_name("new")
    assert topic.config == {"retention.ms": "1234"}
    assert (await wire.produce("new", [b"a"], partition=4)).error_code == 0


async def test_topic_is_not_created_when_the_client_or_the_broker_does_not_want_it(house, open_house):
    wire = await house.connect()
    answer = await wire.describe("new", create=False)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    strict = await (await open_house(auto_create_topics_enable=False)).connect()
    answer = await strict.describe("new", create=True)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await strict.call(ApiKey.METADATA, 12, MetadataRequest(None))).topics == []


@pytest.mark.parametrize("name", ["", ".", "..", "with space", "x" * 250, "ü"])
async def test_bad_names_are_told_and_not_created(wire, name):
    answer = await wire.describe(name, create=True)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (await wire.call(ApiKey.METADATA, 12, MetadataRequest(None))).topics == []


async def test_topic_by_id(wire):
    created = await wire.create("t")
    asked = [MetadataRequestTopic(topic_id=created.topic_id), MetadataRequestTopic(topic_id=b"?" * 16)]
    answer = await wire.call(ApiKey.METADATA, 12, MetadataRequest(asked))
    assert [(topic.error_code, topic.name) for topic in answer.topics] == [
        (0, "t"),
        (ErrorCode.UNKNOWN_TOPIC_ID, None),
    ]


async def test_kept_answers_follow_every_change(wire):
    for _ in range(2):
        assert (await wire.describe("t")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await wire.create("t")
    for _ in range(2):
        assert len((await wire.describe("t")).topics[0].partitions) == 1
    await wire.call(
        ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest([CreatePartitionsTopic("t", 4)], 1000)
    )
    assert len((await wire.describe("t")).topics[0].partitions) == 4
    await wire.call(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["t"]))
    assert (await wire.describe("t")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# CreateTopics.


async def create(wire, *topics, version=7, validate_only=False):
    request = CreateTopicsRequest(list(topics), 1000, validate_only)
    return (await wire.call(ApiKey.CREATE_TOPICS, version, request)).topics


@pytest.mark.parametrize("version", range(2, 8))
async def test_created_topic_is_described(wire, version):
    configs = [CreatableTopicConfig("retention.ms", "1000")]
    (told,) = await create(wire, CreatableTopic("t", 4, 1, [], configs), version=version)
    assert (told.error_code, told.name) == (0, "t")
    if version >= 5:
        assert (told.num_partitions, told.replication_factor) == (4, 1)
        assert [(entry.name, entry.value) for entry in told.configs] == [("retention.ms", "1000")]
    topic = (await wire.describe("t")).topics[0]
    assert len(topic.partitions) == 4
    if version >= 7:
        assert told.topic_id == topic.topic_id != bytes(16)


async def test_default_partitions_and_any_replication_factor(wire):
    (told,) = await create(wire, CreatableTopic("t", -1, 3))
    assert (told.error_code, told.num_partitions) == (0, 1)


async def test_assignments_count_partitions(wire):
    assignments = [CreatableReplicaAssignment(i, [1, 2]) for i in (1, 0)]
    (told,) = await create(wire, CreatableTopic("t", -1, -1, assignments))
    assert (told.error_code, told.num_partitions) == (0, 2)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("t", 1, -1, [CreatableReplicaAssignment(0, [1])]), ErrorCode.INVALID_REQUEST),
        (
            CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            CreatableTopic("t", 1, 1, [], [CreatableTopicConfig("retention.mss", "1")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            CreatableTopic("t", 1, 1, [], [CreatableTopicConfig("retention.ms", None)]),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
async def test_refusals_have_a_code_and_a_sentence(wire, topic, code):
    told, good = await create(wire, topic, CreatableTopic("good", 1, 1))
    assert told.error_code == code
    assert told.error_message
    assert good.error_code == 0
    assert (await wire.describe(topic.name)).topics[0].error_code != 0


async def test_existing_and_repeated_topics_are_refused(wire):
    await wire.create("t")
    (told,) = await create(wire, CreatableTopic("t", 1, 1))
    assert told.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    (told,) = await create(wire, CreatableTopic("u", 1, 1), CreatableTopic("u", 1, 1))
    assert told.error_code == ErrorCode.INVALID_REQUEST


async def test_validation_only_creates_nothing(wire):
    told = await create(wire, CreatableTopic("t", 3, 1), CreatableTopic("a b", 1, 1), validate_only=True)
    assert [topic.error_code for topic in told] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert told[0].num_partitions == 3
    assert (await wire.describe("t")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_many_topics_in_one_request(wire):
    told = await create(wire, *(CreatableTopic(f"t{i}", 1, 1) for i in range(50)))
    assert [topic.error_code for topic in told] == [0] * 50
    assert len((await wire.call(ApiKey.METADATA, 12, MetadataRequest(None))).topics) == 50


# DeleteTopics.


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_name(wire, version):
    await wire.create("t")
    request = DeleteTopicsRequest(topic_names=["t", "missing"], timeout_ms=1000)
    answer = await wire.call(ApiKey.DELETE_TOPICS, version, request)
    told = {topic.name: topic.error_code for topic in answer.responses}
    assert told == {"t": 0, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert (await wire.produce("t", [b"a"])).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_are_deleted_by_id(wire):
    created = await wire.create("t")
    states = [
        DeleteTopicState(None, created.topic_id),
        DeleteTopicState(None, b"?" * 16),
        DeleteTopicState("x", b"?" * 16),
        DeleteTopicState(None),
    ]
    answer = await wire.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=states))
    assert [topic.error_code for topic in answer.responses] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert (answer.responses[0].name, answer.responses[0].topic_id) == ("t", created.topic_id)


async def test_topic_created_again_is_a_new_one(wire):
    first = await wire.create("t")
    await wire.produce("t", [b"a"])
    await wire.call(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["t"]))
    second = await wire.create("t")
    assert second.topic_id != first.topic_id
    assert await wire.end_offset("t") == 0


# CreatePartitions.


async def grow(wire, *topics, version=3, validate_only=False):
    request = CreatePartitionsRequest(list(topics), 1000, validate_only)
    return (await wire.call(ApiKey.CREATE_PARTITIONS, version, request)).results


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added_and_old_ones_keep_their_records(wire, version):
    await wire.create("t", 2)
    await wire.produce("t", [b"a"], partition=1)
    (told,) = await grow(wire, CreatePartitionsTopic("t", 4), version=version)
    assert (told.name, told.error_code) == ("t", 0)
    assert [await wire.end_offset("t", p) for p in range(4)] == [0, 1, 0, 0]
    assert (await wire.produce("t", [b"a"], partition=3)).base_offset == 0


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatePartitionsTopic("t", 2), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("t", 1), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("t", -1), ErrorCode.INVALID_PARTITIONS),
        (CreatePartitionsTopic("missing", 4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (
            CreatePartitionsTopic("t", 4, [CreatePartitionsAssignment([1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
async def test_refused_growth_changes_nothing(wire, topic, code):
    await wire.create("t", 2)
    (told,) = await grow(wire, topic)
    assert told.error_code == code
    assert told.error_message
    assert len((await wire.describe("t")).topics[0].partitions) == 2


async def test_growth_can_be_validated_only(wire):
    await wire.create("t", 2)
    (told,) = await grow(wire, CreatePartitionsTopic("t", 4), validate_only=True)
    assert told.error_code == 0
    assert len((await wire.describe("t")).topics[0].partitions) == 2
