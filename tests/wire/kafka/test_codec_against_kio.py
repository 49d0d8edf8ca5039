"""Every message in every known version, both ways, against kio, generated from Kafka's own definitions.

Two sources of messages: kio's dataclasses (so that a field missing from our tables shows), and our tables (so
that a field of ours that Kafka does not have shows). Values are drawn from a seed that is the test's name.
"""

import dataclasses
import datetime as dt
import io
import random
import types
import typing
import uuid

import kio.index
import kio.serial
import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from floe.wire.kafka.apis import API
from floe.wire.kafka.coding import decode_request, decode_response, encode_request, encode_response
from floe.wire.kafka.layout import Array, Field, Kind, Nested, layout
from floe.wire.kafka.registry import MESSAGES
from floe.wire.kafka.schema.fields import Batches, Blob, Fixed, Records, Struct, Text

SAMPLES = 12
EPOCH = dt.datetime.fromtimestamp(0, tz=dt.UTC)
MS = dt.timedelta(milliseconds=1)
BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
# Where kio's type is narrower than the wire's: it refuses numbers that are no error code or no moment.
KIO_TYPES = {
    "error_code": "error_code",
    "topic_config_error_code": "error_code",
    "log_append_time_ms": "datetime_i64",
    "timestamp": "datetime_i64",
    "retention_time_ms": "timedelta_i64",
}
INT_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

CASES = [
    pytest.param(key, version, side, id=f"{spec.name}{('Request', 'Response')[side]}-v{version}")
    for key, spec in API.items()
    for version in range(spec.min_version, spec.max_version + 1)
    for side in (0, 1)
]


def kio_class(key: int, version: int, side: int) -> type:
    load = (kio.index.load_request_schema, kio.index.load_response_schema)[side]
    return load(key, version)


def encode(key: int, version: int, side: int, message: Struct) -> bytes:
    return b"".join((encode_request, encode_response)[side](key, version, message))


def decode(key: int, version: int, side: int, body: bytes) -> Struct:
    return (decode_request, decode_response)[side](key, version, memoryview(body))


def kio_encode(entity: object) -> bytes:
    buffer = io.BytesIO()
    kio.serial.entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def kio_decode(entity_type: type, body: bytes) -> object:
    entity, size = kio.serial.entity_reader(entity_type)(body, 0)
    assert size == len(body)
    return entity


class Dice:
    """Values with a liking for the edges: nulls, empties, extremes, lengths around 127 and 128."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def integer(self, bits: int) -> int:
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        return self.random.choice((low, -1, 0, 1, high, self.random.randint(low, high)))

    def text(self) -> str:
        length = self.random.choice((0, 1, 9, 9, 126, 127, 128, 300))
        return "".join(self.random.choice("az-._09é日😀") for _ in range(length))

    def blob(self) -> bytes:
        return self.random.randbytes(self.random.choice((0, 1, 126, 127, 128, 16383, 16384)))

    def count(self) -> int:
        return self.random.choice((0, 1, 1, 2, 5))

    def chance(self) -> bool:
        return self.random.random() < 0.25

    def error(self) -> int:
        return self.random.choice(list(KioErrorCode)).value

    def moment_ms(self) -> int:
        return self.random.choice((0, 1, 1_700_000_000_123, 253_402_300_799_000))


# --- kio's side ---------------------------------------------------------------------------------------------


def kio_entity(entity_type: type, dice: Dice) -> object:
    hints = typing.get_type_hints(entity_type)
    values = {}
    for field in dataclasses.fields(entity_type):
        if "tag" in field.metadata and dice.chance():
            continue
        values[field.name] = kio_value(hints[field.name], field.metadata.get("kafka_type"), dice)
    return entity_type(**values)


def kio_value(hint: object, kafka_type: str | None, dice: Dice) -> object:
    if isinstance(hint, types.UnionType):
        if dice.chance():
            return None
        (hint,) = (option for option in typing.get_args(hint) if option is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        element = typing.get_args(hint)[0]
        return tuple(kio_value(element, kafka_type, dice) for _ in range(dice.count()))
    if dataclasses.is_dataclass(hint):
        return kio_entity(hint, dice)
    return kio_primitive(kafka_type, dice)


def kio_primitive(kafka_type: str | None, dice: Dice) -> object:
    match kafka_type:
        case "bool":
            return dice.chance()
        case "string":
            return dice.text()
        case "bytes" | "records":
            return dice.blob()
        case "uuid":
            return uuid.UUID(int=dice.random.getrandbits(128) | 1)
        case "error_code":
            return KioErrorCode(dice.error())
        case "timedelta_i32":
            return dice.integer(32) * MS
        case "timedelta_i64":
            return dice.integer(40) * MS
        case "datetime_i64":
            return EPOCH + dice.moment_ms() * MS
        case _:
            return dice.integer(INT_BITS[kafka_type])


def kio_plain(value: object, kafka_type: str | None = None) -> object:
    """kio's value in the form of `plain`."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {f.name: kio_plain(getattr(value, f.name), f.metadata.get("kafka_type")) for f in fields}
    if isinstance(value, tuple):
        return [kio_plain(element, kafka_type) for element in value]
    if kafka_type == "uuid":
        return value.bytes if value is not None else bytes(16)
    if kafka_type == "datetime_i64":
        return (value - EPOCH) // MS if value is not None else -1
    if isinstance(value, dt.timedelta):
        return value // MS
    return value.value if isinstance(value, KioErrorCode) else value


# --- our side -----------------------------------------------------------------------------------------------


def our_message(struct: type[Struct], version: int, dice: Dice) -> Struct:
    fields = [field for field in layout(struct, version).fields if field.present]
    return struct(**{field.name: our_value(field, version, dice) for field in fields})


def our_value(field: Field, version: int, dice: Dice) -> object:
    absent = field.tag is not None and isinstance(field.kind, Nested)
    if (field.nullable or absent) and dice.chance():
        return None
    if field.tag is not None and dice.chance():
        return field.default
    return our_kind(field.kind, version, dice, KIO_TYPES.get(field.name))


def our_kind(kind: Kind, version: int, dice: Dice, kafka_type: str | None) -> object:
    match kind:
        case Fixed("?"):
            return dice.chance()
        case Fixed("16s"):
            return dice.random.randbytes(16)
        case Fixed(code):
            return kio_range(kafka_type, BITS[code], dice)
        case Text():
            return dice.text()
        case Blob():
            return dice.blob()
        case Batches():
            pieces = [dice.blob() for _ in range(dice.count())]
            return Records(sum(map(len, pieces)), pieces)
        case Array(element):
            return [our_kind(element, version, dice, kafka_type) for _ in range(dice.count())]
        case Nested(struct):
            return our_message(struct, version, dice)


def kio_range(kafka_type: str | None, bits: int, dice: Dice) -> int:
    if kafka_type == "error_code":
        return dice.error()
    if kafka_type == "datetime_i64":
        return dice.moment_ms()
    return dice.integer(40 if kafka_type == "timedelta_i64" else bits)


def plain(value: object, version: int) -> object:
    """A message as dicts, lists and scalars; only what the version carries, by kio's names."""
    if isinstance(value, Records):
        return b"".join(value.pieces)
    if isinstance(value, Struct):
        fields = [field for field in layout(type(value), version).fields if field.present]
        return {
            kio_name(field.name): plain_field(field, getattr(value, field.name), version) for field in fields
        }
    if isinstance(value, list):
        return [plain(element, version) for element in value]
    return bytes(value) if isinstance(value, memoryview) else value


def plain_field(field: Field, value: object, version: int) -> object:
    if value is None and field.tag is not None and isinstance(field.kind, Nested):
        return plain(field.kind.struct(), version)
    return plain(value, version)


def kio_name(name: str) -> str:
    """kio has durations and moments as values of their own and drops the unit."""
    return name.removesuffix("_ms")


@pytest.mark.parametrize(("key", "version", "side"), CASES)
def test_we_read_what_kio_writes_and_write_it_back_the_same(
    key: int, version: int, side: int, request: pytest.FixtureRequest
) -> None:
    dice = Dice(request.node.name)
    for _ in range(SAMPLES):
        entity = kio_entity(kio_class(key, version, side), dice)
        body = kio_encode(entity)
        message = decode(key, version, side, body)
        assert type(message) is MESSAGES[key][side]
        assert plain(message, version) == kio_plain(entity)
        assert encode(key, version, side, message) == body


@pytest.mark.parametrize(("key", "version", "side"), CASES)
def test_kio_reads_what_we_write(key: int, version: int, side: int, request: pytest.FixtureRequest) -> None:
    dice = Dice(request.node.name)
    for _ in range(SAMPLES):
        message = our_message(MESSAGES[key][side], version, dice)
        body = encode(key, version, side, message)
        entity = kio_decode(kio_class(key, version, side), body)
        assert kio_plain(entity) == plain(message, version)
        assert plain(decode(key, version, side, body), version) == plain(message, version)
