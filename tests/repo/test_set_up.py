"""README's first screen: the two commands exist as README says, and the lock files pin everything."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_readme_names_the_two_commands_on_its_first_screen():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])
    assert "./dev serve" in first_screen
    assert "./dev test" in first_screen


def test_ci_calls_exactly_the_readme_test_command():
    assert "exec ./dev test\n" in (ROOT / ".ci" / "run").read_text()


def test_locks_pin_every_package_by_version_and_hash():
    for lock in ("base", "dev"):
        text = (ROOT / "requirements" / f"{lock}.lock").read_text().replace("\\\n", " ")
        entries = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert entries
        for entry in entries:
            assert re.match(r"[a-z0-9._-]+==\S+", entry), entry
            assert "--hash=sha256:" in entry


def test_dev_lock_holds_the_base_lock():
    def pins(name: str) -> set[str]:
        return set(
            re.findall(
                r"^([a-z0-9._-]+==\S+)", (ROOT / f"requirements/{name}.lock").read_text(), re.MULTILINE
            )
        )

    assert pins("base") <= pins("dev")


def test_base_lock_covers_the_declared_dependencies():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    locked = (ROOT / "requirements" / "base.lock").read_text()
    for requirement in declared:
        package = re.match(r"[A-Za-z0-9_.-]+", requirement)
        assert package is not None
        assert f"\n{package.group()}==" in "\n" + locked


def test_dev_explains_itself_and_refuses_unknown_commands():
    helped = subprocess.run(
        [sys.executable, ROOT / "dev", "--help"], capture_output=True, text=True, check=True
    )
    assert "serve" in helped.stdout
    refused = subprocess.run(
        [sys.executable, ROOT / "dev", "sevre"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "sevre" in refused.stderr
