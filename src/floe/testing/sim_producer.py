"""Producers of the simulator.

An idempotent producer works in sessions, each with a producer id of its own: up to five requests under way,
and after any failure everything unacknowledged is sent again in order, with the same sequences, until it is
acknowledged. A session may be given up, as when a client crashes; its unacknowledged sends stay unknown and a
new session begins. A plain producer has one request under way and never sends anything twice.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from random import Random

from floe.model.error_codes import ErrorCode
from floe.testing.sim_client import ClientEnv, KafkaLink, LinkLost, SimClient
from floe.testing.sim_history import Outcome, Partition, Send
from floe.wire.batch import CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from floe.wire.records import Record, encode

Answer = asyncio.Future[ProduceResponse]

IN_FLIGHT_MAX = 5
_CODECS = (CODEC_NONE, CODEC_NONE, CODEC_SNAPPY, CODEC_LZ4)  # those that every version may carry
_BAD_REQUEST = frozenset(
    (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
_NO_SUCH_TOPIC = frozenset((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID))
_OUT_OF_SEQUENCE = frozenset(
    (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )
)


@dataclass(frozen=True, slots=True)
class Load:
    """What a producer sends; sizes in bytes, `pause` in seconds between sends."""

    partitions: tuple[Partition, ...]
    pause: float = 0.05
    records_max: int = 5
    size_max: int = 200
    give_up_chance: float = 0.0  # of a session, per send


@dataclass(slots=True, eq=False)
class _Batch:
    """One batch until it is acknowledged."""

    send: Send
    data: bytes


@dataclass(slots=True, eq=False)
class _Request:
    """A produce request: at most one batch per partition."""

    batches: list[_Batch]
    attempts: int = 0


@dataclass(slots=True)
class _Session:
    """One producer id and the next sequence per partition."""

    name: str
    producer_id: int = -1
    producer_epoch: int = -1
    sequences: dict[Partition, int] = field(default_factory=dict)
    count: int = 0


class SimProducer(SimClient):
    """Runs until told to stop, then until everything it sent is acknowledged."""

    def __init__(self, env: ClientEnv, name: str, rng: Random, load: Load, *, idempotent: bool) -> None:
        super().__init__(env, name, rng)
        self._load = load
        self._is_idempotent = idempotent
        self._sessions = 0
        self._session = _Session("")
        self._unacknowledged: deque[_Request] = deque()
        self._is_stopping = False
        self._is_session_over = False

    def stop(self) -> None:
        """Send nothing new."""
        self._is_stopping = True

    @property
    def is_done(self) -> bool:
        return self._is_stopping and not self._unacknowledged

    async def run(self) -> None:
        await self._open_session()
        while not self.is_done:
            try:
                await self._round(await self.link())
            except LinkLost:
                self.drop_link()
                await self.rest()
            if self._unacknowledged and not self._is_idempotent:
                self._is_session_over = True  # what is unknown may yet land behind what is sent next
            if self._is_session_over:
                self._unacknowledged.clear()
                await self._open_session()
                await self.rest()
        self.close()

    async def _open_session(self) -> None:
        self._sessions += 1
        self._is_session_over = False
        self._session = _Session(f"{self.name}.{self._sessions}")
        self.env.history.gapless[self._session.name] = self._is_idempotent
        while self._is_idempotent and self._session.producer_id < 0:
            try:
                answer = await self.ask(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest())
            except LinkLost:
                await self.rest()
                continue
            assert isinstance(answer, InitProducerIdResponse)
            if answer.error_code == ErrorCode.NONE:
                self._session.producer_id = answer.producer_id
                self._session.producer_epoch = answer.producer_epoch
            else:
                await self.rest()

    async def _round(self, link: KafkaLink) -> None:
        """Send everything again that is unacknowledged, then new things, until a request fails."""
        pending = deque((request, self._send(link, request)) for request in self._unacknowledged)
        has_failed = False
        while not self._is_session_over:
            if not has_failed and not self._is_stopping:
                self._send_new(link, pending)
            if not pending:
                break
            request, answer = pending.popleft()
            has_failed |= not self._settle(request, await self._answer_of(answer))
            if not has_failed and not self._is_stopping:
                await self.pause(self.rng.expovariate(1 / self._load.pause))
            if self.rng.random() < self._load.give_up_chance:
                self._is_session_over = True
        if has_failed:
            await self.rest()

    def _send_new(self, link: KafkaLink, pending: deque[tuple[_Request, Answer]]) -> None:
        """At least one request when none is under way, and never more than the window."""
        window = IN_FLIGHT_MAX if self._is_idempotent else 1
        while len(pending) < window:
            request = self._new_request()
            self._unacknowledged.append(request)
            pending.append((request, self._send(link, request)))
            if self.rng.random() < 0.5:
                break

    async def _answer_of(self, answer: Answer) -> ProduceResponse:
        try:
            async with asyncio.timeout(self.env.request_seconds):
                return await answer
        except TimeoutError:
            raise LinkLost("no answer in time") from None

    def _send(self, link: KafkaLink, request: _Request) -> Answer:
        request.attempts += 1
        topics: dict[str, TopicProduceData] = {}
        for batch in request.batches:
            name, index = batch.send.partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(name=name, topic_id=self.env.topics[name])
            topic.partition_data.append(PartitionProduceData(index=index, records=memoryview(batch.data)))
        message = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=list(topics.values()))
        return link.request(ApiKey.PRODUCE, self.version(ApiKey.PRODUCE), message)

    def _new_request(self) -> _Request:
        count = self.rng.choice((1, 1, 1, 2, 3))
        partitions = self.rng.sample(self._load.partitions, min(count, len(self._load.partitions)))
        return _Request([self._new_batch(partition) for partition in partitions])

    def _new_batch(self, partition: Partition) -> _Batch:
        session, rng = self._session, self.rng
        count = rng.randint(1, self._load.records_max)
        values = tuple(f"{session.name}.{session.count + n}" for n in range(count))
        session.count += count
        now_ms = int(self.now * 1000)
        padding = b"|" + b"x" * rng.randint(0, self._load.size_max)
        records = [
            Record(
                offset=n, timestamp=now_ms + rng.randint(-50, 50), key=None, value=value.encode() + padding
            )
            for n, value in enumerate(values)
        ]
        sequence = session.sequences.get(partition, 0)
        session.sequences[partition] = sequence + count
        data = encode(
            records,
            codec=rng.choice(_CODECS),
            producer_id=session.producer_id,
            producer_epoch=session.producer_epoch,
            base_sequence=sequence if self._is_idempotent else -1,
        )
        send = Send(session.name, partition, values, self.now)
        self.env.history.sends.append(send)
        return _Batch(send, data)

    def _settle(self, request: _Request, response: ProduceResponse) -> bool:
        """Note what was acknowledged; False when something of the request must be sent again."""
        results = {
            (topic.name or self.env.name_of(topic.topic_id), result.index): result
            for topic in response.responses
            for result in topic.partition_responses
        }
        for batch in list(request.batches):
            result = results.get(batch.send.partition)
            if result is None:
                self.env.problem(f"{self.name}: no answer for {batch.send.partition}")
            else:
                self._judge(request, batch, ErrorCode(result.error_code), result.base_offset)
        if request.batches:
            return False
        if request in self._unacknowledged:
            self._unacknowledged.remove(request)
        return True

    def _judge(self, request: _Request, batch: _Batch, code: ErrorCode, base_offset: int) -> None:
        """Take the batch out of the request when its fate is known; leave it there to be sent again."""
        send = batch.send
        self.env.trace.add(f"client {self.name} {send.values[0]} {code.name} {base_offset}")
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            send.outcome, send.ended = Outcome.OK, self.now
            send.base_offset = base_offset if code is ErrorCode.NONE and base_offset >= 0 else None
            request.batches.remove(batch)
        elif code in _BAD_REQUEST:
            self.env.problem(f"{self.name}: {code.name} for {send}")
            request.batches.remove(batch)
        elif code in _NO_SUCH_TOPIC and request.attempts == 1:
            send.outcome, send.ended = Outcome.FAILED, self.now
            request.batches.remove(batch)
            self._is_session_over = True
        elif code in _OUT_OF_SEQUENCE and self._is_first_of_its_partition(batch):
            self.env.problem(f"{self.name}: {code.name} for {send}, with nothing unacknowledged before it")
            self._is_session_over = True

    def _is_first_of_its_partition(self, batch: _Batch) -> bool:
        for request in self._unacknowledged:
            for other in request.batches:
                if other.send.partition == batch.send.partition:
                    return other is batch
        return False
