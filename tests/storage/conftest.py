"""Object store servers, one of each per test session."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from floe.testing import s3_server
from floe.testing.s3_server import CloudServer, NotInstalled

NPM_PACKAGES = Path(__file__).parents[2] / ".build" / "npm"


def serve(start: Callable[[], AbstractContextManager[CloudServer]]) -> Iterator[CloudServer]:
    try:
        with start() as server:
            yield server
    except NotInstalled as reason:
        print(f"skipped: {reason}")
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    yield from serve(lambda: s3_server.seaweedfs(tmp_path_factory.mktemp("seaweedfs")))


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    yield from serve(lambda: s3_server.moto(tmp_path_factory.mktemp("moto")))


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    yield from serve(lambda: s3_server.azurite(tmp_path_factory.mktemp("azurite"), NPM_PACKAGES))
