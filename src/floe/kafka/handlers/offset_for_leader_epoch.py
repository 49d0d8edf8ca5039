"""OffsetForLeaderEpoch: where an epoch ends. There is one epoch, so it ends at the log end."""

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.kafka.topic_lookup import LEADER_EPOCH, epoch_error
from floe.metadata.api import FindRequest
from floe.model.coordinates import RangeView
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError
from floe.model.ids import Offset, RangeId
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
    decode_request,
)


def handle(door: Door, call: Call) -> Outcome:
    """An epoch that never was, or one of the future, is answered with -1, as Kafka does."""
    request = decode_request(ApiKey.OFFSET_FOR_LEADER_EPOCH, call.version, call.body)
    assert isinstance(request, OffsetForLeaderEpochRequest)
    response = OffsetForLeaderEpochResponse()
    asked: list[tuple[RangeId, EpochEndOffset]] = []
    for topic in request.topics:
        route = door.topics.by_name(topic.topic)
        answers: list[EpochEndOffset] = []
        for part in topic.partitions:
            answer = EpochEndOffset(partition=part.partition)
            answers.append(answer)
            if route is None or not 0 <= part.partition < route.partition_count:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            answer.error_code = epoch_error(part.current_leader_epoch)
            if not answer.error_code and part.leader_epoch == LEADER_EPOCH:
                asked.append((route.ranges[part.partition], answer))
        response.topics.append(OffsetForLeaderTopicResult(topic.topic, answers))
    return _ask(door, call, response, asked) if asked else call.encode(response)


async def _ask(
    door: Door,
    call: Call,
    response: OffsetForLeaderEpochResponse,
    asked: list[tuple[RangeId, EpochEndOffset]],
) -> Pieces:
    try:
        views = await door.metadata.find([FindRequest(range_id, Offset(0), 0) for range_id, _ in asked])
    except FloeError as error:
        views = [RangeView(error.code)] * len(asked)
    for (_, answer), view in zip(asked, views, strict=True):
        answer.error_code = view.error
        if not view.error:
            answer.leader_epoch = LEADER_EPOCH
            answer.end_offset = view.log_end
    return call.encode(response)
