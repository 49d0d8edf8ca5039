"""Work in the background of the vnodes this broker leads: bounded passes, one job after the other.

A job looks at each vnode once in its interval and goes on there while there is more to do, up to a bound,
so that no vnode keeps the others waiting; what is left is done in the next round. An idle round costs one
look into an index per vnode.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from floe.model.errors import FloeError
from floe.observability.clock import Clock
from floe.observability.logs import Sparing, get_log
from floe.observability.metrics import Metrics

T = TypeVar("T")
PASSES_PER_ROUND = 32
PASS_SECONDS_MAX = 60.0
_log = get_log("metadata")


class Job(NamedTuple, Generic[T]):
    """A kind of work: one bounded pass over one vnode, which says whether there is more to do."""

    name: str
    interval_seconds: float
    run_pass: Callable[[T], Awaitable[bool]]
    when_round_ends: Callable[[], None] | None = None


class Maintenance(Generic[T]):
    """Runs each job as a task over the vnodes that are led."""

    def __init__(
        self,
        jobs: Sequence[Job[T]],
        vnodes: Sequence[T],
        *,
        is_led: Callable[[T], bool],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._jobs = jobs
        self._vnodes = vnodes
        self._is_led = is_led
        self._sparing = Sparing()
        self._clock = clock
        self._metrics = metrics
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._repeat(job), name=f"floe {job.name}") for job in self._jobs]

    async def close(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def run_round(self, job: Job[T]) -> bool:
        """Run one job on every vnode once; whether one of them has more to do than a round allows."""
        has_more, is_whole = False, True
        for vnode in [vnode for vnode in self._vnodes if self._is_led(vnode)]:
            try:
                async with asyncio.timeout(PASS_SECONDS_MAX):
                    has_more |= await self._run_passes(job, vnode)
            except (FloeError, TimeoutError) as error:
                is_whole = False
                if self._sparing.admits(self._clock.monotonic()):
                    _log.warning("background job put off", job=job.name, reason=str(error))
        if job.when_round_ends is not None:
            job.when_round_ends()
        if is_whole:
            self._metrics.last_success.labels(job.name).set(self._clock.now_ms() / 1000)
        return has_more

    async def _run_passes(self, job: Job[T], vnode: T) -> bool:
        for _ in range(PASSES_PER_ROUND):
            if not await job.run_pass(vnode):
                return False
        return True

    async def _repeat(self, job: Job[T]) -> None:
        while True:
            has_more = False
            try:
                has_more = await self.run_round(job)
            except Exception:  # noqa: BLE001 - a job outlives what goes wrong in one round
                _log.exception("background job failed", job=job.name)
            await asyncio.sleep(0 if has_more else job.interval_seconds)
