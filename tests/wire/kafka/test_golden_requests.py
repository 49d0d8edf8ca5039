"""Requests that tools/capture_requests.py took from real clients: read as meant, written back bit by bit."""

from pathlib import Path

import pytest

from floe.model.ids import TopicId
from floe.wire.kafka.apis import API
from floe.wire.kafka.framing import read_header, write_request_header
from floe.wire.kafka.messages import (
    ApiVersionsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    InitProducerIdRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    MetadataRequestTopic,
    PartitionProduceData,
    ProduceRequest,
    Struct,
    TopicProduceData,
    decode_request,
    encode_request,
)

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.bin"))
TOPIC_ID = TopicId(bytes(range(16)))


def fetch(epoch: int, topic: FetchTopic, **fields: int) -> FetchRequest:
    topic.partitions = [FetchPartition(0, epoch, fetch_offset=0, partition_max_bytes=1 << 20)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[topic], **fields)


def earliest(epoch: int, **fields: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(0, epoch, timestamp=-2)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic("golden", partitions)], **fields)


EXPECTED: dict[str, Struct] = {
    "aiokafka-ApiVersions-v0": ApiVersionsRequest(),
    "aiokafka-Fetch-v11": fetch(-1, FetchTopic("golden")),
    "aiokafka-InitProducerId-v0": InitProducerIdRequest(transaction_timeout_ms=2**31 - 1),
    "aiokafka-ListOffsets-v3": earliest(-1),
    "aiokafka-Metadata-v5": MetadataRequest(topics=[]),
    "kafka-python-ApiVersions-v4": ApiVersionsRequest("kafka-python", "3.0.12"),
    "kafka-python-Fetch-v12": fetch(0, FetchTopic("golden"), session_epoch=0),
    "kafka-python-InitProducerId-v4": InitProducerIdRequest(),
    "kafka-python-ListOffsets-v10": earliest(-1),
    "kafka-python-Metadata-v13": MetadataRequest(topics=[]),
    "librdkafka-ApiVersions-v3": ApiVersionsRequest("confluent-kafka-python", "2.16.1-rdkafka-2.16.0"),
    "librdkafka-Fetch-v16": fetch(0, FetchTopic(topic_id=TOPIC_ID), isolation_level=1),
    "librdkafka-InitProducerId-v4": InitProducerIdRequest(transaction_timeout_ms=-1),
    "librdkafka-ListOffsets-v7": earliest(0, isolation_level=1),
    "librdkafka-Metadata-v13": MetadataRequest(topics=[MetadataRequestTopic(name="golden")]),
}
PRODUCE_TIMEOUTS = {
    "aiokafka-Produce-v7": 40_000,
    "kafka-python-Produce-v9": 30_000,
    "librdkafka-Produce-v10": 30_000,
}


def parsed(path: Path) -> tuple[bytes, Struct]:
    """The request, and the bytes it is written back as."""
    view = memoryview(path.read_bytes())
    header, position = read_header(view)
    client, api, version = path.stem.rsplit("-", 2)
    spec = API[header.api_key]
    assert (header.client_id, spec.name, f"v{header.api_version}") == (client, api, version)
    message = decode_request(header.api_key, header.api_version, view[position:])
    head = write_request_header(spec, header.api_version, header.correlation_id, header.client_id)
    return b"".join([head, *encode_request(spec.key, header.api_version, message)]), message


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_written_back_bit_by_bit(path: Path) -> None:
    assert parsed(path)[0] == path.read_bytes()


@pytest.mark.parametrize("name", EXPECTED)
def test_read_as_the_client_meant_it(name: str) -> None:
    assert parsed(GOLDEN / f"{name}.bin")[1] == EXPECTED[name]


@pytest.mark.parametrize("name", PRODUCE_TIMEOUTS)
def test_produce_carries_one_record_batch(name: str) -> None:
    _, message = parsed(GOLDEN / f"{name}.bin")
    assert isinstance(message, ProduceRequest)
    records = message.topic_data[0].partition_data[0].records
    topic = TopicProduceData("golden", partition_data=[PartitionProduceData(0, records)])
    assert message == ProduceRequest(None, -1, PRODUCE_TIMEOUTS[name], [topic])
    assert isinstance(records, memoryview)
    assert int.from_bytes(records[8:12], "big") == len(records) - 12
    assert records[16] == 2  # magic
    assert int.from_bytes(records[43:51], "big") == 1000  # the producer id that was given
    assert bytes(records).endswith(b"\x06key\x0avalue\x02\x02h\x021")


def test_every_captured_file_is_expected() -> None:
    assert {path.stem for path in FILES} == EXPECTED.keys() | PRODUCE_TIMEOUTS.keys()
