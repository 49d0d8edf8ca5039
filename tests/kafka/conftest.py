"""A real broker on memory stores in the test's own loop, and a client that speaks the wire format."""

import asyncio
from random import Random
from struct import Struct

import pytest

from floe.config.settings import Settings
from floe.metadata.store.memory import MemoryStore
from floe.observability.clock import SystemClock
from floe.observability.metrics import Metrics
from floe.server.broker import Broker
from floe.server.parts import Parts
from floe.storage.objects.memory import MemoryObjects
from floe.wire.kafka.apis import API, ApiKey
from floe.wire.kafka.framing import read_response_header, request_frame
from floe.wire.kafka.messages import (
    CreatableTopic,
    CreateTopicsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    MetadataRequestTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
    decode_response,
)
from floe.wire.records import Record, encode

_LENGTH = Struct(">i")
NOW_MS = 1_700_000_000_000


class GatedObjects(MemoryObjects):
    """A store whose PUTs of records wait while the gate is closed."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.gate = asyncio.Event()
        self.gate.set()

    async def put(self, key, body):
        if "/objects/" in key:
            await self.gate.wait()
        await super().put(key, body)


class Wire:
    """One connection; requests can be pipelined."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0
        self.asked = []

    @classmethod
    async def to(cls, address):
        return cls(*await asyncio.open_connection(address.host, address.port, limit=1 << 26))

    def send(self, key, version, message):
        self.correlation_id += 1
        pieces = request_frame(API[key], version, self.correlation_id, "test", message)
        self.writer.write(b"".join(pieces))
        self.asked.append((key, version, self.correlation_id))

    async def receive(self):
        """The next answer, which must be that of the oldest request."""
        key, version, correlation_id = self.asked.pop(0)
        (size,) = _LENGTH.unpack(await self.reader.readexactly(4))
        view = memoryview(await self.reader.readexactly(size))
        found, position = read_response_header(API[key], version, view)
        assert found == correlation_id
        return decode_response(key, version, view[position:])

    async def call(self, key, version, message):
        self.send(key, version, message)
        return await self.receive()

    async def is_closed(self):
        """Whether the broker ends the connection; waits for it."""
        try:
            return await asyncio.wait_for(self.reader.read(), 10) == b""
        except ConnectionError:
            return True

    def close(self):
        self.writer.close()

    # What most tests need.

    async def create(self, name, partitions=1, version=7, configs=()):
        topic = CreatableTopic(name, partitions, -1, [], list(configs))
        answer = await self.call(ApiKey.CREATE_TOPICS, version, CreateTopicsRequest([topic]))
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        return answer.topics[0]

    async def produce(self, topic, values, *, partition=0, acks=-1, version=9, **batch):
        answer = await self.call(
            ApiKey.PRODUCE, version, produce_request(topic, values, partition=partition, acks=acks, **batch)
        )
        return answer.responses[0].partition_responses[0]

    async def fetch(self, topic, offset, *, partition=0, version=12, **options):
        answer = await self.call(
            ApiKey.FETCH, version, fetch_request([(topic, partition, offset)], version=version, **options)
        )
        return answer.responses[0].partitions[0]

    async def end_offset(self, topic, partition=0, timestamp=-1):
        request = ListOffsetsRequest(
            topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, timestamp)])]
        )
        answer = await self.call(ApiKey.LIST_OFFSETS, 7, request)
        part = answer.topics[0].partitions[0]
        assert part.error_code == 0
        return part.offset

    async def describe(self, *names, version=12, create=False):
        topics = [MetadataRequestTopic(name=name) for name in names]
        return await self.call(ApiKey.METADATA, version, MetadataRequest(topics, create))


def batch_of(values, **options):
    records = [Record(i, NOW_MS + i, None, value, []) for i, value in enumerate(values)]
    return encode(records, **options)


def produce_request(
    topic, values, *, partition=0, acks=-1, topic_id=bytes(16), transactional_id=None, **batch
):
    records = values if isinstance(values, bytes | bytearray) else batch_of(values, **batch)
    part = PartitionProduceData(partition, memoryview(records))
    return ProduceRequest(transactional_id, acks, 30_000, [TopicProduceData(topic, topic_id, [part])])


def fetch_request(
    wanted, *, version=12, max_wait_ms=0, min_bytes=1, max_bytes=1 << 25, partition_max_bytes=1 << 20,
    epoch=-1, session_id=0, session_epoch=-1, isolation_level=0, forgotten=(),
):  # fmt: skip
    """`wanted` is (topic name or id, partition, offset) in order."""
    topics = []
    for topic, partition, offset in wanted:
        named = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
        part = FetchPartition(partition, epoch, offset, partition_max_bytes=partition_max_bytes)
        topics.append(FetchTopic(partitions=[part], **named))
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics,
        session_id=session_id, session_epoch=session_epoch, isolation_level=isolation_level,
        forgotten_topics_data=list(forgotten),
    )  # fmt: skip


class House:
    """A broker that a test furnishes with settings, and its gated store."""

    def __init__(self, settings):
        values = {"listeners": "127.0.0.1:0", "http.listen": "off", "native.listen": "off"}
        self.objects = GatedObjects()
        self.metrics = Metrics()
        self.store = MemoryStore()
        parts = Parts(
            clock=SystemClock(),
            random=Random(1),
            objects=self.objects,
            store=self.store,
            metrics=self.metrics,
        )
        self.broker = Broker(Settings.of({**values, **settings}), parts)
        self.wires = []

    async def connect(self):
        wire = await Wire.to(self.broker.address)
        self.wires.append(wire)
        return wire


@pytest.fixture
async def open_house():
    """Start brokers with settings of the test's choice."""
    houses = []

    async def start(**settings):
        house = House({key.replace("_", "."): value for key, value in settings.items()})
        await house.broker.start()
        houses.append(house)
        return house

    yield start
    for house in houses:
        house.objects.gate.set()
        for wire in house.wires:
            wire.close()
        await house.broker.stop(drain=True)


@pytest.fixture
async def house(open_house):
    return await open_house()


@pytest.fixture
async def wire(house):
    return await house.connect()


@pytest.fixture
def make_batch():
    return batch_of


@pytest.fixture
def make_produce():
    return produce_request


@pytest.fixture
def make_fetch():
    return fetch_request
