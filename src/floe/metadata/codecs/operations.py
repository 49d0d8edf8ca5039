"""Operation rows as stored: the arguments of each kind and the step that is next.

Fields are stored by position: new ones go to the end, with a default.
"""

from collections.abc import Iterable

import msgspec

from floe.metadata import keys
from floe.model.errors import Corrupt
from floe.model.ids import RangeId

Runs = tuple[tuple[int, int], ...]  # (first, count) of consecutive range ids, in order of partitions


class CreateTopic(msgspec.Struct, frozen=True, array_like=True, tag="create topic"):
    """Create the ranges of a topic, then show it."""

    name: str
    topic_id: bytes
    runs: Runs
    retention_ms: int
    retention_bytes: int


class AddPartitions(msgspec.Struct, frozen=True, array_like=True, tag="add partitions"):
    """Create further ranges, then show them."""

    name: str
    topic_id: bytes
    runs: Runs
    retention_ms: int
    retention_bytes: int


class AlterConfig(msgspec.Struct, frozen=True, array_like=True, tag="alter config"):
    """Tell the ranges of a topic their new limits."""

    name: str
    topic_id: bytes
    runs: Runs
    retention_ms: int
    retention_bytes: int


class DeleteTopic(msgspec.Struct, frozen=True, array_like=True, tag="delete topic"):
    """Take the ranges of a topic that is gone already out of service, then drop their rows."""

    name: str
    topic_id: bytes
    runs: Runs


class CloseBucket(msgspec.Struct, frozen=True, array_like=True, tag="close bucket"):
    """Learn from every vnode what it holds of a bucket that takes no more commits."""

    bucket: int


Arguments = CreateTopic | AddPartitions | AlterConfig | DeleteTopic | CloseBucket


class OperationRow(msgspec.Struct, frozen=True, array_like=True):
    """An operation under way."""

    step: int
    arguments: Arguments


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(OperationRow)


def operation_key(operation_id: int) -> bytes:
    return keys.OPERATION + keys.u64(operation_id)


def operation_id_of(key: bytes) -> int:
    return keys.read_u64(key, 1)


def encode_operation(row: OperationRow) -> bytes:
    return _encoder.encode(row)


def decode_operation(value: bytes) -> OperationRow:
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"an operation's row is damaged: {error}") from error


def runs_of(ranges: Iterable[int]) -> Runs:
    """Range ids as runs: a topic's ids are consecutive but for where partitions were added."""
    runs: list[tuple[int, int]] = []
    for range_id in ranges:
        if runs and runs[-1][0] + runs[-1][1] == range_id:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((range_id, 1))
    return tuple(runs)


def ranges_of(runs: Runs) -> tuple[RangeId, ...]:
    return tuple(RangeId(first + i) for first, count in runs for i in range(count))
