"""FindCoordinator: this broker coordinates every group and transaction."""

from floe.kafka.call import Call, Pieces
from floe.kafka.door import Door
from floe.model.error_codes import ErrorCode
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    decode_request,
)

_GROUP = 0
_TRANSACTION = 1


def handle(door: Door, call: Call) -> Pieces:
    request = decode_request(ApiKey.FIND_COORDINATOR, call.version, call.body)
    assert isinstance(request, FindCoordinatorRequest)
    facts = door.facts
    if request.key_type not in (_GROUP, _TRANSACTION):
        message = f"there is no coordinator of type {request.key_type}"
        refused = [
            Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST, message)
            for key in request.coordinator_keys
        ]
        return call.encode(
            FindCoordinatorResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=message,
                node_id=-1,
                port=-1,
                coordinators=refused,
            )
        )
    return call.encode(
        FindCoordinatorResponse(
            node_id=facts.broker_id,
            host=facts.host,
            port=facts.port,
            coordinators=[
                Coordinator(key, facts.broker_id, facts.host, facts.port) for key in request.coordinator_keys
            ],
        )
    )
