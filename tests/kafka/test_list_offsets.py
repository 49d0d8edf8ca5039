"""ListOffsets and OffsetForLeaderEpoch."""

import pytest

from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from floe.wire.records import Record, encode

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


async def ask(wire, timestamp, *, version=10, partitions=(0,), epoch=-1, topic="t"):
    parts = [ListOffsetsPartition(p, epoch, timestamp) for p in partitions]
    answer = await wire.call(
        ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(topics=[ListOffsetsTopic(topic, parts)])
    )
    return answer.topics[0].partitions


async def one(wire, timestamp, **options):
    (part,) = await ask(wire, timestamp, **options)
    return part.error_code, part.offset, part.timestamp


@pytest.fixture
async def shuffled(wire):
    """Five records in two batches, with timestamps that do not rise; the last is of the far future."""
    await wire.create("t", 2)
    times = ((100, 300), (200, 50, 4_000_000_000_000))
    for group in times:
        records = [Record(i, at, None, b"x", []) for i, at in enumerate(group)]
        await wire.produce("t", encode(records))
    return wire


@pytest.mark.parametrize("version", range(1, 11))
async def test_ends_in_every_version(shuffled, version):
    assert await one(shuffled, LATEST, version=version) == (0, 5, -1)
    assert await one(shuffled, EARLIEST, version=version) == (0, 0, -1)
    assert await one(shuffled, LATEST, version=version, partitions=(1,)) == (0, 0, -1)


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [(0, 0, 100), (100, 0, 100), (101, 1, 300), (300, 1, 300), (301, 4, 4_000_000_000_000)],
)
async def test_lookup_by_time_is_exact_to_the_record(shuffled, timestamp, offset, found):
    assert await one(shuffled, timestamp) == (0, offset, found)


async def test_time_after_every_record_finds_nothing(shuffled):
    assert await one(shuffled, 4_000_000_000_001) == (0, -1, -1)
    assert await one(shuffled, 0, partitions=(1,)) == (0, -1, -1)


async def test_greatest_timestamp(shuffled):
    assert await one(shuffled, MAX_TIMESTAMP) == (0, 4, 4_000_000_000_000)
    assert await one(shuffled, MAX_TIMESTAMP, partitions=(1,)) == (0, -1, -1)


async def test_local_and_tiered_ends_are_those_of_a_broker_without_tiers(shuffled):
    assert await one(shuffled, EARLIEST_LOCAL) == (0, 0, -1)
    assert await one(shuffled, LATEST_TIERED) == (0, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (-6, 10), (-100, 10)],
)
async def test_special_times_need_their_version(shuffled, timestamp, version):
    error, offset, _ = await one(shuffled, timestamp, version=version)
    assert (error, offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


async def test_many_partitions_at_once_and_a_repeated_one(shuffled):
    parts = await ask(shuffled, 0, partitions=(1, 0, 9))
    assert [part.error_code for part in parts] == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    parts = await ask(shuffled, 0, partitions=(0, 1, 0))
    assert [part.error_code for part in parts] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]


async def test_unknown_topic_and_epoch(shuffled):
    assert (await one(shuffled, LATEST, topic="missing"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await one(shuffled, LATEST, epoch=3))[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    (part,) = await ask(shuffled, LATEST, epoch=0)
    assert (part.error_code, part.leader_epoch) == (0, 0)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("asked", "current", "expected"),
    [
        (0, -1, (0, 0, 5)),
        (0, 0, (0, 0, 5)),
        (3, -1, (0, -1, -1)),
        (-1, -1, (0, -1, -1)),
        (0, 2, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
    ],
)
async def test_the_one_epoch_ends_at_the_log_end(shuffled, version, asked, current, expected):
    part = OffsetForLeaderPartition(0, current, asked)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", [part])])
    answer = await shuffled.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request)
    told = answer.topics[0].partitions[0]
    assert (told.error_code, told.leader_epoch, told.end_offset) == expected


async def test_epoch_of_an_unknown_partition(shuffled):
    parts = [OffsetForLeaderPartition(9, -1, 0)]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", parts)])
    answer = await shuffled.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
