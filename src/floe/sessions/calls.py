"""The unary calls of the native port, answered from the metadata plane."""

from dataclasses import dataclass

from floe.metadata.api import FindRequest, Metadata
from floe.model.coordinates import RangeView
from floe.model.error_codes import ErrorCode
from floe.model.errors import Rejected
from floe.model.ids import ObjectId, Offset, RangeId
from floe.model.work import WorkResult
from floe.wire.native.calls import (
    BrokerAddress,
    ClaimWork,
    ClaimWorkReply,
    ClusterInfo,
    ClusterInfoReply,
    DescribeTopics,
    DescribeTopicsReply,
    Find,
    FindReply,
    FindTimestamp,
    FindTimestampReply,
    FinishWork,
    FinishWorkReply,
    ListOffsets,
    ListOffsetsReply,
    RangeEnds,
)
from floe.wire.native.values import TopicValue, ViewValue, WireValue, WorkItemValue


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the native port says of its broker."""

    broker_id: int
    cluster_id: str
    host: str
    kafka_port: int
    native_port: int
    zone: str
    objects_url: str  # without credentials


class Calls:
    """Answers one request at a time; requests are independent of each other."""

    def __init__(self, metadata: Metadata, facts: NodeFacts) -> None:
        self._metadata = metadata
        self._facts = facts

    async def answer(self, request: WireValue) -> WireValue:
        """The reply to a decoded request; raises `FloeError` for the caller to be told."""
        match request:
            case ClusterInfo():
                return self._cluster_info()
            case DescribeTopics():
                return self._describe_topics(request)
            case Find():
                return await self._find(request)
            case FindTimestamp():
                view = await self._metadata.find_timestamp(RangeId(request.range), request.timestamp)
                return FindTimestampReply(ViewValue.of(view))
            case ListOffsets():
                return await self._list_offsets(request)
            case ClaimWork():
                items = await self._metadata.claim_work(request.worker, request.kinds, request.limit)
                return ClaimWorkReply(tuple(WorkItemValue.of(item) for item in items))
            case FinishWork():
                done = tuple(ObjectId(number) for number in request.done)
                await self._metadata.finish_work(request.item.value(), WorkResult(done))
                return FinishWorkReply()
            case _:
                name = type(request).__name__
                raise Rejected(ErrorCode.UNSUPPORTED_VERSION, f"{name} is not answered here")

    def _cluster_info(self) -> ClusterInfoReply:
        facts = self._facts
        here = BrokerAddress(facts.broker_id, facts.host, facts.kafka_port, facts.native_port, facts.zone)
        return ClusterInfoReply(facts.cluster_id, facts.broker_id, (here,), facts.objects_url)

    def _describe_topics(self, request: DescribeTopics) -> DescribeTopicsReply:
        directory = self._metadata.topics
        if request.names is None:
            topics = list(directory.all())
        else:
            topics = [topic for name in request.names if (topic := directory.by_name(name)) is not None]
        return DescribeTopicsReply(tuple(TopicValue.of(topic) for topic in topics))

    async def _find(self, request: Find) -> FindReply:
        if request.wait_ms:
            positions = {RangeId(item.range): Offset(item.offset) for item in request.requests}
            await self._metadata.wait(positions, request.wait_ms)
        asked = [FindRequest(RangeId(i.range), Offset(i.offset), i.max_bytes) for i in request.requests]
        views = await self._metadata.find(asked)
        return FindReply(tuple(ViewValue.of(view) for view in views))

    async def _list_offsets(self, request: ListOffsets) -> ListOffsetsReply:
        views = await self._metadata.find([FindRequest(RangeId(r), Offset(0), 0) for r in request.ranges])
        return ListOffsetsReply(tuple(_ends(view) for view in views))


def _ends(view: RangeView) -> RangeEnds:
    if view.error:
        return RangeEnds(view.error)
    return RangeEnds(view.error, view.log_start, view.log_end, view.last_stable)
