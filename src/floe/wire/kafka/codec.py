"""Readers and writers of messages, generated from the tables at first use and kept.

The number of kept functions is bounded by the messages and versions that the tables know.
"""

from collections.abc import Callable
from functools import cache
from typing import cast

from floe.wire.kafka.reader_source import reader_source
from floe.wire.kafka.schema.fields import Buffer, Struct
from floe.wire.kafka.writer_source import writer_source

Reader = Callable[[memoryview, int, int], tuple[Struct, int]]
Writer = Callable[[Struct, bytearray, list[Buffer]], bytearray]


@cache
def reader(struct: type[Struct], version: int, flexible: bool) -> Reader:
    """(view, position, end) to (message, position after it); see reader_source for what it raises."""
    return cast("Reader", reader_source(struct, version, flexible).compiled())


@cache
def writer(struct: type[Struct], version: int, flexible: bool) -> Writer:
    """(message, open piece, finished pieces) to the piece left open."""
    return cast("Writer", writer_source(struct, version, flexible).compiled())
