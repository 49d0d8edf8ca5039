"""Whatever bytes arrive, a request is read or refused; lengths that lie cost nothing."""

import contextlib
import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from floe.model.error_codes import ErrorCode
from floe.model.errors import Corrupt, Rejected
from floe.wire.kafka.apis import API, ApiKey
from floe.wire.kafka.coding import PLAIN_BODY_MAX
from floe.wire.kafka.framing import read_header
from floe.wire.kafka.messages import (
    MetadataRequest,
    MetadataRequestTopic,
    Struct,
    decode_request,
    decode_response,
    encode_request,
)
from floe.wire.kafka.varint import encoded

FILES = sorted((Path(__file__).parent / "golden").glob("*.bin"))
MUTATIONS = 1500
LIE = 2**31 - 1


def read(data: bytes) -> Struct:
    view = memoryview(data)
    header, position = read_header(view)
    return decode_request(header.api_key, header.api_version, view[position:])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_truncation_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for length in range(len(data)):
        with pytest.raises(Rejected) as refused:
            read(data[:length])
        assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bytes_after_the_request_are_ignored(path: Path) -> None:
    """As in Kafka; librdkafka's request for all topics has some."""
    assert read(path.read_bytes() + b"\0\1\0") == read(path.read_bytes())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_mutated_requests_are_read_or_refused(path: Path) -> None:
    dice = random.Random(path.stem)
    original = path.read_bytes()
    refusals = 0
    for _ in range(MUTATIONS):
        data = bytearray(original)
        for _ in range(dice.randint(1, 4)):
            place = dice.randrange(len(data))
            match dice.randrange(4):
                case 0:
                    data[place] = dice.randrange(256)
                case 1:
                    data[place : place + 4] = dice.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4)))
                case 2:
                    data[place:place] = dice.randbytes(dice.randint(1, 6))
                case _:
                    del data[place : place + dice.randint(1, 6)]
            if not data:
                break
        try:
            read(bytes(data))
        except Rejected:
            refusals += 1
    assert refusals > 0


@pytest.mark.parametrize("side", [0, 1], ids=["request", "response"])
@pytest.mark.parametrize("key", API, ids=lambda key: API[key].name)
def test_noise_is_read_or_refused_in_every_version(key: int, side: int) -> None:
    dice = random.Random(f"{key}-{side}")
    for version in range(API[key].min_version, API[key].max_version + 1):
        for _ in range(60):
            body = memoryview(dice.randbytes(dice.randint(0, 80)))
            with contextlib.suppress((Rejected, Corrupt)[side]):
                (decode_request, decode_response)[side](key, version, body)


def lying_bodies() -> list[tuple[str, int, int, bytes]]:
    """Bodies whose last count or length claims 2^31 - 1, after which a megabyte of zeros follows."""
    count, compact = struct.pack(">i", LIE), encoded(LIE + 1)
    produce = struct.pack(">hhi", -1, -1, 1000)
    fetch = struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 0, 0, -1)
    one_topic = struct.pack(">ih1s", 1, 1, b"t")
    one_topic_compact = b"\x02\x02t"
    return [
        ("produce topics", 0, 8, produce + count),
        ("produce partitions", 0, 8, produce + one_topic + count),
        ("produce records", 0, 8, produce + one_topic + struct.pack(">ii", 1, 0) + count),
        ("produce topics", 0, 9, b"\0" + produce[2:] + compact),
        ("produce partitions", 0, 9, b"\0" + produce[2:] + one_topic_compact + compact),
        ("produce records", 0, 9, b"\0" + produce[2:] + one_topic_compact + b"\x02" + bytes(4) + compact),
        ("produce tags", 0, 9, b"\0" + produce[2:] + b"\x01" + compact),
        ("fetch topics", 1, 11, fetch + count),
        ("fetch partitions", 1, 11, fetch + one_topic + count),
        ("fetch partitions", 1, 12, fetch + one_topic_compact + compact),
        ("forgotten partitions", 1, 11, fetch + bytes(4) + one_topic + count),
        ("metadata topics", 3, 1, count),
        ("metadata topics", 3, 9, compact),
        ("topic names", 20, 4, compact),
        ("replica ids", 19, 2, struct.pack(">ih1sihii", 1, 1, b"t", 1, 1, 1, 0) + count),
    ]


@pytest.mark.parametrize(
    ("key", "version", "head"),
    [pytest.param(*case[1:], id=f"{case[0]} v{case[2]}") for case in lying_bodies()],
)
def test_a_lying_count_allocates_nothing(key: int, version: int, head: bytes) -> None:
    body = memoryview(head + bytes(1 << 20))
    with pytest.raises(Rejected):
        decode_request(key, version, body)  # the reader is made here, outside the measurement
    tracemalloc.start()
    try:
        with pytest.raises(Rejected) as refused:
            decode_request(key, version, body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert peak < 100_000


def test_a_plain_request_has_a_largest_size() -> None:
    body = memoryview(bytes(PLAIN_BODY_MAX + 1))
    with pytest.raises(Rejected, match="too large"):
        decode_request(ApiKey.METADATA, 1, body)


@pytest.mark.parametrize(("key", "version"), [(0, 2), (0, 14), (1, 3), (18, 5), (4, 0), (-1, 0), (32767, -1)])
def test_an_unknown_version_is_refused_as_such(key: int, version: int) -> None:
    with pytest.raises(Rejected) as refused:
        decode_request(key, version, memoryview(b""))
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_text_that_is_not_utf8_is_refused() -> None:
    (body,) = encode_request(ApiKey.METADATA, 0, MetadataRequest(topics=[MetadataRequestTopic(name="name")]))
    with pytest.raises(Rejected):
        decode_request(ApiKey.METADATA, 0, memoryview(bytes(body).replace(b"name", b"\xff\xfe\xc3\x28")))


def test_null_where_none_may_be_is_refused() -> None:
    null_topics = struct.pack(">hhii", -1, -1, 1000, -1)
    with pytest.raises(Rejected, match="topic_data"):
        decode_request(ApiKey.PRODUCE, 8, memoryview(null_topics))
    null_name = struct.pack(">hhiih", -1, -1, 1000, 1, -1) + bytes(8)
    with pytest.raises(Rejected, match="name"):
        decode_request(ApiKey.PRODUCE, 8, memoryview(null_name))
