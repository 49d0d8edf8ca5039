"""The memory store keeps the contract of object stores."""

import pytest

from floe.storage.objects.memory import MemoryObjects
from floe.storage.objects.port import Objects
from floe.testing.contracts.objects import ObjectsContract


class TestMemoryObjects(ObjectsContract):
    @pytest.fixture
    async def objects(self) -> Objects:
        return MemoryObjects()
