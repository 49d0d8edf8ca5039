"""Retries settle unknown outcomes, stop at their bounds, and never store a body that changed."""

import asyncio
from random import Random

import pytest

from floe.model.errors import Corrupt, Unavailable
from floe.observability.clock import SystemClock
from floe.observability.metrics import Metrics
from floe.storage.objects.instrumented import InstrumentedObjects
from floe.storage.objects.memory import MemoryObjects
from floe.storage.objects.port import AlreadyExists, Denied, ObjectNotFound, Objects
from floe.storage.objects.retrying import RetryingObjects, RetrySettings
from floe.testing.contracts.objects import ObjectsContract, content, keys_of
from floe.testing.faulty_objects import Fault, FaultRates, FaultyObjects

FAST = RetrySettings(
    attempts_max=8,
    attempt_seconds=5.0,
    deadline_seconds=10.0,
    pause_seconds_first=0.0001,
    pause_seconds_max=0.001,
)


class Bench:
    """A retrying store on a faulty one on memory."""

    def __init__(self, settings: RetrySettings = FAST, seed: int = 1) -> None:
        self.memory = MemoryObjects()
        self.metrics = Metrics()
        self.faulty = FaultyObjects(self.memory, random=Random(seed))
        self.objects = RetryingObjects(
            InstrumentedObjects(self.faulty, clock=SystemClock(), metrics=self.metrics),
            clock=SystemClock(),
            random=Random(seed),
            metrics=self.metrics,
            settings=settings,
        )

    def retries(self, op: str) -> float:
        return self.metrics.registry.get_sample_value("floe_object_store_retries_total", {"op": op}) or 0.0

    def requests(self, op: str, result: str) -> float:
        labels = {"op": op, "result": result}
        return self.metrics.registry.get_sample_value("floe_object_store_requests_total", labels) or 0.0


class TestRetryingObjectsOnAFaultyStore(ObjectsContract):
    """The whole contract holds while every fifth call fails before, after, or half way."""

    @pytest.fixture(params=range(3))
    async def objects(self, request: pytest.FixtureRequest) -> Objects:
        bench = Bench(seed=request.param)
        bench.faulty.rates = FaultRates(before=0.1, after=0.05, slow=0.05, slow_seconds_max=0.001)
        bench.faulty.fail("writer", *[None] * 100)
        bench.faulty.fail("write", *[None] * 100)
        return bench.objects


async def test_a_put_whose_answer_was_lost_is_settled_by_asking() -> None:
    bench = Bench()
    bench.faulty.fail("put", Fault.AFTER)
    await bench.objects.put("a", [content(100_000)])
    assert await bench.memory.get("a") == content(100_000)
    assert bench.faulty.calls == {"put": 2, "head": 1}
    assert bench.retries("put") == 1
    assert bench.requests("put", "unavailable") == 1
    assert bench.requests("put", "exists") == 1


async def test_a_small_object_of_a_rival_is_not_taken_for_ours_even_at_the_same_length() -> None:
    bench = Bench()

    async def rival(op: str, key: str) -> None:
        if bench.faulty.calls["put"] == 1:
            await bench.memory.put("cluster.json", [b'{"id": "theirs"}'])

    bench.faulty.before = rival
    bench.faulty.fail("put", Fault.BEFORE)
    with pytest.raises(AlreadyExists):
        await bench.objects.put("cluster.json", [b'{"id": "ours!!"}'])
    assert await bench.memory.get("cluster.json") == b'{"id": "theirs"}'


async def test_an_object_of_another_length_is_not_ours() -> None:
    bench = Bench()
    bench.faulty.fail("put", Fault.BEFORE, None)

    async def truncated(op: str, key: str) -> None:
        if op == "put" and bench.faulty.calls["put"] == 2:
            await bench.memory.put("a", [])

    bench.faulty.before = truncated
    with pytest.raises(AlreadyExists):
        await bench.objects.put("a", [content(200_000)])


async def test_a_first_refusal_is_believed_without_asking() -> None:
    bench = Bench()
    await bench.objects.put("a", [b"x"])
    with pytest.raises(AlreadyExists):
        await bench.objects.put("a", [b"x"])
    assert bench.faulty.calls == {"put": 2}


async def test_a_body_that_changed_between_attempts_is_never_stored() -> None:
    bench = Bench()
    body = [bytearray(b"whole body")]

    async def consume(op: str, key: str) -> None:
        body[0].clear()

    bench.faulty.before = consume
    bench.faulty.fail("put", Fault.BEFORE)
    with pytest.raises(Corrupt, match="body changed"):
        await bench.objects.put("a", body)
    assert await keys_of(bench.memory) == []


async def test_attempts_have_a_bound() -> None:
    bench = Bench()
    bench.faulty.rates = FaultRates(before=1.0)
    with pytest.raises(Unavailable):
        await bench.objects.get("a")
    assert bench.faulty.calls == {"get": 8}
    assert bench.retries("get") == 7


async def test_the_deadline_ends_the_attempts() -> None:
    settings = RetrySettings(
        attempts_max=1000, deadline_seconds=0.05, pause_seconds_first=0.02, pause_seconds_max=0.02
    )
    bench = Bench(settings)
    bench.faulty.rates = FaultRates(before=1.0)
    with pytest.raises(Unavailable):
        await bench.objects.head("a")
    assert 1 < bench.faulty.calls["head"] < 100


async def test_an_attempt_that_hangs_is_cut_off_and_repeated() -> None:
    bench = Bench(RetrySettings(attempt_seconds=0.02, pause_seconds_first=0.0001))
    await bench.memory.put("a", [b"x"])

    async def hang(op: str, key: str) -> None:
        if bench.faulty.calls["get"] == 1:
            await asyncio.sleep(60)

    bench.faulty.before = hang
    assert await bench.objects.get("a") == b"x"
    assert bench.requests("get", "cancelled") == 1


async def test_cancelling_is_not_retrying() -> None:
    bench = Bench()

    async def hang(op: str, key: str) -> None:
        await asyncio.sleep(60)

    bench.faulty.before = hang
    task = asyncio.create_task(bench.objects.get("a"))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.faulty.calls == {"get": 1}


async def test_what_is_denied_or_missing_or_corrupt_is_not_repeated() -> None:
    bench = Bench()
    await bench.memory.put("a", [b"x"])

    async def deny(op: str, key: str) -> None:
        if op == "head":
            raise Denied("no permission")

    bench.faulty.before = deny
    with pytest.raises(Denied):
        await bench.objects.head("a")
    with pytest.raises(ObjectNotFound):
        await bench.objects.get("b")
    with pytest.raises(Corrupt):
        await bench.objects.get_range("a", 0, 2)
    assert bench.faulty.calls == {"head": 1, "get": 1, "get_range": 1}


async def test_a_broken_stream_goes_on_where_it_broke() -> None:
    bench = Bench()
    body = content(10_000)
    await bench.memory.put("a", [body])
    bench.faulty.fail("stream", *[Fault.AFTER] * 12)
    views = [view async for view in bench.objects.stream("a", 10, 9_000, 500)]
    assert b"".join(views) == body[10:9_010]
    assert bench.retries("stream") == 12


async def test_a_broken_listing_goes_on_after_its_last_key() -> None:
    bench = Bench()
    keys = [f"a/{number:02}" for number in range(20)]
    for key in keys:
        await bench.memory.put(key, [b"x"])
    bench.faulty.fail("list", *[Fault.AFTER, Fault.BEFORE] * 6)
    assert await keys_of(bench.objects, "a/") == keys


async def test_single_failures_of_a_delete_are_reported_and_not_repeated() -> None:
    bench = Bench(seed=3)
    keys = [f"a/{number}" for number in range(20)]
    for key in keys:
        await bench.memory.put(key, [b"x"])
    bench.faulty.fail("delete", Fault.PARTIAL)
    failures = await bench.objects.delete(keys)
    assert 0 < len(failures) < 20
    assert await keys_of(bench.memory) == sorted(failures)
    assert bench.faulty.calls["delete"] == 1


@pytest.mark.parametrize("fault", [Fault.AFTER, Fault.BEFORE])
async def test_a_commit_of_unknown_outcome_is_settled_by_asking(fault: Fault) -> None:
    bench = Bench()
    writer = await bench.objects.writer("a")
    await writer.write(b"body")
    bench.faulty.fail("commit", fault)
    if fault is Fault.AFTER:
        await writer.commit()
        assert await bench.memory.get("a") == b"body"
    else:
        with pytest.raises(Unavailable):
            await writer.commit()
        assert await keys_of(bench.memory) == []


async def test_pauses_are_drawn_from_the_given_source_up_to_a_growing_ceiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def record(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("floe.storage.objects.retrying.asyncio.sleep", record)
    bench = Bench(RetrySettings(attempts_max=6, pause_seconds_first=0.1, pause_seconds_max=0.5))
    bench.faulty.rates = FaultRates(before=1.0)
    with pytest.raises(Unavailable):
        await bench.objects.get("a")
    source = Random(1)
    assert pauses == [source.uniform(0.0, ceiling) for ceiling in (0.1, 0.2, 0.4, 0.5, 0.5)]


async def test_bytes_and_times_are_counted() -> None:
    bench = Bench()
    await bench.objects.put("a", [b"12345"])
    await bench.objects.get_range("a", 1, 3)
    sample = bench.metrics.registry.get_sample_value
    assert sample("floe_object_store_bytes_total", {"op": "put"}) == 5
    assert sample("floe_object_store_bytes_total", {"op": "get_range"}) == 3
    assert sample("floe_object_store_request_seconds_count", {"op": "put"}) == 1
