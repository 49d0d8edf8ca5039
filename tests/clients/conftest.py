"""One real broker process for all client tests, and the records they send."""

import uuid

import pytest

from floe.testing.broker_process import BrokerProcess

MIB = 1 << 20
BIG = ["-X", "message.max.bytes=16MiB", "-X", "num.partitions=1"]


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("broker"), *BIG) as running:
        yield running


@pytest.fixture
def topic():
    """A fresh name; the first use creates it."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def records():
    """(key, value, headers) that have gone wrong somewhere before: nulls, empties, 1 byte, 10 MB."""
    return [
        (None, b"", []),
        (b"", None, []),
        (b"k", b"v", []),
        (b"\x00", b"\xff", [("h", b"1"), ("h", b"2"), ("empty", b""), ("null", None), ("ü", b"\x00")]),
        (b"key", bytes(range(256)) * 100, [("name", b"x" * 1000)]),
        (None, b"x" * (10 * MIB), []),
        (b"last", b"after the big one", []),
    ]
