"""Text of a function under construction, and the values its names stand for."""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as Format


class Source:
    """Lines of one function, indented by `block`; `compiled` turns them into the function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: dict[str, object] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._fresh = 0

    def emit(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.emit(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        """A variable that nothing else in the function uses."""
        self._fresh += 1
        return f"{prefix}{self._fresh}"

    def use(self, name: str, value: object) -> str:
        """Make a value known to the function under a name."""
        assert self.names.setdefault(name, value) is value, f"two values for name={name}"
        return name

    def method(self, codes: str, method: str) -> str:
        """A bound method of the struct format with these codes."""
        name = f"{method}_{codes.replace('?', 'Z')}"
        if name not in self.names:
            self.names[name] = getattr(Format(">" + codes), method)
        return name

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def compiled(self) -> object:
        """The function. Its text comes from our own tables alone; nothing received is in it."""
        code = compile(self.text, f"<{self.name}>", "exec")
        exec(code, self.names)  # noqa: S102
        return self.names[self.name]
