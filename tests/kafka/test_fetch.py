"""Fetch: identity, long polls, budgets, errors."""

import asyncio
import time

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.batch import walk
from floe.wire.kafka.apis import ApiKey
from floe.wire.records import decode

LONG_MS = 60_000


def values(part):
    """Values of all batches, in order."""
    found = []
    for position, size, _, _ in walk(part.records):
        found += [record.value for record in decode(part.records[position : position + size])]
    return found


def parts(answer):
    return [part for topic in answer.responses for part in topic.partitions]


@pytest.mark.parametrize("version", range(4, 18))
async def test_records_come_back_in_every_version_with_the_client_s_own_name_for_the_topic(
    wire, make_fetch, version
):
    topic = await wire.create("t")
    await wire.produce("t", [b"a", b"b"])
    name = "t" if version <= 12 else topic.topic_id
    answer = await wire.call(ApiKey.FETCH, version, make_fetch([(name, 0, 0)]))
    (told,) = answer.responses
    assert (told.topic, told.topic_id) == (("t", bytes(16)) if version <= 12 else ("", topic.topic_id))
    (part,) = told.partitions
    assert values(part) == [b"a", b"b"]
    assert (part.high_watermark, part.last_stable_offset) == (2, 2)
    assert part.log_start_offset == (0 if version >= 5 else -1)


async def test_offset_inside_a_batch_brings_the_whole_batch(wire):
    await wire.create("t")
    await wire.produce("t", [b"a", b"b", b"c"])
    part = await wire.fetch("t", 2)
    assert values(part) == [b"a", b"b", b"c"]
    assert [record.offset for record in decode(part.records)] == [0, 1, 2]


async def test_offset_at_the_end_is_empty_and_past_it_is_out_of_range(wire):
    await wire.create("t")
    await wire.produce("t", [b"a"])
    at_end = await wire.fetch("t", 1)
    assert (at_end.error_code, bytes(at_end.records), at_end.high_watermark) == (0, b"", 1)
    past = await wire.fetch("t", 2, max_wait_ms=LONG_MS)
    assert past.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (past.high_watermark, past.log_start_offset) == (-1, -1)
    assert (await wire.fetch("t", -5)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_unknown_partitions_are_told_at_once_even_with_a_long_wait(wire, make_fetch):
    await wire.create("t")
    request = make_fetch([("t", 0, 0), ("t", 7, 0), ("missing", 0, 0)], max_wait_ms=LONG_MS)
    answer = await wire.call(ApiKey.FETCH, 12, request)
    codes = [part.error_code for part in parts(answer)]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    answer = await wire.call(ApiKey.FETCH, 13, make_fetch([(b"?" * 16, 0, 0)], max_wait_ms=LONG_MS))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
async def test_leader_epoch_is_checked(wire, epoch, code):
    await wire.create("t")
    await wire.produce("t", [b"a"])
    assert (await wire.fetch("t", 0, epoch=epoch)).error_code == code


async def test_waiting_fetch_is_answered_by_the_next_record(house, make_fetch):
    consumer, producer = await house.connect(), await house.connect()
    await producer.create("t")
    consumer.send(ApiKey.FETCH, 12, make_fetch([("t", 0, 0)], max_wait_ms=LONG_MS))
    await producer.produce("t", [b"late"])
    answer = await asyncio.wait_for(consumer.receive(), 10)
    assert values(answer.responses[0].partitions[0]) == [b"late"]


async def test_fetch_waits_for_min_bytes(house, make_fetch):
    consumer, producer = await house.connect(), await house.connect()
    await producer.create("t", 2)
    await producer.produce("t", [b"x" * 1000])
    wanted = [("t", 0, 0), ("t", 1, 0)]
    consumer.send(ApiKey.FETCH, 12, make_fetch(wanted, max_wait_ms=LONG_MS, min_bytes=2500))
    await producer.produce("t", [b"y" * 1000], partition=1)
    assert consumer.reader._buffer == b""
    await producer.produce("t", [b"z" * 1000], partition=1)
    answer = await asyncio.wait_for(consumer.receive(), 10)
    found = [values(part) for part in parts(answer)]
    assert found == [[b"x" * 1000], [b"y" * 1000, b"z" * 1000]]


async def test_empty_fetch_is_answered_when_its_time_is_up(wire):
    await wire.create("t")
    began = time.monotonic()
    part = await wire.fetch("t", 0, max_wait_ms=150)
    assert time.monotonic() - began >= 0.14
    assert (part.error_code, bytes(part.records)) == (0, b"")


async def test_waiting_fetch_learns_of_the_topic_s_deletion(house, make_fetch):
    from floe.wire.kafka.messages import DeleteTopicsRequest

    consumer, admin = await house.connect(), await house.connect()
    await admin.create("t")
    consumer.send(ApiKey.FETCH, 12, make_fetch([("t", 0, 0)], max_wait_ms=LONG_MS))
    await admin.end_offset("t")
    await admin.call(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["t"]))
    answer = await asyncio.wait_for(consumer.receive(), 10)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_budget_is_spent_in_request_order_with_one_batch_at_least(wire, make_fetch):
    await wire.create("t", 4)
    for partition in range(4):
        for _ in range(3):
            await wire.produce("t", [b"x" * 1000], partition=partition)
    wanted = [("t", p, 0) for p in (2, 0, 3, 1)]
    # Room for two batches and a bit: the first partition asked for takes it.
    answer = await wire.call(ApiKey.FETCH, 12, make_fetch(wanted, max_bytes=2500))
    sizes = [len(values(part)) for part in parts(answer)]
    assert [part.partition_index for part in parts(answer)] == [2, 0, 3, 1]
    assert sizes == [2, 0, 0, 0]
    # Room for nothing: one batch of one partition all the same, so that the consumer gets on.
    answer = await wire.call(ApiKey.FETCH, 12, make_fetch(wanted, max_bytes=10, partition_max_bytes=10))
    assert [len(values(part)) for part in parts(answer)] == [1, 0, 0, 0]
    # Room per partition: each gets its share.
    answer = await wire.call(ApiKey.FETCH, 12, make_fetch(wanted, partition_max_bytes=1500))
    assert [len(values(part)) for part in parts(answer)] == [1, 1, 1, 1]


async def test_broker_caps_what_a_client_asks_for(open_house, make_fetch):
    house = await open_house(fetch_max_bytes=4000)
    wire = await house.connect()
    await wire.create("t")
    for _ in range(10):
        await wire.produce("t", [b"x" * 1000])
    part = await wire.fetch("t", 0)
    assert len(values(part)) == 3


async def test_aborted_transactions_are_listed_only_for_read_committed(wire):
    await wire.create("t")
    await wire.produce("t", [b"a"])
    assert (await wire.fetch("t", 0)).aborted_transactions is None
    assert (await wire.fetch("t", 0, isolation_level=1)).aborted_transactions == []


async def test_fetch_of_nothing_is_answered_at_once(wire, make_fetch):
    answer = await wire.call(ApiKey.FETCH, 12, make_fetch([], max_wait_ms=LONG_MS))
    assert (answer.error_code, answer.responses) == (0, [])
