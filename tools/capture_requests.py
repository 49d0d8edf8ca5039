"""Captures what real Kafka clients send: one file per client, API and version, for the golden tests.

Usage: capture_requests.py FOLDER

A stand-in for a broker answers just enough for each client to produce one record and to fetch from an
assigned partition. The first request of each kind is written to FOLDER as CLIENT-API-vVERSION.bin, without
the frame's length; CLIENT is the client id, by which each client here names itself.
"""

import asyncio
import sys
import threading
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka

from floe.model.ids import TopicId
from floe.wire.kafka import messages as m
from floe.wire.kafka.apis import API, ApiKey
from floe.wire.kafka.framing import RequestHeader, read_header, response_frame

TOPIC = "golden"
TOPIC_ID = TopicId(bytes(range(16)))
WANTED = {
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.INIT_PRODUCER_ID,
}
FETCH_PAUSE_S = 0.2


class StandIn:
    """A broker of one topic with two empty partitions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.fetched = threading.Event()

    async def start(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                await self._request(memoryview(await reader.readexactly(size)), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _request(self, view: memoryview, writer: asyncio.StreamWriter) -> None:
        header, position = read_header(view)
        spec = API[header.api_key]
        if header.api_key in WANTED:
            path = self.folder / f"{header.client_id}-{spec.name}-v{header.api_version}.bin"
            if not path.exists():
                path.write_bytes(view)
                print(path.name, len(view))
        version, answer = header.api_version, None
        if header.api_key == ApiKey.API_VERSIONS:
            version, answer = m.api_versions_answer(header.api_version)
        else:
            answer = self._answer(header, m.decode_request(header.api_key, version, view[position:]))
        if header.api_key == ApiKey.FETCH:
            self.fetched.set()
            await asyncio.sleep(FETCH_PAUSE_S)
        writer.writelines(response_frame(spec, version, header.correlation_id, answer))

    def _answer(self, header: RequestHeader, request: m.Struct) -> m.Struct:
        match request:
            case m.MetadataRequest():
                return self._metadata()
            case m.InitProducerIdRequest():
                return m.InitProducerIdResponse(producer_id=1000)
            case m.ProduceRequest(topic_data=topics):
                return m.ProduceResponse(
                    [
                        m.TopicProduceResponse(
                            t.name,
                            t.topic_id,
                            [m.PartitionProduceResponse(p.index) for p in t.partition_data],
                        )
                        for t in topics
                    ]
                )
            case m.ListOffsetsRequest(topics=topics):
                found = [
                    m.ListOffsetsTopicResponse(
                        t.name,
                        [m.ListOffsetsPartitionResponse(p.partition_index, offset=0) for p in t.partitions],
                    )
                    for t in topics
                ]
                return m.ListOffsetsResponse(topics=found)
            case m.FetchRequest(topics=topics):
                empty = [
                    m.FetchableTopicResponse(
                        t.topic, t.topic_id, [m.PartitionData(p.partition, records=b"") for p in t.partitions]
                    )
                    for t in topics
                ]
                return m.FetchResponse(responses=empty)
            case m.FindCoordinatorRequest(coordinator_keys=keys):
                there = [m.Coordinator(key, 1, "127.0.0.1", self.port) for key in keys]
                return m.FindCoordinatorResponse(
                    node_id=1, host="127.0.0.1", port=self.port, coordinators=there
                )
        raise NotImplementedError(header)

    def _metadata(self) -> m.MetadataResponse:
        partitions = [
            m.MetadataResponsePartition(
                partition_index=i, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
            )
            for i in range(2)
        ]
        return m.MetadataResponse(
            brokers=[m.MetadataResponseBroker(1, "127.0.0.1", self.port)],
            cluster_id="golden-cluster",
            controller_id=1,
            topics=[m.MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)],
        )


def confluent(bootstrap: str, fetched: threading.Event) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "client.id": "librdkafka", "enable.idempotence": True}
    )
    producer.produce(TOPIC, value=b"value", key=b"key", partition=0, headers=[("h", b"1")])
    producer.flush(10)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "librdkafka",
            "group.id": "golden",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, confluent_kafka.OFFSET_BEGINNING)])
    while not fetched.is_set():
        consumer.poll(0.1)
    consumer.close()


def kafka_python(bootstrap: str, fetched: threading.Event) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id="kafka-python")
    producer.send(TOPIC, value=b"value", key=b"key", partition=0, headers=[("h", b"1")]).get(10)
    producer.close()
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, client_id="kafka-python", group_id=None)
    consumer.assign([kafka.TopicPartition(TOPIC, 0)])
    consumer.seek_to_beginning()
    while not fetched.is_set():
        consumer.poll(timeout_ms=100)
    consumer.close()


def aiokafka_client(bootstrap: str, fetched: threading.Event) -> None:
    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, client_id="aiokafka", enable_idempotence=True
        )
        await producer.start()
        await producer.send_and_wait(TOPIC, value=b"value", key=b"key", partition=0, headers=[("h", b"1")])
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, client_id="aiokafka", group_id=None, enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(TOPIC, 0)])
        await consumer.seek_to_beginning()
        while not fetched.is_set():
            await consumer.getmany(timeout_ms=100)
        await consumer.stop()

    asyncio.run(run())


async def capture(folder: Path) -> None:
    broker = StandIn(folder)
    await broker.start()
    for client in (confluent, kafka_python, aiokafka_client):
        broker.fetched.clear()
        await asyncio.to_thread(client, f"127.0.0.1:{broker.port}", broker.fetched)
    await asyncio.sleep(2 * FETCH_PAUSE_S)  # connections end by themselves


if __name__ == "__main__":
    asyncio.run(capture(Path(sys.argv[1])))
