"""How long the Kafka codec takes, next to kio: microseconds per message, the best of interleaved rounds.

Usage: codec.py [ROUNDS]

Reading starts from a received body. Writing includes making the message, as a handler does, and ends with the
pieces for the transport (kio: one bytes object). kio copies records, ours are views and pieces.
"""

import datetime as dt
import io
import sys
import timeit
from collections.abc import Callable, Iterator

from kio.schema.errors import ErrorCode as KioError
from kio.schema.fetch.v12 import request as kio_fetch_request
from kio.schema.fetch.v12 import response as kio_fetch
from kio.schema.metadata.v12 import response as kio_metadata
from kio.schema.produce.v9 import request as kio_produce_request
from kio.schema.produce.v9 import response as kio_produce
from kio.serial import entity_reader, entity_writer

from floe.model.ids import ZERO_TOPIC_ID
from floe.wire.kafka import messages as m
from floe.wire.kafka.apis import ApiKey

Work = Callable[[], object]

ROUND_S = 0.02
BATCH_16K = memoryview(bytes(16 << 10))
BATCH_128K = memoryview(bytes(128 << 10))
NO_TIME = dt.timedelta(0)


def read_produce(count: int) -> tuple[Work, Work]:
    partitions = [m.PartitionProduceData(i, BATCH_16K) for i in range(count)]
    message = m.ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[m.TopicProduceData("a-topic", partition_data=partitions)]
    )
    body = b"".join(m.encode_request(ApiKey.PRODUCE, 9, message))
    view, read = memoryview(body), entity_reader(kio_produce_request.ProduceRequest)
    return lambda: m.decode_request(ApiKey.PRODUCE, 9, view), lambda: read(body, 0)


def read_fetch(count: int) -> tuple[Work, Work]:
    partitions = [m.FetchPartition(i, 0, 1000 + i, -1, -1, 1 << 20) for i in range(count)]
    message = m.FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[m.FetchTopic("a-topic", partitions=partitions)]
    )
    body = b"".join(m.encode_request(ApiKey.FETCH, 12, message))
    view, read = memoryview(body), entity_reader(kio_fetch_request.FetchRequest)
    return lambda: m.decode_request(ApiKey.FETCH, 12, view), lambda: read(body, 0)


def write_produce(count: int) -> tuple[Work, Work]:
    def ours() -> object:
        partitions = [
            m.PartitionProduceResponse(index=i, base_offset=1234, log_start_offset=0) for i in range(count)
        ]
        topic = m.TopicProduceResponse(name="a-topic", partition_responses=partitions)
        return m.encode_response(ApiKey.PRODUCE, 9, m.ProduceResponse(responses=[topic]))

    write = entity_writer(kio_produce.ProduceResponse)

    def theirs() -> object:
        partitions = tuple(
            kio_produce.PartitionProduceResponse(
                index=i, error_code=KioError.none, base_offset=1234, log_start_offset=0, record_errors=()
            )
            for i in range(count)
        )
        topic = kio_produce.TopicProduceResponse(name="a-topic", partition_responses=partitions)
        return written(write, kio_produce.ProduceResponse(responses=(topic,), throttle_time=NO_TIME))

    return ours, theirs


def write_fetch(count: int) -> tuple[Work, Work]:
    def ours() -> object:
        partitions = [
            m.PartitionData(
                partition_index=i,
                high_watermark=1234,
                last_stable_offset=1234,
                log_start_offset=0,
                records=m.Records(len(BATCH_128K), [BATCH_128K]),
            )
            for i in range(count)
        ]
        topic = m.FetchableTopicResponse(topic="a-topic", partitions=partitions)
        return m.encode_response(ApiKey.FETCH, 12, m.FetchResponse(responses=[topic]))

    write, batch = entity_writer(kio_fetch.FetchResponse), bytes(BATCH_128K)

    def theirs() -> object:
        partitions = tuple(
            kio_fetch.PartitionData(
                partition_index=i,
                error_code=KioError.none,
                high_watermark=1234,
                last_stable_offset=1234,
                log_start_offset=0,
                aborted_transactions=None,
                records=batch,
            )
            for i in range(count)
        )
        topic = kio_fetch.FetchableTopicResponse(topic="a-topic", partitions=partitions)
        message = kio_fetch.FetchResponse(
            throttle_time=NO_TIME, error_code=KioError.none, session_id=0, responses=(topic,)
        )
        return written(write, message)

    return ours, theirs


def write_metadata(count: int) -> tuple[Work, Work]:
    """`count` topics of ten partitions."""

    def ours() -> object:
        topics = [
            m.MetadataResponseTopic(
                name="a-topic",
                topic_id=ZERO_TOPIC_ID,
                partitions=[
                    m.MetadataResponsePartition(
                        partition_index=i, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
                    )
                    for i in range(10)
                ],
            )
            for _ in range(count)
        ]
        brokers = [m.MetadataResponseBroker(1, "localhost", 9092)]
        return m.encode_response(ApiKey.METADATA, 12, m.MetadataResponse(brokers=brokers, topics=topics))

    write = entity_writer(kio_metadata.MetadataResponse)

    def theirs() -> object:
        topics = tuple(
            kio_metadata.MetadataResponseTopic(
                error_code=KioError.none,
                name="a-topic",
                topic_id=None,
                partitions=tuple(
                    kio_metadata.MetadataResponsePartition(
                        error_code=KioError.none,
                        partition_index=i,
                        leader_id=1,
                        leader_epoch=0,
                        replica_nodes=(1,),
                        isr_nodes=(1,),
                        offline_replicas=(),
                    )
                    for i in range(10)
                ),
            )
            for _ in range(count)
        )
        brokers = (kio_metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092),)
        return written(
            write, kio_metadata.MetadataResponse(throttle_time=NO_TIME, brokers=brokers, topics=topics)
        )

    return ours, theirs


def written(write: Callable[[io.BytesIO, object], None], message: object) -> bytes:
    buffer = io.BytesIO()
    write(buffer, message)
    return buffer.getvalue()


def cases() -> Iterator[tuple[str, tuple[Work, Work]]]:
    for count in (1, 8, 100):
        yield f"read Produce v9, {count} x 16 KiB", read_produce(count)
    for count in (1, 8, 100):
        yield f"read Fetch v12, {count} partitions", read_fetch(count)
    for count in (1, 8, 100):
        yield f"write Produce response v9, {count} partitions", write_produce(count)
    for count in (1, 8, 100):
        yield f"write Fetch response v12, {count} x 128 KiB", write_fetch(count)
    for count in (10, 100):
        yield f"write Metadata response v12, {count} x 10 partitions", write_metadata(count)


def best_us(works: tuple[Work, Work], rounds: int) -> tuple[float, float]:
    for work in works:
        work()  # readers and writers are made at first use
    numbers = [max(1, int(ROUND_S / timeit.timeit(work, number=3) * 3)) for work in works]
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for side, work in enumerate(works):
            best[side] = min(best[side], timeit.timeit(work, number=numbers[side]) / numbers[side] * 1e6)
    return best[0], best[1]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print(f"{'microseconds':<48}{'floe':>9}{'kio':>10}{'ratio':>8}")
    for name, works in cases():
        ours, theirs = best_us(works, rounds)
        print(f"{name:<48}{ours:>9.2f}{theirs:>10.2f}{theirs / ours:>8.1f}")


if __name__ == "__main__":
    main()
