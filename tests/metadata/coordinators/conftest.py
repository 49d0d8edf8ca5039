"""One vnode for each test."""

import pytest

from floe.testing.shard import Shard


@pytest.fixture
async def shard():
    return Shard()
