"""Topic rows as stored at a topic's home.

Fields are stored by position: new ones go to the end, with a default.
"""

import msgspec

from floe.metadata import keys
from floe.metadata.codecs.operations import Runs, ranges_of
from floe.metadata.ring import folded_name
from floe.model.errors import Corrupt
from floe.model.ids import TopicId
from floe.model.topic import Placement, StorageClass, Topic


class TopicRow(msgspec.Struct, frozen=True, array_like=True):
    """A topic at its home.

    `is_shown` is false until the operation that creates it is done. `operation` is the one under way, or 0:
    a topic has at most one, so that none can undo another's work.
    """

    name: str
    topic_id: bytes
    runs: Runs
    config: dict[str, str]
    storage_class: StorageClass
    placement: Placement
    is_aligned: bool
    version: int
    is_shown: bool
    operation: int

    def topic(self) -> Topic:
        """The topic as clients see it."""
        return Topic(
            name=self.name,
            id=TopicId(self.topic_id),
            ranges=ranges_of(self.runs),
            storage_class=self.storage_class,
            placement=self.placement,
            is_aligned=self.is_aligned,
            config=self.config,
            version=self.version,
        )


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TopicRow)


def topic_key(name: str) -> bytes:
    """One key for all names that Kafka does not tell apart, so that only one of them can exist."""
    return keys.TOPIC + folded_name(name).encode()


def encode_topic(row: TopicRow) -> bytes:
    return _encoder.encode(row)


def decode_topic(value: bytes) -> TopicRow:
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"a topic's row is damaged: {error}") from error
