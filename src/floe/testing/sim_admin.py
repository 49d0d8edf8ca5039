"""Administration in the simulator: topics that stay, and topics that come and go."""

import asyncio
from random import Random

from floe.model.error_codes import ErrorCode
from floe.testing.sim_client import ClientEnv, LinkLost, SimClient
from floe.testing.sim_history import Partition
from floe.testing.sim_producer import Load, SimProducer
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
    MetadataRequest,
    MetadataRequestTopic,
)

METADATA_VERSION = 12  # tells topic ids
KEEP_FOR_EVER = (CreatableTopicConfig(name="retention.ms", value="-1"),)


class SimAdmin(SimClient):
    """Insists: each call returns when the broker has confirmed it."""

    async def create(self, name: str, partitions: int) -> None:
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=list(KEEP_FOR_EVER)
        )
        while True:
            try:
                answer = await self.ask(
                    ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=5000)
                )
                code = ErrorCode(answer.topics[0].error_code)
                if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    await self._learn(name)
                    self.env.trace.add(f"client {self.name} created {name}")
                    return
            except LinkLost:
                pass
            await self.rest()

    async def _learn(self, name: str) -> None:
        """Note the topic's id; insists, since a client may be told of a topic late."""
        while name not in self.env.topics:
            message = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
            )
            answer = await self.ask(ApiKey.METADATA, message, version=METADATA_VERSION)
            found = answer.topics[0]
            if found.error_code == ErrorCode.NONE:
                self.env.topics[name] = found.topic_id
            else:
                await self.rest()

    async def delete(self, name: str) -> None:
        while True:
            message = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=5000
            )
            try:
                answer = await self.ask(ApiKey.DELETE_TOPICS, message)
                code = ErrorCode(answer.responses[0].error_code)
                if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    self.env.trace.add(f"client {self.name} deleted {name}")
                    return
            except LinkLost:
                pass
            await self.rest()


class Churn:
    """Creates a topic, writes to it for a while, deletes it, and again."""

    def __init__(self, env: ClientEnv, rng: Random, interval: float) -> None:
        self._env = env
        self._rng = rng
        self._interval = interval
        self._is_stopping = False
        self._count = 0

    def stop(self) -> None:
        self._is_stopping = True

    async def run(self) -> None:
        admin = SimAdmin(self._env, "churn", self._rng)
        while not self._is_stopping:
            self._count += 1
            name = f"churn-{self._count}"
            count = self._rng.choice((1, 4))
            await admin.create(name, count)
            partitions: tuple[Partition, ...] = tuple((name, index) for index in range(count))
            producer = SimProducer(
                self._env, f"w{self._count}", self._rng, Load(partitions, pause=0.1), idempotent=False
            )
            writing = asyncio.create_task(producer.run(), name=f"churn {name}")
            await asyncio.sleep(self._rng.expovariate(1 / self._interval))
            if self._rng.random() < 0.5:  # the other half goes on writing while the topic goes
                producer.stop()
                await writing
            await admin.delete(name)
            producer.stop()
            await writing
        admin.close()
