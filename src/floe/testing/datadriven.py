"""Data-driven tests: a text file of commands and what each must print.

A file is a list of blocks, separated by blank lines; lines that start with `#` before a command are notes:

    # Two requests of one round share an object.
    add size=100
    ----
    open: 1 request, 100 bytes

The first line names the command and its arguments (`name=value`, or a bare word); lines up to `----` are its
input; lines from there to the next blank line are the expected output. `pytest -p floe.testing.datadriven
--rewrite` writes what the code really prints into the files, to be read in the diff.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SEPARATOR = "----"


class _Parser(Protocol):
    def addoption(self, *names: str, **facts: str) -> None: ...


class _Config(Protocol):
    def getoption(self, name: str, default: object = ...) -> object: ...


def pytest_addoption(parser: _Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the real output of data-driven tests")


def is_rewriting(config: _Config) -> bool:
    """Whether this run of pytest was asked to rewrite expectations."""
    return bool(config.getoption("--rewrite", default=False))


@dataclass(slots=True)
class Command:
    """One block of a file."""

    line: int
    name: str
    arguments: dict[str, str]
    input: str
    expected: str
    notes: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)  # the command and its input as written

    def integer(self, name: str, default: int | None = None) -> int:
        """An argument as an integer; fails with the place in the file when it is missing."""
        if name not in self.arguments:
            assert default is not None, f"line {self.line}: {self.name} needs {name}="
            return default
        return int(self.arguments[name])


def parse(text: str) -> list[Command]:
    """The blocks of a file; raises `ValueError` with a line number at a block without separator."""
    commands: list[Command] = []
    block: list[str] = []
    start = 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            if not block:
                start = number
            block.append(line)
        elif block:
            commands.append(_command(block, start))
            block = []
    return commands


def _command(block: list[str], start: int) -> Command:
    notes = 0
    while notes < len(block) and block[notes].startswith("#"):
        notes += 1
    if SEPARATOR not in block:
        raise ValueError(f"line {start}: a block without {SEPARATOR}")
    middle = block.index(SEPARATOR)
    if middle <= notes:
        raise ValueError(f"line {start}: a block without a command")
    name, *words = block[notes].split()
    arguments = {key: value for key, _, value in (word.partition("=") for word in words)}
    return Command(
        line=start + notes,
        name=name,
        arguments=arguments,
        input="\n".join(block[notes + 1 : middle]),
        expected="\n".join(block[middle + 1 :]),
        notes=block[:notes],
        text=block[notes:middle],
    )


def run_file(path: Path, handle: Callable[[Command], str], *, rewrite: bool = False) -> None:
    """Run every command in order and compare, or, when rewriting, store what was printed."""
    commands = parse(path.read_text())
    blocks = []
    for command in commands:
        output = handle(command).strip("\n")
        assert "\n\n" not in output, f"{path.name}:{command.line}: output with a blank line"
        if not rewrite:
            place = f"{path.name}:{command.line}: {command.name}"
            assert output == command.expected, f"{place}\n--- expected\n{command.expected}\n--- got\n{output}"
        lines = [*command.notes, *command.text, SEPARATOR, *([output] if output else [])]
        blocks.append("\n".join(lines))
    if rewrite:
        path.write_text("\n\n".join(blocks) + "\n")
