"""Control batches: the one record that ends a transaction in a range, as Kafka's consumers read it."""

from struct import Struct

import msgspec

from floe.model.errors import Corrupt
from floe.model.ids import Offset, ProducerId
from floe.wire.batch import CONTROL_BIT, Buffer, read_header
from floe.wire.records import Record, decode, encode

_KEY = Struct(">hh")  # version, type
_VALUE = Struct(">hi")  # version, epoch of the transaction's coordinator
_ABORT = 0
_COMMIT = 1


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a producer's transaction: everything it had open in this range up to `offset`."""

    offset: Offset
    timestamp: int
    producer_id: ProducerId
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int = 0


def encode_marker(marker: Marker, *, leader_epoch: int = 0) -> bytes:
    """The control batch of a marker, with its real offset."""
    record = Record(
        offset=marker.offset,
        timestamp=marker.timestamp,
        key=_KEY.pack(0, _COMMIT if marker.is_commit else _ABORT),
        value=_VALUE.pack(0, marker.coordinator_epoch),
    )
    return encode(
        [record],
        base_offset=marker.offset,
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )


def decode_marker(batch: Buffer, *, base_offset: Offset | None = None) -> Marker:
    """What a control batch says; raise `Corrupt` for anything else, other control records included."""
    header = read_header(batch)
    if not header.attributes & CONTROL_BIT:
        raise Corrupt("not a control batch")
    records = decode(batch, base_offset=base_offset, size_max=1 << 16)
    if len(records) != 1:
        raise Corrupt(f"control batch of {len(records)} records")
    key, value = records[0].key or b"", records[0].value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        raise Corrupt("control record is too short")
    _, kind = _KEY.unpack_from(key)
    if kind not in (_ABORT, _COMMIT):
        raise Corrupt(f"control record of type {kind}")
    return Marker(
        offset=Offset(records[0].offset),
        timestamp=records[0].timestamp,
        producer_id=ProducerId(header.producer_id),
        producer_epoch=header.producer_epoch,
        is_commit=kind == _COMMIT,
        coordinator_epoch=_VALUE.unpack_from(value)[1],
    )
