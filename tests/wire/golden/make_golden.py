"""Writes the golden object files beside it; run it only when the format gets a new version.

The same code gives the same bytes everywhere: the batches hold no compressed data, whose bytes would depend
on the version of a library.
"""

from pathlib import Path
from typing import Any

from floe.model.coordinates import RowFlags
from floe.model.ids import ObjectId, Offset, ProducerId, RangeId
from floe.wire.batch import Batch, stored_batches
from floe.wire.object_file import START_MAGIC, ObjectBuilder, Span, build
from floe.wire.records import Record, encode

FOLDER = Path(__file__).parent
TIME = 1_700_000_000_000


def batch(count: int, *, text: str = "", shift: int = 0, **options: Any) -> Batch:
    records = [
        Record(i, TIME + shift + i * 3 % 5, b"key %d" % i, f"value {text}{i}".encode(), (("n", b"%d" % i),))
        for i in range(count)
    ]
    (made,) = stored_batches(memoryview(encode(records, **options)))
    return made


def level_0() -> bytes:
    """Three ranges; one batch is idempotent, one transactional."""
    idempotent = {"producer_id": 1 << 40, "producer_epoch": 0, "base_sequence": 7}
    transactional = {
        "transactional": True,
        "producer_id": (1 << 40) + 1,
        "producer_epoch": 2,
        "base_sequence": 0,
    }
    spans = [
        Span(RangeId(3), [batch(2), batch(1, text="next ", shift=100)]),
        Span(RangeId(4), [batch(3, **idempotent)]),
        Span(RangeId(900_001), [batch(1, leader_epoch=0, **transactional)]),
    ]
    return b"".join(build(spans, object_id=ObjectId(0x00561234_00000007)).pieces)


def level_1() -> bytes:
    """Stamped batches with a gap between their offsets, a marker between two spans of one range."""
    builder = ObjectBuilder(ObjectId(0x00561235_00000001))
    pieces = [START_MAGIC]
    first = [(Offset(100), batch(2)), (Offset(105), batch(4, shift=-50))]
    pieces += builder.add_stamped(RangeId(3), first, level=1)
    builder.add_marker(
        RangeId(3),
        Offset(109),
        timestamp=TIME + 60,
        producer_id=ProducerId(1 << 40),
        producer_epoch=4,
        flags=RowFlags.MARKER_COMMIT,
    )
    pieces += builder.add_stamped(RangeId(3), [(Offset(110), batch(1, shift=200))], level=1)
    pieces.append(builder.footer())
    return b"".join(pieces)


GOLDEN = {"object-v1-level-0.floe": level_0, "object-v1-level-1.floe": level_1}

if __name__ == "__main__":
    for name, make in GOLDEN.items():
        (FOLDER / name).write_bytes(make())
