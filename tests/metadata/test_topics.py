"""Topics come, change and go as Kafka clients expect, and exactly one of two rivals wins."""

import asyncio

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected
from floe.model.ids import TopicId
from floe.model.topic import PARTITIONS_MAX


async def code_of(call):
    with pytest.raises(Rejected) as caught:
        await call
    return caught.value.code


def test_created_topic_is_shown_by_name_and_id_with_ranges_of_its_own(on_plane):
    async def work(plane):
        first = await plane.topic("a", 3, retention_ms="5")
        second = await plane.topic("b", 5)
        topics = plane.router.topics
        assert topics.by_name("a") == topics.by_id(first.id) == first
        assert [topic.name for topic in topics.all()] == ["a", "b"]
        assert len({*first.ranges, *second.ranges}) == 8
        assert first.config == {"retention.ms": "5"}
        assert first.is_aligned
        assert len(first.id) == 16
        assert first.id != second.id

    on_plane(work)


@pytest.mark.parametrize(
    ("name", "partitions", "config", "code"),
    [
        ("", 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a", 0, {}, ErrorCode.INVALID_PARTITIONS),
        ("a", -1, {}, ErrorCode.INVALID_PARTITIONS),
        ("a", PARTITIONS_MAX + 1, {}, ErrorCode.INVALID_PARTITIONS),
        ("a", 1, {"retention.ms": "x"}, ErrorCode.INVALID_CONFIG),
        ("a", 1, {"no.such": "x"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_bad_topic_is_refused_with_kafkas_code_and_leaves_nothing(on_plane, name, partitions, config, code):
    async def work(plane):
        for validate_only in (False, True):
            create = plane.router.create_topic(
                name, partitions=partitions, config=config, validate_only=validate_only
            )
            assert await code_of(create) is code
        assert plane.router.topics.all() == ()

    on_plane(work)


def test_existing_and_colliding_names_are_refused(on_plane):
    async def work(plane):
        await plane.topic("a.b")
        assert await code_of(plane.topic("a.b")) is ErrorCode.TOPIC_ALREADY_EXISTS
        assert await code_of(plane.topic("a_b")) is ErrorCode.INVALID_TOPIC_EXCEPTION
        validate = plane.router.create_topic("a.b", partitions=1, config={}, validate_only=True)
        assert await code_of(validate) is ErrorCode.TOPIC_ALREADY_EXISTS

    on_plane(work)


def test_validation_alone_changes_nothing(on_plane):
    async def work(plane):
        shown = await plane.router.create_topic("a", partitions=7, config={}, validate_only=True)
        assert len(shown.ranges) == 7
        topic = await plane.topic("a", 2)
        version = plane.router.topics.version
        await plane.router.add_partitions("a", total=5, validate_only=True)
        altered = await plane.router.alter_config("a", changes={"retention.ms": "9"}, validate_only=True)
        assert altered.config == {"retention.ms": "9"}
        assert plane.router.topics.by_name("a") == topic
        assert plane.router.topics.version == version

    on_plane(work)


@pytest.mark.parametrize("seed", range(5))
def test_of_rival_creations_exactly_one_wins_and_the_losers_find_the_topic_shown(on_plane, seed):
    async def work(plane):
        async def create():
            try:
                return await plane.topic("a", 20)
            except Rejected as error:
                assert plane.router.topics.by_name("a") is not None
                return error.code

        outcomes = await asyncio.gather(*(create() for _ in range(6)))
        assert outcomes.count(ErrorCode.TOPIC_ALREADY_EXISTS) == 5
        winner = next(outcome for outcome in outcomes if outcome is not ErrorCode.TOPIC_ALREADY_EXISTS)
        assert plane.router.topics.by_name("a") == winner

    on_plane(work, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_topic_is_not_shown_before_all_its_ranges_take_records(on_plane, seed):
    async def work(plane):
        creation = asyncio.create_task(plane.topic("a", 64))
        while (topic := plane.router.topics.by_name("a")) is None:
            await asyncio.sleep(0.0001)
        await plane.write(topic.ranges)
        assert [plane.router.view_now(range_id).log_end for range_id in topic.ranges] == [1] * 64
        await creation

    on_plane(work, seed=seed)


def test_deleted_topic_is_gone_at_once_and_its_name_is_free(on_plane):
    async def work(plane):
        old = await plane.topic("a", 20)
        await plane.write(old.ranges)
        await plane.router.delete_topic(old.id)
        assert plane.router.topics.by_name("a") is None
        assert plane.router.topics.by_id(old.id) is None
        new = await plane.topic("a", 20)
        assert new.id != old.id
        assert not {*new.ranges} & {*old.ranges}
        assert await code_of(plane.router.delete_topic(old.id)) is ErrorCode.UNKNOWN_TOPIC_ID
        assert plane.router.topics.by_name("a") == new
        await asyncio.sleep(1)
        assert plane.router.view_now(new.ranges[0]).log_end == 0

    on_plane(work)


def test_unknown_topics_are_refused(on_plane):
    async def work(plane):
        router = plane.router
        assert await code_of(router.delete_topic(TopicId(b"x" * 16))) is ErrorCode.UNKNOWN_TOPIC_ID
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await code_of(router.add_partitions("a", total=3)) is unknown
        assert await code_of(router.alter_config("a", changes={"retention.ms": "1"})) is unknown

    on_plane(work)


@pytest.mark.parametrize(
    ("counts", "is_aligned"),
    [([1, 2, 4], True), ([3, 6, 24], True), ([2, 3], False), ([4, 6, 12], False), ([1, 3, 6, 12], False)],
)
def test_doubling_keeps_a_topic_aligned_and_anything_else_unaligns_it_for_good(on_plane, counts, is_aligned):
    async def work(plane):
        topic = await plane.topic("a", counts[0])
        for total in counts[1:]:
            grown = await plane.router.add_partitions("a", total=total)
            assert grown.ranges[: len(topic.ranges)] == topic.ranges
            assert len(set(grown.ranges)) == total
            assert grown.version > topic.version
            topic = grown
        assert plane.router.topics.by_name("a") == topic
        assert topic.is_aligned is is_aligned
        await plane.write(topic.ranges)

    on_plane(work)


def test_partitions_cannot_become_fewer_or_too_many(on_plane):
    async def work(plane):
        await plane.topic("a", 4)
        for total in (4, 3, 0, -1, PARTITIONS_MAX + 1):
            refused = plane.router.add_partitions("a", total=total)
            assert await code_of(refused) is ErrorCode.INVALID_PARTITIONS

    on_plane(work)


def test_config_is_set_unset_and_checked(on_plane):
    async def work(plane):
        await plane.topic("a", 2, retention_ms="5", segment_ms="6")
        alter = plane.router.alter_config
        await alter("a", changes={"retention.ms": None, "retention.bytes": "7"})
        topic = plane.router.topics.by_name("a")
        assert topic.config == {"segment.ms": "6", "retention.bytes": "7"}
        assert await code_of(alter("a", changes={"no.such": None})) is ErrorCode.INVALID_CONFIG
        assert await code_of(alter("a", changes={"retention.ms": "-7"})) is ErrorCode.INVALID_CONFIG
        assert plane.router.topics.by_name("a") == topic

    on_plane(work)


def test_altered_retention_reaches_ranges_that_have_records(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 20, retention_ms="-1")
        await plane.write(topic.ranges)
        await asyncio.sleep(100)
        assert plane.router.view_now(topic.ranges[0]).log_start == 0
        await plane.router.alter_config("a", changes={"retention.ms": "50000"})
        await asyncio.sleep(5)
        assert [plane.router.view_now(each).log_start for each in topic.ranges] == [1] * 20

    on_plane(work)


@pytest.mark.parametrize("seed", range(8))
def test_rival_changes_of_one_topic_follow_one_another(on_plane, seed):
    """Growth, new configs and deletion at once: each either happens whole or is refused."""

    async def work(plane):
        topic = await plane.topic("a", 8)
        calls = [
            plane.router.add_partitions("a", total=16),
            plane.router.alter_config("a", changes={"retention.ms": "1000"}),
            plane.router.alter_config("a", changes={"retention.bytes": "1000"}),
            plane.router.add_partitions("a", total=32),
            plane.router.delete_topic(topic.id),
        ]
        await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(10)
        assert plane.router.topics.all() == ()
        assert all(vnode.scan(b"r", b"s", 100) == [] for vnode in plane.store.disk.vnodes)
        assert all(vnode.scan(b"o", b"p", 100) == [] for vnode in plane.store.disk.vnodes)

    on_plane(work, seed=seed)


def test_topics_are_found_again_after_a_restart(on_plane):
    async def work(plane):
        for number in range(300):
            await plane.topic(f"topic-{number}", 2)

    async def again(plane):
        names = [topic.name for topic in plane.router.topics.all()]
        assert names == sorted(f"topic-{number}" for number in range(300))

    disk = on_plane(work, vnodes=1)
    on_plane(again, disk=disk)


def test_large_topic_is_created_grown_and_deleted(on_plane):
    async def work(plane):
        topic = await plane.topic("a", 5_000)
        topic = await plane.router.add_partitions("a", total=10_000)
        assert len(set(topic.ranges)) == 10_000
        await plane.router.delete_topic(topic.id)
        await asyncio.sleep(60)
        assert all(vnode.scan(b"r", b"s", 10) == [] for vnode in plane.store.disk.vnodes)

    on_plane(work)
