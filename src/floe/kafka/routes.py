"""Which handler answers which API, and how its requests stand to others of their connection."""

from collections.abc import Callable

from floe.kafka.call import Call, Order, Outcome, Route
from floe.kafka.door import Door
from floe.kafka.handlers.api_versions import handle as api_versions
from floe.kafka.handlers.create_partitions import handle as create_partitions
from floe.kafka.handlers.create_topics import handle as create_topics
from floe.kafka.handlers.delete_topics import handle as delete_topics
from floe.kafka.handlers.describe_cluster import handle as describe_cluster
from floe.kafka.handlers.fetch import handle as fetch
from floe.kafka.handlers.find_coordinator import handle as find_coordinator
from floe.kafka.handlers.init_producer_id import handle as init_producer_id
from floe.kafka.handlers.list_offsets import handle as list_offsets
from floe.kafka.handlers.metadata import handle as metadata
from floe.kafka.handlers.offset_for_leader_epoch import handle as offset_for_leader_epoch
from floe.kafka.handlers.produce import handle as produce
from floe.observability.kafka_counters import KafkaCounters
from floe.wire.kafka.apis import SERVED, ApiKey

HANDLERS: dict[ApiKey, tuple[Order, Callable[[Door, Call], Outcome]]] = {
    ApiKey.PRODUCE: (Order.AT_ONCE, produce),
    ApiKey.FETCH: (Order.IN_TURN, fetch),
    ApiKey.LIST_OFFSETS: (Order.ALONE, list_offsets),
    ApiKey.METADATA: (Order.ALONE, metadata),
    ApiKey.FIND_COORDINATOR: (Order.ALONE, find_coordinator),
    ApiKey.API_VERSIONS: (Order.ALONE, api_versions),
    ApiKey.CREATE_TOPICS: (Order.ALONE, create_topics),
    ApiKey.DELETE_TOPICS: (Order.ALONE, delete_topics),
    ApiKey.INIT_PRODUCER_ID: (Order.ALONE, init_producer_id),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (Order.ALONE, offset_for_leader_epoch),
    ApiKey.CREATE_PARTITIONS: (Order.ALONE, create_partitions),
    ApiKey.DESCRIBE_CLUSTER: (Order.ALONE, describe_cluster),
}


def routes(counters: KafkaCounters) -> dict[int, Route]:
    """The table that connections dispatch by; has an entry for every API that ApiVersions tells of."""
    table: dict[int, Route] = {}
    for key, spec in SERVED.items():
        order, handler = HANDLERS[ApiKey(key)]
        table[key] = Route(spec, order, handler, counters.latency_of(spec.name))
    return table
