"""Fetch: records of many partitions within one budget, waiting for the first if there are none.

A fetch whose records are at hand is answered at once and costs no task. Otherwise it waits at the
coordinators, which wake it for a commit, a raised log start or a deletion; nothing polls.

Budgets are Kafka's: at least one batch per request, however small the limits; partitions are served in the
order of the request or session, and one that gets nothing now comes earlier next time.
"""

import asyncio

from floe.kafka.call import Call, Outcome, Pieces
from floe.kafka.door import Door
from floe.kafka.fetch_session import TOPIC_ID_VERSION, Fetch, Target
from floe.kafka.topic_lookup import epoch_error
from floe.model.error_codes import ErrorCode
from floe.model.errors import FloeError
from floe.model.ids import Offset, RangeId
from floe.object_log.reads import ReadRequest, ReadResult, failure
from floe.wire.kafka.apis import ApiKey
from floe.wire.kafka.messages import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    decode_request,
)
from floe.wire.kafka.schema.fields import Records

_READ_COMMITTED = 1
_UNKNOWN = -1
_WAIT_MS_MAX = 5 * 60_000  # however long a client asks to wait


class _Plan:
    """What one request wants, resolved against the topics of this moment."""

    __slots__ = ("errors", "reads", "targets")

    def __init__(self, door: Door, fetch: Fetch, version: int) -> None:
        self.targets = list(fetch.targets.values())
        self.reads: list[ReadRequest] = []
        self.errors: list[ErrorCode] = []  # one per target; the NONE ones have a read, in order
        by_id = version >= TOPIC_ID_VERSION
        for target in self.targets:
            route = door.topics.by_id(target.topic_id) if by_id else door.topics.by_name(target.name)
            if route is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not 0 <= target.partition < route.partition_count:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                error = epoch_error(target.leader_epoch)
                if not error:
                    range_id = route.ranges[target.partition]
                    self.reads.append(ReadRequest(range_id, Offset(target.offset), target.max_bytes))
            self.errors.append(error)

    def is_satisfied(self, results: list[ReadResult], min_bytes: int) -> bool:
        """Whether there is something to say now: enough bytes, or any error."""
        if len(self.reads) < len(self.targets) or not self.reads:
            return True
        size = 0
        for result in results:
            if result.error:
                return True
            size += result.size
        return size >= min_bytes

    def is_cut_short(self, results: list[ReadResult]) -> bool:
        """Whether some range has more than was read: its limits leave no room, so waiting brings nothing."""
        return any(result.size and result.next_offset < result.log_end for result in results)

    def positions(self, results: list[ReadResult]) -> dict[RangeId, Offset]:
        """Where to wait: past what was read."""
        return {read.range: result.next_offset for read, result in zip(self.reads, results, strict=True)}


def handle(door: Door, call: Call) -> Outcome:
    """Answer at once from what is at hand, else go on in a task."""
    request = decode_request(ApiKey.FETCH, call.version, call.body)
    assert isinstance(request, FetchRequest)
    fetch = door.fetch_sessions.begin(request, call.version, door.clock.now_ms())
    if fetch.error:
        return call.encode(FetchResponse(error_code=fetch.error))
    plan = _Plan(door, fetch, call.version)
    results = door.log.read_now(plan.reads, max_bytes=door.fetch_allowance(request.max_bytes))
    if results is not None and (request.max_wait_ms <= 0 or plan.is_satisfied(results, request.min_bytes)):
        return _answer(call, request, fetch, plan, results)
    return _read_and_wait(door, call, request, fetch, plan, results)


async def _read_and_wait(
    door: Door, call: Call, request: FetchRequest, fetch: Fetch, plan: _Plan, results: list[ReadResult] | None
) -> Pieces:
    """Read, and as long as that is not enough, wait for more until the client's time is up."""
    deadline = door.clock.monotonic() + min(request.max_wait_ms, _WAIT_MS_MAX) / 1000
    while True:
        if results is None or (
            plan.is_cut_short(results) and not plan.is_satisfied(results, request.min_bytes)
        ):
            # What was committed this moment enters the cache in the next turn of the loop.
            await asyncio.sleep(0)
            results = await _read(door, plan, request.max_bytes)
        left_ms = int((deadline - door.clock.monotonic()) * 1000)
        if left_ms <= 0 or plan.is_satisfied(results, request.min_bytes) or plan.is_cut_short(results):
            return _answer(call, request, fetch, plan, results)
        if not await door.metadata.wait(plan.positions(results), left_ms):
            return _answer(call, request, fetch, plan, results)
        plan = _Plan(door, fetch, call.version)
        results = door.log.read_now(plan.reads, max_bytes=door.fetch_allowance(request.max_bytes))


async def _read(door: Door, plan: _Plan, max_bytes: int) -> list[ReadResult]:
    try:
        return await door.log.read(plan.reads, max_bytes=door.fetch_allowance(max_bytes))
    except FloeError as error:
        return [failure(error.code)] * len(plan.reads)


def _answer(
    call: Call, request: FetchRequest, fetch: Fetch, plan: _Plan, results: list[ReadResult]
) -> Pieces:
    """The answer; an incremental one holds only what has records, an error or a change."""
    response = FetchResponse(session_id=fetch.session.id if fetch.session is not None else 0)
    reads = iter(results)
    last: FetchableTopicResponse | None = None
    for target, error in zip(plan.targets, plan.errors, strict=True):
        result = failure(error) if error else next(reads)
        part = _part(target, result, request.isolation_level)
        if not _is_news(target, part, result.size) and fetch.is_incremental:
            continue
        if last is None or last.topic != target.name or last.topic_id != target.topic_id:
            last = FetchableTopicResponse(target.name, target.topic_id)
            response.responses.append(last)
        last.partitions.append(part)
        if fetch.session is not None and result.size:
            fetch.session.served(
                (target.topic_id if fetch.session.uses_ids else target.name, target.partition)
            )
    return call.encode(response)


def _part(target: Target, result: ReadResult, isolation_level: int) -> PartitionData:
    if result.error:
        return PartitionData(
            target.partition, result.error, _UNKNOWN, _UNKNOWN, _UNKNOWN, records=Records(0, [])
        )
    return PartitionData(
        target.partition,
        ErrorCode.NONE,
        result.log_end,
        result.last_stable,
        result.log_start,
        [] if isolation_level == _READ_COMMITTED else None,
        records=Records(result.size, result.pieces),
    )


def _is_news(target: Target, part: PartitionData, size: int) -> bool:
    """Whether the client must be told of this partition again; remembers what it is told."""
    changed = (
        size > 0
        or part.error_code != 0
        or part.high_watermark != target.told_high_watermark
        or part.log_start_offset != target.told_log_start
        or part.error_code != target.told_error
    )
    target.told_high_watermark = part.high_watermark
    target.told_log_start = part.log_start_offset
    target.told_error = part.error_code
    return changed
