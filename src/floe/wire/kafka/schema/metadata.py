"""Metadata, DescribeCluster and DescribeTopicPartitions: brokers, topics and who leads what."""
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
    between,
    null_since,
    since,
)

OPERATIONS_UNKNOWN = -(1 << 31)  # authorized operations were not asked for


class MetadataRequestTopic(Struct):
    topic_id: Annotated[TopicUuid, since(10)] = ZERO_TOPIC_ID
    name: Annotated[String | None, null_since(10)] = None


class MetadataRequest(Struct):
    """All topics are asked for by None, and in version 0 by an empty list."""

    topics: Annotated[list[MetadataRequestTopic] | None, null_since(1)] = None
    allow_auto_topic_creation: Annotated[Bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[Bool, between(8, 10)] = False
    include_topic_authorized_operations: Annotated[Bool, since(8)] = False


class MetadataResponseBroker(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, since(1)] = None


class MetadataResponsePartition(Struct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, since(7)] = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: Annotated[list[Int32], since(5)] = []


class MetadataResponseTopic(Struct):
    error_code: Int16 = 0
    name: Annotated[String | None, null_since(12)] = None
    topic_id: Annotated[TopicUuid, since(10)] = ZERO_TOPIC_ID
    is_internal: Annotated[Bool, since(1)] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[Int32, since(8)] = OPERATIONS_UNKNOWN


class MetadataResponse(Struct):
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[String | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[Int32, between(8, 10)] = OPERATIONS_UNKNOWN
    error_code: Annotated[Int16, since(13)] = 0


class DescribeClusterRequest(Struct):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1


class DescribeClusterBroker(Struct):
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class DescribeClusterResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = OPERATIONS_UNKNOWN


class Cursor(Struct):
    topic_name: String = ""
    partition_index: Int32 = 0


class TopicRequest(Struct):
    name: String = ""


class DescribeTopicPartitionsRequest(Struct):
    topics: list[TopicRequest] = []
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = []


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16 = 0
    name: String | None = None
    topic_id: TopicUuid = ZERO_TOPIC_ID
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: Int32 = OPERATIONS_UNKNOWN


class DescribeTopicPartitionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
