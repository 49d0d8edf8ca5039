"""The load: C programs over librdkafka, compiled once into .build/bench."""

import json
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent / "c"
BUILD = Path(__file__).parents[1] / ".build" / "bench"
FLAGS = {
    "producer": ["-lrdkafka"],
    "consumer": ["-lrdkafka"],
    "replay": [],
    "reference_broker": ["-msse4.2", "-lpthread"],
}


class LoadFailed(Exception):
    """A load program did not finish its work; the message is what it said."""


def build() -> None:
    """Compile what is missing or stale."""
    if not shutil.which("gcc"):
        raise SystemExit("the load needs gcc; on Debian: apt-get install gcc librdkafka-dev")
    BUILD.mkdir(parents=True, exist_ok=True)
    for name, flags in FLAGS.items():
        source, target = SOURCES / f"{name}.c", BUILD / name
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-o", str(target), str(source), *flags]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit(f"{name}.c did not compile; on Debian: apt-get install librdkafka-dev")


def produce(port: int, **options: object) -> dict[str, float]:
    """Run the producer; `rdkafka_KEY` options become librdkafka's (underscores become dots)."""
    return _run("producer", brokers=f"127.0.0.1:{port}", **options)


def consume(port: int, **options: object) -> dict[str, float]:
    """Run the consumer over a topic from its beginning."""
    return _run("consumer", brokers=f"127.0.0.1:{port}", **options)


def replay(
    port: int, request: bytes, *, connections: int, in_flight: int, seconds: float
) -> dict[str, float]:
    """Send one framed request again and again over many connections."""
    BUILD.mkdir(parents=True, exist_ok=True)
    file = BUILD / "request.bin"
    file.write_bytes(request)
    arguments = [str(port), str(file), str(connections), str(in_flight), str(seconds)]
    return _finish([str(BUILD / "replay"), *arguments], timeout=seconds + 60)


def _run(program: str, **options: object) -> dict[str, float]:
    arguments = []
    for key, value in options.items():
        name = "rdkafka." + key[8:].replace("_", ".") if key.startswith("rdkafka_") else key
        arguments.append(f"{name}={value}")
    return _finish([str(BUILD / program), *arguments], timeout=180)


def _finish(command: list[str], timeout: float) -> dict[str, float]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise LoadFailed(f"{Path(command[0]).name} did not finish in {timeout:.0f} s") from error
    if done.returncode:
        raise LoadFailed(f"{Path(command[0]).name}: {done.stdout[-500:]} {done.stderr[-500:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result
