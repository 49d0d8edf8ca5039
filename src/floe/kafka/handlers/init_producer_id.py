"""InitProducerId: a fresh producer id for an idempotent producer.

Without a transactional id every call gets a new id, whatever the producer had before. Transactional ids are
refused with the code that every client takes for final, rather than one it would try again for ever.
"""

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import InitProducerIdRequest, InitProducerIdResponse, decode_request


def handle(door: Door, call: Call) -> Outcome:
    request = decode_request(ApiKey.INIT_PRODUCER_ID, call.version, call.body)
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is None:
        return _issue(door, call)
    code = (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.transactional_id
        else ErrorCode.INVALID_REQUEST
    )
    return call.encode(InitProducerIdResponse(error_code=code, producer_epoch=-1))


async def _issue(door: Door, call: Call) -> Pieces:
    try:
        producer_id = await door.metadata.next_producer_id()
    except FloeError as error:
        # The codes an idempotent producer tries again for are the coordinator's.
        code = error.code if error.code > 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE
        return call.encode(InitProducerIdResponse(error_code=code, producer_epoch=-1))
    return call.encode(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))
