"""Our listener, codec and Produce handler with nothing behind them: what the front door alone costs.

    python -m benchmarks.null_broker PORT PARTITIONS

Its one topic is "bench". Batches are checked as in a real broker, then forgotten and acknowledged.
"""

import asyncio
import gc
import sys
from collections.abc import Sequence
from random import Random
from typing import Any, cast

import uvloop

from floe.kafka.door import BrokerFacts, Door
from floe.kafka.listener import Listener
from floe.kafka.routes import routes
from floe.kafka.settings import DoorSettings
from floe.model.coordinates import EntryResult
from floe.model.error_codes import ErrorCode
from floe.model.ids import Offset, ProducerId, RangeId, TopicId
from floe.model.topic import Topic
from floe.observability.clock import SystemClock
from floe.observability.kafka_counters import KafkaCounters
from floe.server.process_memory import keep_freed_memory
from floe.wire.batch import Batch


class OneTopic:
    """A directory that holds one topic for ever."""

    version = 1

    def __init__(self, partitions: int) -> None:
        ranges = tuple(RangeId(i) for i in range(partitions))
        self._topic = Topic(name="bench", id=TopicId(b"bench".ljust(16)), ranges=ranges)

    def by_name(self, name: str) -> Topic | None:
        return self._topic if name == self._topic.name else None

    def by_id(self, topic_id: TopicId) -> Topic | None:
        return self._topic if topic_id == self._topic.id else None

    def all(self) -> Sequence[Topic]:
        return (self._topic,)


class NoMetadata:
    """The two things that a producer asks for."""

    def __init__(self, partitions: int) -> None:
        self.topics = OneTopic(partitions)

    async def next_producer_id(self) -> ProducerId:
        return ProducerId(1)


class NoLog:
    """Takes everything and keeps nothing."""

    def __init__(self) -> None:
        self._result = EntryResult(ErrorCode.NONE, Offset(0), Offset(0))

    def append(self, entries: Sequence[tuple[RangeId, Batch]]) -> "asyncio.Future[list[EntryResult]]":
        future = asyncio.get_running_loop().create_future()
        future.set_result([self._result] * len(entries))
        return future


async def serve(port: int, partitions: int) -> None:
    counters = KafkaCounters()
    door = Door(
        settings=DoorSettings(),
        facts=BrokerFacts(1, "null", "127.0.0.1", port),
        metadata=cast("Any", NoMetadata(partitions)),
        log=cast("Any", NoLog()),
        clock=SystemClock(),
        random=Random(1),
        counters=counters,
        routes=routes(counters),
    )
    await Listener(door).start("127.0.0.1", port)
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
