"""What the oracle cannot show: views and pieces, tags nobody knows, absent fields, arrays read at once."""

import struct

import pytest

from floe.model.errors import Internal, Rejected
from floe.model.ids import TopicId
from floe.wire.kafka import messages
from floe.wire.kafka.apis import API, SERVED, ApiKey
from floe.wire.kafka.layout import Array, Nested, layout
from floe.wire.kafka.messages import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    MetadataResponse,
    MetadataResponseTopic,
    PartitionData,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    Records,
    Struct,
    TopicProduceData,
    TopicProduceResponse,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    prepare,
)
from floe.wire.kafka.registry import MESSAGES
from floe.wire.kafka.schema.fields import Text
from floe.wire.kafka.varint import Malformed, encoded, number

BATCHES = bytes(range(256)) * 2


def fetch_response(records: object) -> FetchResponse:
    partition = PartitionData(5, high_watermark=10, records=records)
    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])


@pytest.mark.parametrize("version", [7, 9, 13])
def test_records_are_read_as_views_of_the_body(version: int) -> None:
    topic = TopicProduceData("t", TopicId(bytes(16)), [PartitionProduceData(0, memoryview(BATCHES))])
    body = bytearray(b"".join(encode_request(ApiKey.PRODUCE, version, ProduceRequest(topic_data=[topic]))))
    read = decode_request(ApiKey.PRODUCE, version, memoryview(body))
    assert isinstance(read, ProduceRequest)
    records = read.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == BATCHES
    assert records.obj is body


@pytest.mark.parametrize("version", [11, 12])
def test_records_are_sent_as_the_pieces_they_came_in(version: int) -> None:
    pieces = [b"head", memoryview(BATCHES)[4:], bytearray(b"tail")]
    sent = encode_response(
        ApiKey.FETCH, version, fetch_response(Records(sum(map(len, pieces)), list(pieces)))
    )
    at = next(index for index, piece in enumerate(sent) if piece is pieces[0])
    assert all(sent[at + offset] is piece for offset, piece in enumerate(pieces))
    read = decode_response(ApiKey.FETCH, version, memoryview(b"".join(sent)))
    assert isinstance(read, FetchResponse)
    assert read.responses[0].partitions[0].records == b"head" + BATCHES[4:] + b"tail"


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("records", [BATCHES, memoryview(BATCHES), b"", None, Records(0, [])])
def test_records_may_be_bytes_a_view_or_null(version: int, records: object) -> None:
    sent = encode_response(ApiKey.FETCH, version, fetch_response(records))
    read = decode_response(ApiKey.FETCH, version, memoryview(b"".join(sent)))
    assert isinstance(read, FetchResponse)
    expected = b"" if isinstance(records, Records) else records
    assert read.responses[0].partitions[0].records == expected


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16382, 16383, 16384, 2**21 - 2, 2**21 - 1, 2**21])
def test_records_of_every_length_of_length(size: int) -> None:
    records = memoryview(bytes(size))
    topic = TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])
    message = ProduceRequest(acks=-1, topic_data=[topic])
    body = b"".join(encode_request(ApiKey.PRODUCE, 9, message))
    assert decode_request(ApiKey.PRODUCE, 9, memoryview(body)) == message


@pytest.mark.parametrize(
    "value", [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**32 - 1]
)
def test_numbers_come_back(value: int) -> None:
    sent = encoded(value)
    assert number(memoryview(sent), 0) == (value, len(sent))
    assert len(sent) == max(1, -(-value.bit_length() // 7))


def test_a_number_ends_after_five_bytes() -> None:
    with pytest.raises(Malformed):
        number(memoryview(b"\xff" * 6), 0)


def test_unknown_tags_are_skipped_at_every_level() -> None:
    tags = b"\x02" + b"\x09\x03abc" + b"\xe8\x07\x00"  # two fields: 9 with three bytes, 1000 with none
    partition = struct.pack(">iB4s", 3, 5, b"data") + tags
    topic = b"\x02t" + b"\x02" + partition + tags
    body = b"\0" + struct.pack(">hi", -1, 1000) + b"\x02" + topic + tags
    expected = [TopicProduceData("t", partition_data=[PartitionProduceData(3, memoryview(b"data"))])]
    assert decode_request(ApiKey.PRODUCE, 9, memoryview(body)) == ProduceRequest(None, -1, 1000, expected)


def test_an_unknown_tag_beside_known_ones_is_skipped() -> None:
    leader = struct.pack(">iiB", 1, 2, 0)
    tags = b"\x02" + b"\x00" + bytes([len(leader)]) + leader + b"\x05\x01x"
    partition = struct.pack(">ihqqq", 0, 0, 7, -1, 0) + b"\x01\x00" + tags
    body = b"\x02\x02t\x02" + partition + b"\0" + bytes(4) + b"\0"
    read = decode_response(ApiKey.PRODUCE, 10, memoryview(body))
    found = PartitionProduceResponse(0, 0, 7, -1, 0, [], None, LeaderIdAndEpoch(1, 2))
    assert read == ProduceResponse([TopicProduceResponse("t", partition_responses=[found])])


def test_a_known_tag_with_a_wrong_size_is_refused() -> None:
    message = FetchRequest(cluster_id="abc")
    body = b"".join(encode_request(ApiKey.FETCH, 12, message))
    assert body.endswith(b"\x01\x00\x04\x04abc")
    longer = body.removesuffix(b"\x04\x04abc") + b"\x05\x04abcd"
    with pytest.raises(Rejected, match="cluster_id"):
        decode_request(ApiKey.FETCH, 12, memoryview(longer))


@pytest.mark.parametrize("version", [11, 12, 17])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 200])
def test_fixed_width_arrays_are_the_same_read_at_once_or_one_by_one(count: int, version: int) -> None:
    partitions = [FetchPartition(i, i + 1, i + 2, -1, i + 3, i + 4) for i in range(count)]
    topic = FetchTopic("t" if version < 13 else "", partitions=partitions)
    if version < 12:
        assert all(partition.last_fetched_epoch == -1 for partition in partitions)
    message = FetchRequest(topics=[topic])
    body = b"".join(encode_request(ApiKey.FETCH, version, message))
    assert decode_request(ApiKey.FETCH, version, memoryview(body)) == message


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_tag_in_the_midst_of_a_fixed_width_array_is_honoured(at: int) -> None:
    partitions = [FetchPartition(i, fetch_offset=i) for i in range(8)]
    partitions[at].replica_directory_id = b"directory-number"
    message = FetchRequest(topics=[FetchTopic(partitions=partitions)])
    body = b"".join(encode_request(ApiKey.FETCH, 17, message))
    assert decode_request(ApiKey.FETCH, 17, memoryview(body)) == message


def test_fields_of_other_versions_are_ignored_when_written_and_default_when_read() -> None:
    topic = MetadataResponseTopic(name="t", topic_id=TopicId(b"i" * 16), is_internal=True)
    message = MetadataResponse(topics=[topic], cluster_id="c", controller_id=3, throttle_time_ms=9)
    body = b"".join(encode_response(ApiKey.METADATA, 0, message))
    read = decode_response(ApiKey.METADATA, 0, memoryview(body))
    assert read == MetadataResponse(topics=[MetadataResponseTopic(name="t")])


def test_defaults_are_not_shared_between_messages() -> None:
    first = FetchRequest()
    first.topics.append(FetchTopic("t"))
    assert FetchRequest().topics == []
    body = memoryview(b"".join(encode_request(ApiKey.FETCH, 4, FetchRequest())))
    one, two = decode_request(ApiKey.FETCH, 4, body), decode_request(ApiKey.FETCH, 4, body)
    assert isinstance(one, FetchRequest)
    assert isinstance(two, FetchRequest)
    assert one.forgotten_topics_data is not two.forgotten_topics_data


@pytest.mark.parametrize(
    "message",
    [
        PartitionProduceResponse(),
        ProduceResponse(throttle_time_ms=1 << 31),
        ProduceResponse([TopicProduceResponse(name=None)]),  # type: ignore[arg-type]
    ],
)
def test_a_message_that_cannot_be_sent_is_our_bug(message: Struct) -> None:
    with pytest.raises(Internal, match=type(message).__name__):
        encode_response(ApiKey.PRODUCE, 9, message)


def test_served_is_what_this_broker_has_handlers_for() -> None:
    names = {spec.name for spec in SERVED.values()}
    assert names == {
        *("ApiVersions", "Metadata", "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"),
        *("InitProducerId", "CreateTopics", "DeleteTopics", "CreatePartitions", "FindCoordinator"),
        "DescribeCluster",
    }
    assert API.keys() == MESSAGES.keys()


def test_everything_served_can_be_made_ready_at_start() -> None:
    prepare(SERVED)


def every_struct() -> list[type[Struct]]:
    found: dict[type[Struct], None] = {}

    def visit(struct: type[Struct]) -> None:
        found[struct] = None
        for field in layout(struct, 0).fields:
            kind = field.kind.element if isinstance(field.kind, Array) else field.kind
            if isinstance(kind, Nested) and kind.struct not in found:
                visit(kind.struct)

    for request, response in MESSAGES.values():
        visit(request)
        visit(response)
    return list(found)


def test_every_struct_can_be_imported_from_messages() -> None:
    assert {struct_type.__name__ for struct_type in every_struct()} <= set(messages.__all__)


@pytest.mark.parametrize("struct_type", every_struct(), ids=lambda struct_type: struct_type.__name__)
def test_table_keeps_the_rules_of_its_words(struct_type: type[Struct]) -> None:
    fields = layout(struct_type, 0).fields
    tagged = [field.tag is not None for field in fields]
    assert tagged == sorted(tagged), "tagged fields stand after all others"
    assert struct_type() == struct_type(), "every field has a default"
    for field in fields:
        if field.rare:
            assert isinstance(field.kind, Array | Text)
            assert isinstance(field.kind, Array) or field.nullable
        if field.tag is not None and isinstance(field.kind, Nested):
            assert field.default is None, "a tagged struct is absent by default"
