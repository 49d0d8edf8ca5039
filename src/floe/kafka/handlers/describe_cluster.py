"""DescribeCluster: the brokers of the cluster."""

from floe.kafka.call import Call, Pieces
from floe.kafka.door import Door
from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    decode_request,
)

_BROKERS = 1  # the endpoint type; controllers have no endpoints of their own here


def handle(door: Door, call: Call) -> Pieces:
    request = decode_request(ApiKey.DESCRIBE_CLUSTER, call.version, call.body)
    assert isinstance(request, DescribeClusterRequest)
    facts = door.facts
    if request.endpoint_type != _BROKERS:
        return call.encode(
            DescribeClusterResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="only the brokers' endpoints can be described",
                endpoint_type=request.endpoint_type,
            )
        )
    return call.encode(
        DescribeClusterResponse(
            cluster_id=facts.cluster_id,
            controller_id=facts.broker_id,
            brokers=[DescribeClusterBroker(facts.broker_id, facts.host, facts.port, facts.rack)],
        )
    )
