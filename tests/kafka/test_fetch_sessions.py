"""Fetch sessions through the wire, and their bounds."""

from random import Random

import pytest

from floe.kafka.fetch_session import PARTITIONS_MAX, FetchSessions
from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic


async def told(wire, request, version=12):
    """(error, session id, {(topic, partition): records?})."""
    answer = await wire.call(ApiKey.FETCH, version, request)
    parts = [
        (topic.topic or topic.topic_id, part.partition_index, len(part.records) > 0)
        for topic in answer.responses
        for part in topic.partitions
    ]
    return answer.error_code, answer.session_id, parts


@pytest.fixture
async def session(wire, make_fetch):
    """A session over three partitions, all told once."""
    await wire.create("t", 3)
    request = make_fetch([("t", p, 0) for p in range(3)], session_epoch=0)
    error, session_id, parts = await told(wire, request)
    assert error == 0
    assert session_id > 0
    assert [partition for _, partition, _ in parts] == [0, 1, 2]
    return session_id


async def test_only_changes_are_told(wire, make_fetch, session):
    assert await told(wire, make_fetch([], session_id=session, session_epoch=1)) == (0, session, [])
    await wire.produce("t", [b"a"], partition=1)
    answer = await told(wire, make_fetch([], session_id=session, session_epoch=2))
    assert answer == (0, session, [("t", 1, True)])
    # The same records come again until the client moves its offset.
    answer = await told(wire, make_fetch([], session_id=session, session_epoch=3))
    assert answer == (0, session, [("t", 1, True)])
    answer = await told(wire, make_fetch([("t", 1, 1)], session_id=session, session_epoch=4))
    assert answer == (0, session, [])


async def test_partitions_join_and_leave(wire, make_fetch, session):
    await wire.create("u")
    for topic, partition in (("u", 0), ("t", 0), ("t", 2)):
        await wire.produce(topic, [b"a"], partition=partition)
    forget = [ForgottenTopic("t", partitions=[2])]
    request = make_fetch([("u", 0, 0)], session_id=session, session_epoch=1, forgotten=forget)
    assert await told(wire, request) == (0, session, [("t", 0, True), ("u", 0, True)])


async def test_served_partitions_go_to_the_end_of_the_line(wire, make_fetch, session):
    for partition in range(3):
        await wire.produce("t", [b"x" * 1000], partition=partition)
    served = []
    for epoch in range(1, 4):
        request = make_fetch([], session_id=session, session_epoch=epoch, max_bytes=100)
        _, _, parts = await told(wire, request)
        served += [partition for _, partition, has_records in parts if has_records]
    assert sorted(served) == [0, 1, 2]


async def test_wrong_epoch_and_unknown_session_are_refused(wire, make_fetch, session):
    answer = await told(wire, make_fetch([], session_id=session, session_epoch=5))
    assert answer == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
    answer = await told(wire, make_fetch([], session_id=session ^ 1, session_epoch=1))
    assert answer == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
    answer = await told(wire, make_fetch([], session_id=session, session_epoch=1), version=13)
    assert answer == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 0, [])
    assert await told(wire, make_fetch([], session_id=session, session_epoch=1)) == (0, session, [])


async def test_final_epoch_closes_the_session(wire, make_fetch, session):
    error, session_id, parts = await told(wire, make_fetch([("t", 0, 0)], session_id=session))
    assert (error, session_id, len(parts)) == (0, 0, 1)
    answer = await told(wire, make_fetch([], session_id=session, session_epoch=1))
    assert answer[0] == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_sessions_work_with_topic_ids(wire, make_fetch):
    topic = await wire.create("t")
    await wire.produce("t", [b"a"])
    request = make_fetch([(topic.topic_id, 0, 1)], session_epoch=0)
    _, session_id, _ = await told(wire, request, version=15)
    await wire.produce("t", [b"b"])
    answer = await told(wire, make_fetch([], session_id=session_id, session_epoch=1), version=15)
    assert answer == (0, session_id, [(topic.topic_id, 0, True)])


async def test_deleted_topic_is_told_in_a_session(wire, make_fetch, session):
    from floe.wire.kafka.messages import DeleteTopicsRequest

    await wire.call(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["t"]))
    answer = await wire.call(ApiKey.FETCH, 12, make_fetch([], session_id=session, session_epoch=1))
    codes = {part.error_code for topic in answer.responses for part in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


# Bounds.


def opening(partitions=1):
    parts = [FetchPartition(p) for p in range(partitions)]
    return FetchRequest(session_epoch=0, topics=[FetchTopic("t", partitions=parts)])


def test_no_session_is_opened_when_all_are_in_use_and_an_idle_one_makes_room():
    sessions = FetchSessions(limit=2, idle_ms=1000, random=Random(1))
    first, second = (sessions.begin(opening(), 12, now_ms=0).session for _ in range(2))
    assert first is not None
    assert second is not None
    assert sessions.begin(opening(), 12, now_ms=500).session is None
    kept = FetchRequest(session_id=second.id, session_epoch=1)
    assert sessions.begin(kept, 12, now_ms=900).error == 0
    third = sessions.begin(opening(), 12, now_ms=1500).session
    assert third is not None
    assert len(sessions) == 2
    gone = FetchRequest(session_id=first.id, session_epoch=1)
    assert sessions.begin(gone, 12, now_ms=1500).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_remembered_partitions_are_bounded_over_all_sessions():
    sessions = FetchSessions(limit=1000, idle_ms=1000, random=Random(1))
    half = PARTITIONS_MAX // 2
    assert sessions.begin(opening(half), 12, now_ms=0).session is not None
    assert sessions.begin(opening(half), 12, now_ms=0).session is not None
    refused = sessions.begin(opening(), 12, now_ms=0)
    assert refused.session is None
    assert len(refused.targets) == 1


def test_limit_of_0_turns_sessions_off():
    sessions = FetchSessions(limit=0, idle_ms=1000, random=Random(1))
    assert sessions.begin(opening(), 12, now_ms=0).session is None


def test_epoch_wraps_around_to_1():
    sessions = FetchSessions(limit=1, idle_ms=1000, random=Random(1))
    session = sessions.begin(opening(), 12, now_ms=0).session
    assert session is not None
    session.epoch = 0x7FFFFFFF
    last = FetchRequest(session_id=session.id, session_epoch=0x7FFFFFFF)
    assert sessions.begin(last, 12, now_ms=0).error == 0
    assert session.epoch == 1
