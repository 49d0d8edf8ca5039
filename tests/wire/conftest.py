"""Batches made by other people's code."""

from collections.abc import Callable, Sequence

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from floe.wire.records import Record


@pytest.fixture(scope="session")
def foreign_batch() -> Callable[..., bytes]:
    """Builds a batch with aiokafka, whose bytes owe nothing to the code under test."""

    def build(
        records: Sequence[Record],
        *,
        codec: int = 0,
        transactional: bool = False,
        producer: tuple[int, int, int] = (-1, -1, -1),
    ) -> bytes:
        builder = DefaultRecordBatchBuilder(2, codec, transactional, *producer, 1 << 30)
        for r in records:
            added = builder.append(r.offset, r.timestamp, r.key, r.value, list(r.headers))
            assert added is not None
        return bytes(builder.build())

    return build
