"""Produce: acknowledgements, refusals per partition, topic ids."""

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.batch import read_header
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    CreatableTopicConfig,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from floe.wire.records import decode


@pytest.mark.parametrize("version", range(3, 13))
async def test_offsets_continue_in_every_version(wire, version):
    await wire.create("t")
    for expected in (0, 2, 4):
        part = await wire.produce("t", [b"a", b"b"], version=version)
        assert (part.error_code, part.base_offset) == (0, expected)
        assert part.log_append_time_ms == -1


@pytest.mark.parametrize("acks", [-1, 1])
async def test_acknowledged_records_can_be_fetched(wire, acks):
    await wire.create("t")
    await wire.produce("t", [b"a"], acks=acks)
    part = await wire.fetch("t", 0)
    assert [record.value for record in decode(part.records)] == [b"a"]


async def test_nothing_is_acknowledged_before_the_object_is_durable(house, make_produce):
    wire = await house.connect()
    await wire.create("t")
    house.objects.gate.clear()
    wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"], acks=1))
    other = await house.connect()
    assert await other.end_offset("t") == 0
    house.objects.gate.set()
    answer = await wire.receive()
    assert answer.responses[0].partition_responses[0].base_offset == 0
    assert await other.end_offset("t") == 1


async def test_acks_0_is_not_answered(wire, make_produce):
    await wire.create("t")
    wire.send(ApiKey.PRODUCE, 9, make_produce("t", [b"a"], acks=0))
    wire.asked.pop()
    # The next answer on the wire is that of the next request, which sees the record.
    assert await wire.end_offset("t") == 1


async def test_error_with_acks_0_ends_the_connection(wire, make_produce):
    wire.send(ApiKey.PRODUCE, 9, make_produce("missing", [b"a"], acks=0))
    assert await wire.is_closed()


@pytest.mark.parametrize("acks", [-2, 2, 100])
async def test_other_acks_are_refused(wire, acks):
    await wire.create("t")
    part = await wire.produce("t", [b"a"], acks=acks)
    assert part.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert part.base_offset == -1
    assert await wire.end_offset("t") == 0


async def test_each_partition_has_its_own_outcome(wire, make_batch):
    await wire.create("t", 2)
    damaged = bytearray(make_batch([b"x"]))
    damaged[-1] ^= 1
    good = memoryview(make_batch([b"x"]))
    request = ProduceRequest(
        None,
        -1,
        30_000,
        [
            TopicProduceData(
                "t",
                partition_data=[
                    PartitionProduceData(0, good),
                    PartitionProduceData(1, memoryview(bytes(damaged))),
                    PartitionProduceData(2, good),
                    PartitionProduceData(-1, good),
                ],
            ),
            TopicProduceData("missing", partition_data=[PartitionProduceData(0, good)]),
        ],
    )
    answer = await wire.call(ApiKey.PRODUCE, 9, request)
    first, second = answer.responses
    assert [part.index for part in first.partition_responses] == [0, 1, 2, -1]
    assert [part.error_code for part in first.partition_responses] == [
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert second.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [await wire.end_offset("t", p) for p in (0, 1)] == [1, 0]


async def test_batch_larger_than_the_broker_s_limit_is_refused(open_house):
    house = await open_house(message_max_bytes=2000)
    wire = await house.connect()
    await wire.create("t")
    part = await wire.produce("t", [b"x" * 3000])
    assert part.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (await wire.produce("t", [b"x" * 1000])).error_code == 0


async def test_topic_s_own_limit_wins(wire):
    await wire.create("t", configs=[CreatableTopicConfig("max.message.bytes", "500")])
    part = await wire.produce("t", [b"x" * 600])
    assert part.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "500" in part.error_message


@pytest.mark.parametrize("values", [b"", None])
async def test_partition_without_records_is_refused(wire, values):
    await wire.create("t")
    part = PartitionProduceData(0, None if values is None else memoryview(values))
    request = ProduceRequest(None, -1, 1000, [TopicProduceData("t", partition_data=[part])])
    answer = await wire.call(ApiKey.PRODUCE, 9, request)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD


async def test_zstd_needs_version_7(wire):
    await wire.create("t")
    old = await wire.produce("t", [b"a"], version=6, codec=4)
    assert old.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert (await wire.produce("t", [b"a"], version=7, codec=4)).error_code == 0


async def test_transactions_are_refused(wire, make_produce):
    await wire.create("t")
    request = make_produce("t", [b"a"], transactional_id="tx")
    part = (await wire.call(ApiKey.PRODUCE, 9, request)).responses[0].partition_responses[0]
    assert part.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    batch = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    assert (await wire.produce("t", [b"a"], **batch)).error_code == ErrorCode.INVALID_TXN_STATE
    assert await wire.end_offset("t") == 0


async def test_idempotent_producer_is_deduplicated_and_kept_in_order(wire):
    await wire.create("t")
    first = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    assert (await wire.produce("t", [b"a", b"b"], **first)).base_offset == 0
    again = await wire.produce("t", [b"a", b"b"], **first)
    assert (again.error_code, again.base_offset) == (0, 0)
    assert await wire.end_offset("t") == 2
    gap = await wire.produce("t", [b"c"], **{**first, "base_sequence": 7})
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await wire.produce("t", [b"c"], **{**first, "base_sequence": 2})).base_offset == 2


async def test_version_13_names_topics_by_id_and_echoes_it(wire, make_produce):
    topic = await wire.create("t")
    answer = await wire.call(ApiKey.PRODUCE, 13, make_produce("", [b"a"], topic_id=topic.topic_id))
    assert answer.responses[0].topic_id == topic.topic_id
    assert answer.responses[0].partition_responses[0].error_code == 0
    answer = await wire.call(ApiKey.PRODUCE, 13, make_produce("", [b"a"], topic_id=b"?" * 16))
    assert answer.responses[0].topic_id == b"?" * 16
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_log_append_time_is_the_broker_s(wire):
    await wire.create("t", configs=[CreatableTopicConfig("message.timestamp.type", "LogAppendTime")])
    part = await wire.produce("t", [b"a", b"b"])
    assert part.log_append_time_ms > 1_700_000_001_000
    stored = (await wire.fetch("t", 0)).records
    assert read_header(stored).max_timestamp == part.log_append_time_ms
    assert {record.timestamp for record in decode(stored)} == {part.log_append_time_ms}


async def test_request_without_topics_is_answered(wire):
    answer = await wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, []))
    assert answer.responses == []
