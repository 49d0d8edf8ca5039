"""InitProducerId."""

from typing import Annotated

from floe.wire.kafka.schema.fields import Int16, Int32, Int64, String, Struct, since


class InitProducerIdRequest(Struct):
    transactional_id: String | None = None
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1


class InitProducerIdResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
