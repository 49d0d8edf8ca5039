"""Why a broker cannot start, in words for whoever started it."""


class CannotStart(Exception):
    """`str()` says what failed and why; `hint` says what to try."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint
