"""Which handler answers which API, and how its requests stand to others of their connection."""

from collections.abc import Callable

from floe.kafka.call import Call, Order, Outcome, Route
from floe.kafka.door import Door
from floe.kafka.handlers import (
    api_versions,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from floe.observability.kafka_counters import KafkaCounters
from floe.wire.kafka.apis import SERVED, ApiKey

HANDLERS: dict[ApiKey, tuple[Order, Callable[[Door, Call], Outcome]]] = {
    ApiKey.PRODUCE: (Order.AT_ONCE, produce.handle),
    ApiKey.FETCH: (Order.IN_TURN, fetch.handle),
    ApiKey.LIST_OFFSETS: (Order.ALONE, list_offsets.handle),
    ApiKey.METADATA: (Order.ALONE, metadata.handle),
    ApiKey.FIND_COORDINATOR: (Order.ALONE, find_coordinator.handle),
    ApiKey.API_VERSIONS: (Order.ALONE, api_versions.handle),
    ApiKey.CREATE_TOPICS: (Order.ALONE, create_topics.handle),
    ApiKey.DELETE_TOPICS: (Order.ALONE, delete_topics.handle),
    ApiKey.INIT_PRODUCER_ID: (Order.ALONE, init_producer_id.handle),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (Order.ALONE, offset_for_leader_epoch.handle),
    ApiKey.CREATE_PARTITIONS: (Order.ALONE, create_partitions.handle),
    ApiKey.DESCRIBE_CLUSTER: (Order.ALONE, describe_cluster.handle),
}


def routes(counters: KafkaCounters) -> dict[int, Route]:
    """The table that connections dispatch by; has an entry for every API that ApiVersions tells of."""
    table: dict[int, Route] = {}
    for key, spec in SERVED.items():
        order, handler = HANDLERS[ApiKey(key)]
        table[key] = Route(spec, order, handler, counters.latency_of(spec.name))
    return table
