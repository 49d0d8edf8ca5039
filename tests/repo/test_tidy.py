"""House rules that a person would otherwise have to repeat in every review."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYTHON = [
    *SOURCES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "benchmarks").rglob("*.py")),
    *sorted((ROOT / "tools").rglob("*.py")),
]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
LEFTOVERS = re.compile("TO" + "DO|FIX" + "ME|X" + r"XX|breakpoint\(\)")
ENTRIES = {"__init__.py", "__main__.py", "main.py", "sim_run.py"}  # started, not imported by name
BANNED_NAMES = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_sources_to_check():
    assert len(SOURCES) > 30


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_file_is_short_enough_and_free_of_leftovers(path):
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES_MAX
    assert not LEFTOVERS.findall(text)
    assert path.name not in BANNED_NAMES


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_functions_fit_a_screen(path):
    long = [
        f"{node.name} at line {node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert not long


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name not in ENTRIES], ids=name)
def test_module_is_used_by_somebody(path):
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    parent, _, leaf = module.rpartition(".")
    wanted = re.compile(rf"(from|import) {re.escape(module)}\b|from {re.escape(parent)} import .*\b{leaf}\b")
    listed = f'"{module}"'
    texts = (other.read_text() for other in PYTHON if other != path)
    assert any(wanted.search(text) or listed in text for text in texts)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page_has_exactly_one_title(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    assert len(re.findall(r"^# ", text, flags=re.MULTILINE)) == 1


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(path):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target
