"""Runs every check and test, and prints where the time went.

Called by `./dev test` and `./dev fast`. Further arguments go to pytest and replace the default selection.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS = {
    "format": ["ruff", "format", "--check", "-q", "."],
    "lint": ["ruff", "check", "-q", "."],
    "types": ["mypy"],
}
LANES = {
    "quick tests": ["-m", "not slow and not s3 and not clients"],
    "real S3, real clients": ["-m", "(s3 or clients) and not slow"],
    "slow tests": ["-m", "slow"],
}
NO_TESTS_COLLECTED = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="checks and quick tests only")
    options, pytest_arguments = parser.parse_known_args()
    os.chdir(ROOT)
    spent: dict[str, tuple[float, int]] = {"set-up": (float(os.environ.get("FLOE_SETUP_SECONDS", "0")), 0)}
    if pytest_arguments:
        return subprocess.run([str(BIN / "pytest"), *pytest_arguments], check=False).returncode
    for name, command in CHECKS.items():
        spent[name] = run([str(BIN / command[0]), *command[1:]])
    lanes = dict(list(LANES.items())[:1]) if options.fast else LANES
    for name, selection in lanes.items():
        print(f"\n== {name}", flush=True)
        spent[name] = run([str(BIN / "pytest"), "-q", "-n", "2", "--dist", "loadfile", *selection])
    print_budget(spent)
    failed = [name for name, (_, code) in spent.items() if code]
    if failed:
        print("FAILED: " + ", ".join(failed))
    return 1 if failed else 0


def run(command: list[str]) -> tuple[float, int]:
    """Seconds and exit code; a lane that selects no test is not a failure."""
    started = time.monotonic()
    code = subprocess.run(command, check=False).returncode
    return time.monotonic() - started, 0 if code == NO_TESTS_COLLECTED else code


def print_budget(spent: dict[str, tuple[float, int]]) -> None:
    total = sum(seconds for seconds, _ in spent.values())
    print(f"\n{'STAGE':<24}{'SECONDS':>9}{'SHARE':>8}  RESULT")
    for name, (seconds, code) in spent.items():
        share = seconds / total if total else 0
        print(f"{name:<24}{seconds:>9.1f}{share:>8.0%}  {'failed' if code else 'ok'}")
    print(f"{'total':<24}{total:>9.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
