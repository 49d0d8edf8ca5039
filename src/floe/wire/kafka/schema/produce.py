"""Produce."""
# ruff: noqa: RUF012 (an empty list default is copied for every instance)

from typing import Annotated

from floe.model.ids import ZERO_TOPIC_ID
from floe.wire.kafka.schema.fields import (
    RARE,
    Int16,
    Int32,
    Int64,
    ReceivedRecords,
    String,
    Struct,
    TopicUuid,
    since,
    tag,
    until,
)
from floe.wire.kafka.schema.nodes import LeaderIdAndEpoch, NodeEndpoint


class PartitionProduceData(Struct):
    index: Int32 = 0
    records: ReceivedRecords = None


class TopicProduceData(Struct):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[TopicUuid, since(13)] = ZERO_TOPIC_ID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Struct):
    transactional_id: String | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


class PartitionProduceResponse(Struct):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), RARE] = []
    error_message: Annotated[String | None, since(8), RARE] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, since(10), tag(0)] = None


class TopicProduceResponse(Struct):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[TopicUuid, since(13)] = ZERO_TOPIC_ID
    partition_responses: list[PartitionProduceResponse] = []


class ProduceResponse(Struct):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tag(0)] = []
