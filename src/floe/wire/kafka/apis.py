"""Which APIs exist, which of their versions are known to the codec, and which are served.

Known is what the tables under `schema` describe. Served is what a client is told about; the front door adds
an API to SERVED when it has a handler for it.
"""

from dataclasses import dataclass
from enum import IntEnum


class ApiKey(IntEnum):
    """Kafka's numbers for the APIs known here."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLUSTER = 60
    DESCRIBE_TOPIC_PARTITIONS = 75


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """One API. Versions from `first_flexible` on have compact lengths, tagged fields and longer headers."""

    key: int
    name: str
    min_version: int
    max_version: int
    first_flexible: int | None
    advertised_min: int

    def knows(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def is_flexible(self, version: int) -> bool:
        return self.first_flexible is not None and version >= self.first_flexible


def _spec(
    key: ApiKey, versions: tuple[int, int], flexible: int | None, advertised: int | None = None
) -> ApiSpec:
    name = "".join(word.capitalize() for word in key.name.split("_"))
    first, last = versions
    return ApiSpec(int(key), name, first, last, flexible, first if advertised is None else advertised)


# Produce is advertised from 0 although 0 to 2 are refused: older librdkafka turns compression off otherwise.
API: dict[int, ApiSpec] = {
    spec.key: spec
    for spec in (
        _spec(ApiKey.PRODUCE, (3, 13), 9, advertised=0),
        _spec(ApiKey.FETCH, (4, 17), 12),
        _spec(ApiKey.LIST_OFFSETS, (1, 10), 6),
        _spec(ApiKey.METADATA, (0, 13), 9),
        _spec(ApiKey.OFFSET_COMMIT, (2, 9), 8),
        _spec(ApiKey.OFFSET_FETCH, (1, 9), 6),
        _spec(ApiKey.FIND_COORDINATOR, (0, 6), 3),
        _spec(ApiKey.JOIN_GROUP, (0, 9), 6),
        _spec(ApiKey.HEARTBEAT, (0, 4), 4),
        _spec(ApiKey.LEAVE_GROUP, (0, 5), 4),
        _spec(ApiKey.SYNC_GROUP, (0, 5), 4),
        _spec(ApiKey.DESCRIBE_GROUPS, (0, 5), 5),
        _spec(ApiKey.LIST_GROUPS, (0, 5), 3),
        _spec(ApiKey.API_VERSIONS, (0, 4), 3),
        _spec(ApiKey.CREATE_TOPICS, (2, 7), 5),
        _spec(ApiKey.DELETE_TOPICS, (1, 6), 4),
        _spec(ApiKey.DELETE_RECORDS, (0, 2), 2),
        _spec(ApiKey.INIT_PRODUCER_ID, (0, 5), 2),
        _spec(ApiKey.OFFSET_FOR_LEADER_EPOCH, (2, 4), 4),
        _spec(ApiKey.DESCRIBE_CONFIGS, (1, 4), 4),
        _spec(ApiKey.ALTER_CONFIGS, (0, 2), 2),
        _spec(ApiKey.CREATE_PARTITIONS, (0, 3), 2),
        _spec(ApiKey.DELETE_GROUPS, (0, 2), 2),
        _spec(ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1), 1),
        _spec(ApiKey.OFFSET_DELETE, (0, 0), None),
        _spec(ApiKey.DESCRIBE_CLUSTER, (0, 1), 0),
        _spec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0, 0), 0),
    )
}

SERVED: dict[int, ApiSpec] = {
    int(key): API[key]
    for key in (
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.API_VERSIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DESCRIBE_CLUSTER,
    )
}
