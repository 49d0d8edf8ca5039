"""Topics at their home vnode: what exists under a name, and the transactions that begin to change it.

A topic's row is the truth about its name. Creating writes the row, not yet shown, and begins an operation
that makes the ranges and then shows the topic; deleting removes the row, which hides the topic and frees its
name at once, and begins an operation that clears away the ranges. A topic has at most one operation under
way: whoever comes meanwhile gets `TopicBusy`, waits for that one and asks again. So no operation ever
finds its ranges made or unmade by another.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from floe.machines.retention import RangeLimits
from floe.metadata import keys
from floe.metadata.codecs.operations import (
    AddPartitions,
    AlterConfig,
    CreateTopic,
    DeleteTopic,
    ranges_of,
    runs_of,
)
from floe.metadata.codecs.topics import TopicRow, decode_topic, encode_topic, topic_key
from floe.metadata.directory import Directory
from floe.metadata.operations import OperationDriver
from floe.metadata.vnode import Transaction, Vnode
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected, Unavailable
from floe.model.ids import RangeId, TopicId
from floe.model.key_space import is_doubling
from floe.model.topic import PARTITIONS_MAX, Placement, StorageClass, Topic, check_topic_name
from floe.model.topic_config import TopicConfig, check_config, known_key

_PAGE = 256


class TopicBusy(Unavailable):
    """An operation on the topic is under way; ask again when it is over."""

    def __init__(self, name: str, operation_id: int) -> None:
        super().__init__(f"the topic is being changed. topic={name}")
        self.operation_id = operation_id


def check_new_topic(name: str, partitions: int, config: Mapping[str, str]) -> None:
    """Raise `Rejected` with Kafka's code unless such a topic may exist."""
    check_topic_name(name)
    check_partitions(partitions)
    check_config(config)


def check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise Rejected(
            ErrorCode.INVALID_PARTITIONS,
            f"Number of partitions must be from 1 to {PARTITIONS_MAX}, not {partitions}.",
        )


def limits_of(config: Mapping[str, str]) -> RangeLimits:
    """What a topic's config asks of its ranges; a topic that only compacts drops nothing by age or size."""
    typed = TopicConfig.of(config)
    return RangeLimits(typed.retention_ms, typed.retention_bytes) if typed.is_deleting else RangeLimits()


class TopicRecords:
    """The rows of the topics of one home, and their publication."""

    def __init__(self, vnode: Vnode, directory: Directory) -> None:
        self._vnode = vnode
        self._directory = directory

    async def get(self, tx: Transaction, name: str) -> TopicRow | None:
        """The row of this name or of one that Kafka does not tell apart from it."""
        value = await tx.get(topic_key(name))
        return None if value is None else decode_topic(value)

    def put(self, tx: Transaction, row: TopicRow) -> None:
        tx.put(topic_key(row.name), encode_topic(row))
        if row.is_shown:
            tx.when_durable(partial(self._directory.put, self._vnode.id, row.topic()))

    def delete(self, tx: Transaction, row: TopicRow) -> None:
        tx.delete(topic_key(row.name))
        tx.when_durable(partial(self._directory.remove, self._vnode.id, row.name))

    async def load(self) -> None:
        """Publish all topics of this home as they are; for a new term."""
        await self._vnode.run(self._load)

    async def _load(self, tx: Transaction) -> None:
        topics: list[Topic] = []
        start, end = keys.TOPIC, keys.after(keys.TOPIC)
        while True:
            page = await tx.scan(start, end, _PAGE)
            rows = [decode_topic(value) for _, value in page]
            topics.extend(row.topic() for row in rows if row.is_shown)
            if len(page) < _PAGE:
                break
            start = page[-1][0] + b"\0"
        tx.when_durable(partial(self._directory.replace, self._vnode.id, topics))


class TopicCoordinator:
    """The transactions of one home. Each returns the operation that it has begun, or 0 if none is needed."""

    def __init__(self, vnode: Vnode, records: TopicRecords, operations: OperationDriver) -> None:
        self._vnode = vnode
        self._records = records
        self._operations = operations

    async def check_free(self, name: str) -> None:
        """Raise as `create` would."""
        await self._vnode.run(partial(self._check_free, name))

    async def create(
        self, name: str, topic_id: TopicId, ranges: Sequence[RangeId], config: Mapping[str, str]
    ) -> int:
        return await self._vnode.run(partial(self._create, name, topic_id, ranges, dict(config)))

    async def delete(self, name: str, topic_id: TopicId) -> int:
        """Hide the topic and free its name."""
        return await self._vnode.run(partial(self._delete, name, topic_id))

    async def add_partitions(self, topic: Topic, ranges: Sequence[RangeId]) -> int:
        """Add these ranges to a topic that still has the partitions it is said to have."""
        return await self._vnode.run(partial(self._add_partitions, topic, ranges))

    async def alter_config(
        self, name: str, changes: Mapping[str, str | None], *, validate_only: bool
    ) -> tuple[Topic, int]:
        """Set and, where a value is None, unset configs; returns the topic as it then is."""
        return await self._vnode.run(partial(self._alter_config, name, changes, validate_only))

    async def _check_free(self, name: str, tx: Transaction) -> None:
        row = await self._records.get(tx, name)
        if row is None:
            return
        if row.name != name:
            raise Rejected(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {row.name}",
            )
        if not row.is_shown:
            raise TopicBusy(name, row.operation)
        raise Rejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")

    async def _create(
        self,
        name: str,
        topic_id: TopicId,
        ranges: Sequence[RangeId],
        config: dict[str, str],
        tx: Transaction,
    ) -> int:
        await self._check_free(name, tx)
        runs = runs_of(ranges)
        operation = await self._operations.begin(tx, CreateTopic(name, topic_id, runs, *limits_of(config)))
        row = TopicRow(
            name=name,
            topic_id=topic_id,
            runs=runs,
            config=config,
            storage_class=StorageClass.OBJECT,
            placement=Placement.KAFKA,
            is_aligned=True,
            version=0,
            is_shown=False,
            operation=operation,
        )
        self._records.put(tx, row)
        return operation

    async def _delete(self, name: str, topic_id: TopicId, tx: Transaction) -> int:
        row = await self._idle_row(name, tx)
        if row is None or row.topic_id != topic_id:
            raise Rejected(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        self._records.delete(tx, row)
        return await self._operations.begin(tx, DeleteTopic(name, topic_id, row.runs))

    async def _add_partitions(self, topic: Topic, ranges: Sequence[RangeId], tx: Transaction) -> int:
        row = await self._idle_row(topic.name, tx)
        if row is None or row.topic_id != topic.id or ranges_of(row.runs) != topic.ranges:
            raise Unavailable(f"the topic has changed meanwhile. topic={topic.name}")
        arguments = AddPartitions(topic.name, topic.id, runs_of(ranges), *limits_of(row.config))
        operation = await self._operations.begin(tx, arguments)
        self._records.put(tx, _changed(row, operation=operation))
        return operation

    async def _alter_config(
        self, name: str, changes: Mapping[str, str | None], validate_only: bool, tx: Transaction
    ) -> tuple[Topic, int]:
        row = await self._idle_row(name, tx)
        if row is None:
            raise unknown_topic(name)
        config = {**row.config, **{key: value for key, value in changes.items() if value is not None}}
        for key in [key for key, value in changes.items() if value is None]:
            config.pop(known_key(key).name, None)
        check_config(config)
        if validate_only or config == row.config:
            return _changed(row, config=config).topic(), 0
        limits, operation = limits_of(config), 0
        if limits != limits_of(row.config):
            arguments = AlterConfig(name, row.topic_id, row.runs, *limits)
            operation = await self._operations.begin(tx, arguments)
        row = _changed(row, config=config, operation=operation, version=row.version + 1)
        self._records.put(tx, row)
        return row.topic(), operation

    async def _idle_row(self, name: str, tx: Transaction) -> TopicRow | None:
        """The row of a topic that clients see, with no operation under way."""
        row = await self._records.get(tx, name)
        if row is None or row.name != name or not row.is_shown:
            return None
        if row.operation:
            raise TopicBusy(name, row.operation)
        return row


def shown(row: TopicRow) -> TopicRow:
    """A new topic whose ranges have been made."""
    return _changed(row, is_shown=True, operation=0, version=row.version + 1)


def grown(row: TopicRow, ranges: Sequence[RangeId]) -> TopicRow:
    """A topic with further partitions: aligned still only if each range was split alike."""
    old = ranges_of(row.runs)
    is_aligned = row.is_aligned and is_doubling(len(old), len(old) + len(ranges))
    return _changed(
        row,
        runs=runs_of([*old, *ranges]),
        is_aligned=is_aligned,
        operation=0,
        version=row.version + 1,
    )


def settled(row: TopicRow) -> TopicRow:
    """A topic whose operation is over and has changed nothing that clients see."""
    return _changed(row, operation=0)


def unknown_topic(name: str) -> Rejected:
    return Rejected(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"This server does not host this topic-partition. topic={name}"
    )


def _changed(row: TopicRow, **fields: object) -> TopicRow:
    return msgspec.structs.replace(row, **fields)
