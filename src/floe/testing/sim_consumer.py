"""Readers of the simulator: consumers of assigned partitions, and a prober that asks for both ends."""

import asyncio
from collections.abc import Iterable
from random import Random

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt
from floe.testing.sim_client import ClientEnv, LinkLost, SimClient
from floe.testing.sim_fetch import FIRST_VERSION, FetchSession
from floe.testing.sim_history import Bound, BoundKind, FinalLog, Outcome, Partition, Poll, Trim
from floe.wire.batch import walk
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    PartitionData,
)
from floe.wire.records import decode

FAILED_FETCHES_MAX = 60
LATEST = -1
EARLIEST = -2
_TIMESTAMPS = {BoundKind.LATEST: LATEST, BoundKind.EARLIEST: EARLIEST}


class SimReader(SimClient):
    """What consumers, probers and the final reading share."""

    def __init__(self, env: ClientEnv, name: str, rng: Random) -> None:
        super().__init__(env, name, rng)
        self._session: FetchSession | None = None
        self._partition_bytes = rng.choice((500, 20_000, 1_000_000))

    async def bound(self, partition: Partition, kind: BoundKind) -> int | None:
        """Ask for one end and record the answer; None when the broker refused."""
        name, index = partition
        started = self.now
        asked = ListOffsetsPartition(partition_index=index, timestamp=_TIMESTAMPS[kind])
        message = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=[asked])])
        answer = await self.ask(ApiKey.LIST_OFFSETS, message)
        result = answer.topics[0].partitions[0]
        if result.error_code != ErrorCode.NONE:
            return None
        self.env.trace.add(f"client {self.name} {kind} {name}-{index} {result.offset}")
        self.env.history.bounds.append(Bound(kind, partition, result.offset, started, self.now))
        return int(result.offset)

    async def fetch(
        self, positions: dict[Partition, int], *, wait_ms: int, max_bytes: int
    ) -> dict[Partition, PartitionData]:
        """One fetch of these partitions, of which a session answers those with news; raises `LinkLost`."""
        if self._session is None:
            wants = self.version(ApiKey.FETCH) >= FIRST_VERSION and self.rng.random() < 0.7
            self._session = FetchSession(is_wanted=wants)
        message = self._session.request(positions, self._partition_bytes, self.env.topics)
        message.max_wait_ms, message.min_bytes, message.max_bytes = wait_ms, 1, max_bytes
        try:
            answer = await self.ask(ApiKey.FETCH, message)
        except LinkLost:
            self._session.reset()
            raise
        assert isinstance(answer, FetchResponse)
        if not self._session.answered(answer):
            return {}
        return {
            (topic.topic or self.env.name_of(topic.topic_id), data.partition_index): data
            for topic in answer.responses
            for data in topic.partitions
        }

    def values(self, partition: Partition, data: PartitionData, position: int) -> tuple[tuple[int, str], ...]:
        """(offset, value) of what a fetch returned, from the position asked on; wrong bytes are a problem."""
        if data.records is None:
            return ()
        assert isinstance(data.records, memoryview)
        found: list[tuple[int, str]] = []
        try:
            for start, size, _, _ in walk(data.records):
                records = decode(data.records[start : start + size])
                found += [(r.offset, _text(r.value)) for r in records if r.offset >= position]
        except Corrupt as error:
            self.env.problem(f"{self.name}: corrupt records in {partition} after {position}: {error}")
        return tuple(found)


def _text(value: bytes | None) -> str:
    return (value or b"").partition(b"|")[0].decode()


class SimConsumer(SimReader):
    """Reads its partitions from where it stands; sometimes it seeks."""

    def __init__(
        self, env: ClientEnv, name: str, rng: Random, partitions: Iterable[Partition], *, seek_chance: float
    ) -> None:
        super().__init__(env, name, rng)
        self._positions = dict.fromkeys(partitions, 0)
        self._continues = dict.fromkeys(self._positions, False)
        self._seek_chance = seek_chance
        self._is_stopping = False

    def stop(self) -> None:
        self._is_stopping = True

    async def run(self) -> None:
        while not self._is_stopping:
            try:
                await self._poll()
            except LinkLost:
                await self.rest()
        self.close()

    async def _poll(self) -> None:
        asked = dict(self._positions)
        started = self.now
        answers = await self.fetch(
            asked, wait_ms=self.rng.choice((0, 50, 500)), max_bytes=self.rng.choice((500, 20_000, 1_000_000))
        )
        for partition, data in answers.items():
            if data.error_code == ErrorCode.NONE:
                self._seen(partition, asked[partition], data, started)
            elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._start_over(partition, asked[partition])
            else:
                await self.rest()
        if self.rng.random() < self._seek_chance:
            partition = self.rng.choice(list(self._positions))
            self._seek(partition, self.rng.randint(0, self._positions[partition]))
        await self.pause(self.rng.uniform(0, 0.1))

    def _seen(self, partition: Partition, position: int, data: PartitionData, started: float) -> None:
        records = self.values(partition, data, position)
        if not records:
            return
        self.env.trace.add(f"client {self.name} read {partition} {records[0][0]} to {records[-1][0]}")
        poll = Poll(self.name, partition, position, records, started, self.now, self._continues[partition])
        self.env.history.polls.append(poll)
        self._positions[partition] = records[-1][0] + 1
        self._continues[partition] = True

    async def _start_over(self, partition: Partition, position: int) -> None:
        """Out of range is right only below the log start: we never stand past what we have read."""
        earliest = await self.bound(partition, BoundKind.EARLIEST)
        if earliest is None:
            return
        if earliest <= position:
            self.env.problem(
                f"{self.name}: {position} of {partition} is out of range, EARLIEST is {earliest}"
            )
        self._seek(partition, earliest)

    def _seek(self, partition: Partition, position: int) -> None:
        self._positions[partition] = position
        self._continues[partition] = False


class SimProber(SimReader):
    """Asks for LATEST and EARLIEST, and now and then deletes records."""

    def __init__(
        self, env: ClientEnv, name: str, rng: Random, partitions: Iterable[Partition], *, trim_chance: float
    ) -> None:
        super().__init__(env, name, rng)
        self._partitions = list(partitions)
        self._trim_chance = trim_chance
        self._is_stopping = False

    def stop(self) -> None:
        self._is_stopping = True

    async def run(self) -> None:
        while not self._is_stopping:
            partition = self.rng.choice(self._partitions)
            try:
                latest = await self.bound(partition, BoundKind.LATEST)
                earliest = await self.bound(partition, BoundKind.EARLIEST)
                if latest and earliest is not None and self.rng.random() < self._trim_chance:
                    await self.trim(partition, self.rng.randint(earliest, latest))
            except LinkLost:
                pass
            await self.pause(self.rng.uniform(0, 0.5))
        self.close()

    async def trim(self, partition: Partition, before: int) -> None:
        """Delete the records before an offset."""
        name, index = partition
        trim = Trim(partition, before, self.now)
        self.env.history.trims.append(trim)
        if await self._delete_before(name, index, before):
            trim.outcome, trim.ended = Outcome.OK, self.now
            self.env.trace.add(f"client {self.name} trimmed {name}-{index} before {before}")

    async def _delete_before(self, name: str, index: int, before: int) -> bool:
        if self.env.delete_records is not None:
            return await self.env.delete_records(name, index, before)
        part = DeleteRecordsPartition(partition_index=index, offset=before)
        message = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=5000
        )
        answer = await self.ask(ApiKey.DELETE_RECORDS, message)
        return bool(answer.topics[0].partitions[0].error_code == ErrorCode.NONE)


class FinalReader(SimReader):
    """Reads whole partitions once faults have stopped; insists for a minute on what cannot be read."""

    async def read(self, partition: Partition) -> FinalLog:
        while True:
            try:
                return await self._read(partition)
            except LinkLost:
                await self.rest()

    async def _read(self, partition: Partition) -> FinalLog:
        log_start = await self._insist(partition, BoundKind.EARLIEST)
        log_end = await self._insist(partition, BoundKind.LATEST)
        position, failures = log_start, 0
        records: list[tuple[int, str]] = []
        while position < log_end and failures < FAILED_FETCHES_MAX:
            answers = await self.fetch({partition: position}, wait_ms=100, max_bytes=200_000)
            data = answers.get(partition)
            if data is None or data.error_code != ErrorCode.NONE:
                failures += 1
                code = "nothing" if data is None else ErrorCode(data.error_code).name
                self.env.trace.add(f"client {self.name} {partition} at {position}: {code}")
                await asyncio.sleep(1)
                continue
            found = self.values(partition, data, position)
            records.extend(found)
            failures = 0 if found else failures + 1
            position = found[-1][0] + 1 if found else position
        log = FinalLog(partition, log_start, log_end, tuple(records))
        self.env.history.logs.append(log)
        return log

    async def _insist(self, partition: Partition, kind: BoundKind) -> int:
        while True:
            offset = await self.bound(partition, kind)
            if offset is not None:
                return offset
            await asyncio.sleep(1)
