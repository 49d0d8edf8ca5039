"""What is wrong with settings, in words for whoever typed them."""


class SettingsError(Exception):
    """`str()` says what is wrong and where it was set; `hint` says what to try."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint
