"""Fetch."""
# ruff: noqa: RUF012 (an empty list default is copied for every instance)

from typing import Annotated

from floe.model.ids import ZERO_TOPIC_ID
from floe.wire.kafka.schema.fields import (
    RARE,
    Int8,
    Int16,
    Int32,
    Int64,
    SentRecords,
    String,
    Struct,
    TopicUuid,
    Uuid,
    since,
    tag,
    until,
)
from floe.wire.kafka.schema.nodes import LeaderIdAndEpoch, NodeEndpoint


class ReplicaState(Struct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(17), tag(0)] = bytes(16)


class FetchTopic(Struct):
    topic: Annotated[String, until(12)] = ""
    topic_id: Annotated[TopicUuid, since(13)] = ZERO_TOPIC_ID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Struct):
    topic: Annotated[String, until(12)] = ""
    topic_id: Annotated[TopicUuid, since(13)] = ZERO_TOPIC_ID
    partitions: list[Int32] = []


class FetchRequest(Struct):
    replica_id: Annotated[Int32, until(14)] = -1
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFFFFFF
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7)] = 0
    session_epoch: Annotated[Int32, since(7)] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[String, since(11)] = ""
    cluster_id: Annotated[String | None, since(12), tag(0)] = None
    replica_state: Annotated[ReplicaState | None, since(15), tag(1)] = None


class DivergingEpoch(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    aborted_transactions: Annotated[list[AbortedTransaction] | None, RARE] = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: SentRecords = None
    diverging_epoch: Annotated[DivergingEpoch | None, since(12), tag(0)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, since(12), tag(1)] = None
    snapshot_id: Annotated[SnapshotId | None, since(12), tag(2)] = None


class FetchableTopicResponse(Struct):
    topic: Annotated[String, until(12)] = ""
    topic_id: Annotated[TopicUuid, since(13)] = ZERO_TOPIC_ID
    partitions: list[PartitionData] = []


class FetchResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tag(0)] = []
