"""The simulator's clients against a toy broker that is right by construction, and against wrong ones.

The toy keeps its log in a dict that survives every kill and answers each request in one step. With it a world
must be judged good, whatever the network and the kills do; with a flaw built in, it must be judged bad.
"""

import asyncio
import random
import struct

import pytest

from floe.testing.checker import AnomalyKind, check_history
from floe.testing.sim_admin import SimAdmin
from floe.testing.sim_client import ClientEnv
from floe.testing.sim_consumer import FinalReader, SimConsumer, SimProber
from floe.testing.sim_history import History
from floe.testing.sim_host import BrokerHost
from floe.testing.sim_loop import SimLoop
from floe.testing.sim_network import SimNetwork
from floe.testing.sim_producer import Load, SimProducer
from floe.testing.sim_trace import Trace
from floe.testing.sim_transport import LinkConditions
from floe.wire.batch import check_batches, stamp
from floe.wire.kafka import messages as m
from floe.wire.kafka.apis import SERVED, ApiKey
from floe.wire.kafka.framing import read_header, response_frame

PORT = 9092


class ToyLog:
    """Durable state: per partition the batches as (base offset, batch), and what idempotence needs."""

    def __init__(self):
        self.topics: dict[str, bytes] = {}
        self.batches: dict[tuple[str, int], list] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.sequences: dict[tuple, tuple] = {}
        self.producers = 0
        self.flaw = None

    def append(self, partition, batch):
        """(error code, base offset)"""
        key = (partition, batch.producer_id)
        if batch.producer_id >= 0 and self.flaw != "no sequence check":
            expected, recent = self.sequences.get(key, (0, ()))
            known = dict(recent).get(batch.base_sequence)
            if known is not None:
                return 0, known
            if batch.base_sequence != expected:
                return 45, -1
        base = self.ends.get(partition, 0)
        self.ends[partition] = base + batch.record_count
        if not (self.flaw == "lose some" and base % 7 == 3):
            self.batches.setdefault(partition, []).append((base, bytes(batch.view)))
        _, recent = self.sequences.get(key, (0, ()))
        recent = (*recent, (batch.base_sequence, base))[-5:]
        self.sequences[key] = (batch.base_sequence + batch.record_count, recent)
        return 0, base


class ToyConnection(asyncio.BufferedProtocol):
    def __init__(self, log):
        self.log = log
        self.buffer = bytearray(4096)
        self.received = bytearray()

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, sizehint):
        return self.buffer

    def buffer_updated(self, nbytes):
        self.received += self.buffer[:nbytes]
        while len(self.received) >= 4:
            size = struct.unpack_from(">i", self.received)[0]
            if len(self.received) < 4 + size:
                return
            frame = memoryview(bytes(self.received[4 : 4 + size]))
            del self.received[: 4 + size]
            self.answer(frame)

    def answer(self, frame):
        header, position = read_header(frame)
        message = m.decode_request(header.api_key, header.api_version, frame[position:])
        handler = getattr(self, ApiKey(header.api_key).name.lower())
        answer = handler(message, header.api_version)
        spec = SERVED[header.api_key]
        self.transport.writelines(response_frame(spec, header.api_version, header.correlation_id, answer))

    def name_of(self, topic_id):
        return next(name for name, known in self.log.topics.items() if known == topic_id)

    def create_topics(self, message, version):
        name = message.topics[0].name
        self.log.topics.setdefault(name, bytes([len(self.log.topics) + 1] * 16))
        return m.CreateTopicsResponse(topics=[m.CreatableTopicResult(name=name)])

    def metadata(self, message, version):
        name = message.topics[0].name
        topic = m.MetadataResponseTopic(name=name, topic_id=self.log.topics[name])
        return m.MetadataResponse(topics=[topic])

    def init_producer_id(self, message, version):
        self.log.producers += 1
        return m.InitProducerIdResponse(producer_id=self.log.producers, producer_epoch=0)

    def produce(self, message, version):
        responses = []
        for topic in message.topic_data:
            name = topic.name or self.name_of(topic.topic_id)
            results = []
            for part in topic.partition_data:
                (batch,) = check_batches(part.records, batch_size_max=10_000_000)
                code, base = self.log.append((name, part.index), batch)
                results.append(
                    m.PartitionProduceResponse(index=part.index, error_code=code, base_offset=base)
                )
            responses.append(
                m.TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=results)
            )
        return m.ProduceResponse(responses=responses)

    def fetch(self, message, version):
        responses = []
        for topic in message.topics:
            name = topic.topic or self.name_of(topic.topic_id)
            parts = []
            for part in topic.partitions:
                partition = (name, part.partition)
                end = self.log.ends.get(partition, 0)
                batches = self.log.batches.get(partition, [])
                pieces = [
                    b"".join(stamp(memoryview(data), base, 0))
                    for base, data in batches
                    if base + struct.unpack_from(">i", data, 23)[0] >= part.fetch_offset
                ][:3]
                parts.append(
                    m.PartitionData(
                        partition_index=part.partition, high_watermark=end, records=b"".join(pieces)
                    )
                )
            responses.append(m.FetchableTopicResponse(topic=name, topic_id=topic.topic_id, partitions=parts))
        return m.FetchResponse(responses=responses)

    def list_offsets(self, message, version):
        topic = message.topics[0]
        part = topic.partitions[0]
        end = self.log.ends.get((topic.name, part.partition_index), 0)
        result = m.ListOffsetsPartitionResponse(
            partition_index=part.partition_index, offset=end if part.timestamp == -1 else 0
        )
        return m.ListOffsetsResponse(
            topics=[m.ListOffsetsTopicResponse(name=topic.name, partitions=[result])]
        )


class ToyBroker:
    def __init__(self, loop, log):
        self.loop = loop
        self.log = log

    async def start(self):
        await self.loop.create_server(lambda: ToyConnection(self.log), "127.0.0.1", PORT)

    async def stop(self, *, drain):
        pass


def run_world(seed, flaw=None):
    loop = SimLoop(random.Random(seed))
    trace = Trace(loop.time)
    links = LinkConditions(latency=(0.001, 0.05), spike_chance=0.02, tiny_chance=0.1, window=4096)
    network = SimNetwork(loop, random.Random(seed), trace, lambda: links)
    log = ToyLog()
    log.flaw = flaw
    host = BrokerHost(loop, random.Random(seed), trace, network, lambda _: ToyBroker(loop, log))
    env = ClientEnv(loop, History(), trace, "127.0.0.1", PORT)
    partitions = (("t", 0), ("t", 1))

    async def main():
        host.start()
        await SimAdmin(env, "admin", random.Random(seed)).create("t", 2)
        clients = [
            SimProducer(env, "p0", random.Random(1), Load(partitions, give_up_chance=0.01), idempotent=True),
            SimProducer(env, "p1", random.Random(2), Load(partitions), idempotent=True),
            SimProducer(env, "q0", random.Random(3), Load(partitions), idempotent=False),
            SimConsumer(env, "c0", random.Random(4), partitions, seek_chance=0.05),
            SimProber(env, "prober", random.Random(5), partitions, trim_chance=0),
        ]
        tasks = [asyncio.create_task(client.run()) for client in clients]
        rng = random.Random(seed)
        for n in range(30):
            await asyncio.sleep(rng.uniform(0, 1))
            if n % 3 == 0:
                host.kill("test")
            elif network.connections():
                act = network.reset if n % 3 == 1 else network.silence
                act(rng.choice(network.connections()))
        for client in clients:
            client.stop()
        await asyncio.gather(*tasks)
        await host.running()
        reader = FinalReader(env, "final", random.Random(6))
        for partition in partitions:
            await reader.read(partition)
        await host.stop()

    loop.run(main(), seconds=3600)
    loop.close()
    return env, loop, trace


@pytest.mark.parametrize("seed", range(4))
def test_a_right_broker_is_judged_good(seed):
    env, loop, _ = run_world(seed)
    assert loop.unhandled == []
    assert env.problems == []
    assert [str(anomaly) for anomaly in check_history(env.history)] == []
    assert len(env.history.sends) > 100
    assert len(env.history.polls) > 20
    assert len(env.history.bounds) > 20


@pytest.mark.parametrize(
    ("flaw", "kind"),
    [("lose some", AnomalyKind.LOST_WRITE), ("no sequence check", AnomalyKind.DUPLICATE)],
)
def test_a_wrong_broker_is_judged_bad(flaw, kind):
    env, *_ = run_world(2, flaw)
    assert kind in {anomaly.kind for anomaly in check_history(env.history)}


def test_same_seed_same_trace():
    assert run_world(2)[2].digest == run_world(2)[2].digest
