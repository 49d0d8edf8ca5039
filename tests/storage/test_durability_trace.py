"""What is acknowledged was synced before: shown by tracing the system calls of a real process.

Method: a small program puts an object, or writes and syncs a map, and prints a marker when the call has
returned. strace records what the process asked of the kernel, in order. Then: the bytes were written to a
descriptor, that descriptor was synced, the file got its name, the name's folder was synced, the marker came.
"""

import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from floe.storage.kv.rocks import RocksKeyValue

pytestmark = pytest.mark.slow

CALLS = (
    "write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,"
    "link,linkat,rename,renameat,renameat2,openat,mkdir,mkdirat"
)

PUT = """
import asyncio, sys
from floe.storage.objects.files import FileObjects
from floe.storage.os_disk import OsDisk

async def main():
    objects = FileObjects(OsDisk(sys.argv[1], has_unnamed_files=sys.argv[2] == "unnamed"))
    for number in range(3):
        await objects.put(f"cluster/bucket/{number}", [b"PAYLOAD-%d-" % number, b"x" * 5000])
        print(f"ACKNOWLEDGED-{number}", flush=True)
    await objects.close()

asyncio.run(main())
"""

WRITE = """
import sys
from floe.storage.kv.rocks import RocksKeyValue

kv = RocksKeyValue(sys.argv[1])
for number in range(3):
    kv.write([(b"key-%d" % number, b"PAYLOAD-%d-" % number)])
    kv.sync()
    print(f"ACKNOWLEDGED-{number}", flush=True)
    if number == 1:
        kv._db.flush()  # the next write goes to a new log file
kv.close()
"""


@dataclass(frozen=True)
class Call:
    """One successful system call; `path` is what the descriptor in its first argument points to.

    Threads overlap, so a call has a line of the trace where it began and one where it ended.
    """

    name: str
    text: str
    path: str
    began: int
    ended: int


def traced(program: str, folder: Path, *arguments: str) -> list[Call]:
    """The calls of all threads."""
    strace = shutil.which("strace")
    if strace is None:
        print("skipped: strace is not installed")
        pytest.skip("strace is not installed")
    output = folder / "trace"
    command = [strace, "-f", "-y", "-s", "256", "-e", f"trace={CALLS}", "-o", str(output)]
    command += [sys.executable, "-c", program, str(folder / "data"), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    if run.returncode != 0 and "ptrace" in run.stderr:
        print("skipped: this machine does not allow tracing")
        pytest.skip("this machine does not allow tracing")
    assert run.returncode == 0, run.stderr
    return parsed(output.read_text())


def parsed(text: str) -> list[Call]:
    calls: list[Call] = []
    unfinished: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text.splitlines()):
        thread, _, rest = line.partition(" ")
        rest = rest.strip()
        began = number
        if rest.endswith("<unfinished ...>"):
            unfinished[thread] = (rest.removesuffix("<unfinished ...>").rstrip(), number)
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", rest):
            start, began = unfinished.pop(thread)
            rest = start + resumed[1]
        if (match := re.match(r"(\w+)\((.*)", rest)) and "= -1" not in rest:
            path = re.match(r"\w+<(.*?)>(?:\(deleted\))?[,)]", match[2])
            calls.append(Call(match[1], match[2], path[1] if path else "", began, number))
    return calls


START = Call("", "", "", -1, -1)


def after(earlier: Call, calls: list[Call], name: str, *, text: str = "", path: str | None = None) -> Call:
    """The first such call that began when `earlier` had ended; fails when there is none."""
    for call in sorted(calls, key=lambda call: call.ended):
        is_such = re.fullmatch(name, call.name) and text in call.text and path in (None, call.path)
        if is_such and call.began > earlier.ended:
            return call
    raise AssertionError(f"no {name} with {text!r} on {path!r} after {earlier}")


@pytest.mark.parametrize("kind", ["unnamed", "named"])
def test_a_put_is_written_synced_named_and_its_folder_synced_before_it_returns(
    tmp_path: Path, kind: str
) -> None:
    calls = traced(PUT, tmp_path, kind)
    root = tmp_path / "data"
    first_marker = after(START, calls, "write", text="ACKNOWLEDGED-0")
    for name, parent in (("cluster", root), ("bucket", root / "cluster")):
        made = after(START, calls, "mkdirat?", text=f'"{name}"')
        assert after(made, calls, "fsync", path=str(parent)).ended < first_marker.began
    for number in range(3):
        written = after(START, calls, "writev", text=f"PAYLOAD-{number}-")
        synced = after(written, calls, "fdatasync|fsync", path=written.path)
        named = after(synced, calls, "linkat|link|rename.*", text=f'"{number}"')
        folder_synced = after(named, calls, "fsync", path=str(root / "cluster" / "bucket"))
        marker = after(START, calls, "write", text=f"ACKNOWLEDGED-{number}")
        assert folder_synced.ended < marker.began


def test_a_synced_write_is_in_a_synced_log_before_sync_returns(tmp_path: Path) -> None:
    calls = traced(WRITE, tmp_path)
    logs = set()
    for number in range(3):
        written = after(START, calls, "write|pwrite64", text=f"PAYLOAD-{number}-")
        assert written.path.endswith(".log")
        logs.add(written.path)
        synced = after(written, calls, "fdatasync|fsync", path=written.path)
        opened = after(START, calls, "openat", text=written.path)
        folder_synced = after(opened, calls, "fsync|fdatasync", path=str(tmp_path / "data"))
        marker = after(START, calls, "write", text=f"ACKNOWLEDGED-{number}")
        assert synced.ended < marker.began
        assert folder_synced.ended < marker.began
    assert len(logs) == 2


def test_the_parser_sees_a_missing_or_a_late_sync() -> None:
    calls = parsed(
        "2 fdatasync(5</d/#1>(deleted) <unfinished ...>\n"
        '1 writev(5</d/#1>(deleted), [{iov_base="PAYLOAD-0-", iov_len=10}], 1) = 10\n'
        "2 <... fdatasync resumed>) = 0\n"
        '1 write(1</dev/pts/0>, "ACKNOWLEDGED-0\\n", 15) = 15\n'
        "1 fsync(5</d/#1>(deleted)) = -1 EIO (Input/output error)\n"
    )
    assert [call.path for call in calls] == ["/d/#1", "/d/#1", "/dev/pts/0"]
    written = after(START, calls, "writev")
    with pytest.raises(AssertionError, match="no fdatasync"):
        after(written, calls, "fdatasync|fsync", path="/d/#1")


KILLED = """
import sys
from floe.storage.kv.rocks import RocksKeyValue

kv = RocksKeyValue(sys.argv[1], cache_bytes=4 << 20)
number = 0
while True:
    kv.write([(b"%08d-%d" % (number, part), b"v" * 500) for part in range(20)])
    kv.sync()
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("acknowledged", [1, 300, 1500])
def test_a_killed_process_leaves_every_synced_write_whole(tmp_path: Path, acknowledged: int) -> None:
    """1,500 writes of 10 kB pass through several log files and tables."""
    command = [sys.executable, "-c", KILLED, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = -1
        while last < acknowledged:
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines()
    last = max([last, *map(int, rest)])
    kv = RocksKeyValue(tmp_path / "data")
    rows = kv.scan(b"", b"\xff", 10_000_000)
    kv.close()
    writes = [int(key[:8]) for key, _ in rows]
    assert len(rows) % 20 == 0
    assert sorted(set(writes)) == list(range(max(writes) + 1))
    assert max(writes) >= last


def test_a_copy_of_the_folder_taken_after_sync_holds_everything(tmp_path: Path) -> None:
    """What the files hold is what a crash of the process alone would leave."""
    kv = RocksKeyValue(tmp_path / "data")
    for number in range(200):
        kv.write([(b"%08d" % number, b"v" * 2000)])
    kv.sync()
    shutil.copytree(tmp_path / "data", tmp_path / "copy", ignore=shutil.ignore_patterns("LOCK"))
    kv.close()
    copy = RocksKeyValue(tmp_path / "copy")
    assert len(copy.scan(b"", b"\xff", 10_000)) == 200
    copy.close()
