"""Changes to topics as a client asks for them: checked, begun at the topic's home, waited for.

A change whose operation takes too long raises `Unavailable`; it goes on all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import TypeVar

from floe.metadata.coordinators.counters import Counters
from floe.metadata.coordinators.topics import (
    TopicBusy,
    TopicCoordinator,
    check_new_topic,
    check_partitions,
    unknown_topic,
)
from floe.metadata.directory import Directory
from floe.metadata.operations import OperationDriver
from floe.metadata.ring import Ring
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import RangeId, TopicId
from floe.model.topic import Topic

T = TypeVar("T")
CHANGE_SECONDS_MAX = 30.0
_RESERVED_IDS = (bytes(16), bytes(15) + b"\x01")  # Kafka's zero id, and its metadata topic


class TopicHome:
    """What a vnode has for the topics it is home to."""

    def __init__(self, topics: TopicCoordinator, operations: OperationDriver) -> None:
        self.topics = topics
        self.operations = operations


class TopicChanges:
    """Topic changes over the homes of all topics."""

    def __init__(
        self,
        ring: Ring,
        homes: Sequence[TopicHome],
        counters: Counters,
        directory: Directory,
        *,
        random: Random,
        seconds_max: float = CHANGE_SECONDS_MAX,
    ) -> None:
        self._ring = ring
        self._homes = homes
        self._counters = counters
        self._directory = directory
        self._random = random
        self._seconds_max = seconds_max

    async def create(
        self, name: str, *, partitions: int, config: Mapping[str, str], validate_only: bool
    ) -> Topic:
        """See `metadata.api.Metadata`; a topic that was only validated has no id and ranges of no number."""
        check_new_topic(name, partitions, config)
        home = self._home(name)
        async with self._time_limit(name):
            await self._when_idle(home, lambda: home.topics.check_free(name))
            if validate_only:
                return Topic(
                    name=name, id=TopicId(bytes(16)), ranges=(RangeId(0),) * partitions, config=dict(config)
                )
            topic_id = self._new_topic_id()
            ranges = tuple(RangeId(each) for each in await self._counters.take_range_ids(partitions))
            operation = await self._when_idle(
                home, lambda: home.topics.create(name, topic_id, ranges, config)
            )
            await home.operations.finished(operation)
        created = Topic(name=name, id=topic_id, ranges=ranges, config=dict(config), version=1)
        return self._directory.by_id(topic_id) or created

    async def delete(self, topic_id: TopicId) -> None:
        topic = self._directory.by_id(topic_id)
        if topic is None:
            raise Rejected(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        home, name = self._home(topic.name), topic.name
        async with self._time_limit(name):
            await self._when_idle(home, lambda: home.topics.delete(name, topic_id))

    async def add_partitions(self, name: str, *, total: int, validate_only: bool) -> Topic:
        topic = self._grown_topic(name, total)
        if validate_only:
            return topic
        home = self._home(name)
        async with self._time_limit(name):
            count = total - len(topic.ranges)
            ranges = tuple(RangeId(each) for each in await self._counters.take_range_ids(count))

            async def add() -> int:
                # Whoever went before may have changed the count.
                return await home.topics.add_partitions(self._grown_topic(name, total, count), ranges)

            await home.operations.finished(await self._when_idle(home, add))
        return self._directory.by_name(name) or topic

    async def alter_config(
        self, name: str, *, changes: Mapping[str, str | None], validate_only: bool
    ) -> Topic:
        home = self._home(name)
        async with self._time_limit(name):
            topic, operation = await self._when_idle(
                home, lambda: home.topics.alter_config(name, changes, validate_only=validate_only)
            )
            if operation:
                await home.operations.finished(operation)
        return topic

    def _home(self, name: str) -> TopicHome:
        return self._homes[self._ring.of_topic(name)]

    def _new_topic_id(self) -> TopicId:
        topic_id = self._random.randbytes(16)
        while topic_id in _RESERVED_IDS:
            topic_id = self._random.randbytes(16)
        return TopicId(topic_id)

    def _grown_topic(self, name: str, total: int, by: int | None = None) -> Topic:
        """The topic as it is, once it is sure that it may grow to `total`, by as many as was thought."""
        topic = self._directory.by_name(name)
        if topic is None:
            raise unknown_topic(name)
        check_partitions(total)
        count = len(topic.ranges)
        if total == count:
            raise Rejected(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
        if total < count:
            raise Rejected(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {name} currently has {count} partition(s); {total} would not be an increase.",
            )
        if by is not None and by != total - count:
            raise Unavailable(f"the topic has changed meanwhile. topic={name}")
        return topic

    async def _when_idle(self, home: TopicHome, change: Callable[[], Awaitable[T]]) -> T:
        """Begin a change as soon as no operation on the topic is under way."""
        while True:
            try:
                return await change()
            except TopicBusy as busy:
                await home.operations.finished(busy.operation_id)

    @asynccontextmanager
    async def _time_limit(self, name: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds_max):
                yield
        except TimeoutError:
            raise Unavailable(
                f"the change was not done in time and goes on in the background. topic={name}"
            ) from None
