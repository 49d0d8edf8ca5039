"""CreateTopics, DeleteTopics and CreatePartitions."""
# ruff: noqa: RUF012 (an empty list default is copied for every instance)

from typing import Annotated

from floe.model.ids import ZERO_TOPIC_ID
from floe.wire.kafka.schema.fields import (
    Bool,
    Int8,
    Int16,
    Int32,
    String,
    Struct,
    TopicUuid,
    null_since,
    since,
    tag,
    until,
)


class CreatableReplicaAssignment(Struct):
    partition_index: Int32 = 0
    broker_ids: list[Int32] = []


class CreatableTopicConfig(Struct):
    name: String = ""
    value: String | None = None


class CreatableTopic(Struct):
    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Struct):
    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatableTopicConfigs(Struct):
    name: String = ""
    value: String | None = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


class CreatableTopicResult(Struct):
    name: String = ""
    topic_id: Annotated[TopicUuid, since(7)] = ZERO_TOPIC_ID
    error_code: Int16 = 0
    error_message: String | None = None
    num_partitions: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5)] = None
    topic_config_error_code: Annotated[Int16, since(5), tag(0)] = 0


class CreateTopicsResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = []


class DeleteTopicState(Struct):
    name: String | None = None
    topic_id: TopicUuid = ZERO_TOPIC_ID


class DeleteTopicsRequest(Struct):
    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[String], until(5)] = []
    timeout_ms: Int32 = 0


class DeletableTopicResult(Struct):
    name: Annotated[String | None, null_since(6)] = None
    topic_id: Annotated[TopicUuid, since(6)] = ZERO_TOPIC_ID
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5)] = None


class DeleteTopicsResponse(Struct):
    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = []


class CreatePartitionsAssignment(Struct):
    broker_ids: list[Int32] = []


class CreatePartitionsTopic(Struct):
    name: String = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = None


class CreatePartitionsRequest(Struct):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: Bool = False


class CreatePartitionsTopicResult(Struct):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
