"""One operation: steps applied to several vnodes in turn, from the step its row says to its end.

The driver does what the machine asks for and tells it what came of it. A step is applied to each of its
targets, some at a time; when all are done the next step is recorded in the operation's row, and after the
last step the operation is concluded, which removes the row. Applying is idempotent, so whatever ends with an
unknown outcome is asked for again, after a pause that grows with the number of attempts.

Invariants:
- A step begins only when the step before it is done at all of its targets and recorded.
- At any moment either some targets are being applied to, or one record or conclusion is under way, or the
  operation is over.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

PARALLEL_MAX = 16
_PAUSE_MS_FIRST = 20
_PAUSE_MS_MAX = 5_000


class Apply(NamedTuple):
    """Apply the current step to a target; `attempt` counts the failures in a row before it."""

    step: int
    target: int
    attempt: int = 0


class Record(NamedTuple):
    """Store that this step is next."""

    step: int
    attempt: int = 0


class Conclude(NamedTuple):
    """Do what the end of the operation asks for and remove its row."""

    attempt: int = 0


Effect = Apply | Record | Conclude


class OperationMachine:
    """Decides the order; `targets(step)` says where a step is applied, which may be nowhere."""

    def __init__(
        self,
        *,
        step: int,
        step_count: int,
        targets: Callable[[int], Sequence[int]],
        parallel_max: int = PARALLEL_MAX,
    ) -> None:
        assert 0 <= step < step_count
        self.step = step
        self.is_over = False
        self._step_count = step_count
        self._targets = targets
        self._parallel_max = parallel_max
        self._waiting: deque[int] = deque()
        self._applying: set[int] = set()
        self._is_writing = False

    def start(self) -> list[Effect]:
        return self._begin_step()

    def applied(self, effect: Apply, *, is_done: bool) -> list[Effect]:
        """The target has taken the step, wholly or only a part of it so far."""
        self._check_applying(effect)
        if not is_done:
            return [Apply(self.step, effect.target)]
        self._applying.remove(effect.target)
        return self._fill() or self._next_when_done()

    def recorded(self, effect: Record) -> list[Effect]:
        assert self._is_writing
        assert effect.step == self.step + 1
        self._is_writing = False
        self.step = effect.step
        return self._begin_step()

    def concluded(self) -> None:
        assert self._is_writing
        self._is_writing = False
        self.is_over = True

    def failed(self, effect: Effect) -> list[Effect]:
        """Nobody knows whether it was done."""
        if isinstance(effect, Apply):
            self._check_applying(effect)
        else:
            assert self._is_writing
        return [effect._replace(attempt=effect.attempt + 1)]

    def _begin_step(self) -> list[Effect]:
        self._waiting.extend(self._targets(self.step))
        return self._fill() or self._next_when_done()

    def _fill(self) -> list[Effect]:
        effects: list[Effect] = []
        while self._waiting and len(self._applying) < self._parallel_max:
            target = self._waiting.popleft()
            self._applying.add(target)
            effects.append(Apply(self.step, target))
        return effects

    def _next_when_done(self) -> list[Effect]:
        if self._applying or self._waiting:
            return []
        self._is_writing = True
        if self.step + 1 < self._step_count:
            return [Record(self.step + 1)]
        return [Conclude()]

    def _check_applying(self, effect: Apply) -> None:
        assert effect.step == self.step
        assert effect.target in self._applying


def pause_ms(attempt: int) -> int:
    """The longest pause before this attempt; the driver draws one up to it."""
    return min(_PAUSE_MS_MAX, _PAUSE_MS_FIRST << min(attempt, 20) - 1) if attempt else 0
