"""URLs name stores; a URL that names none is refused with a sentence that holds no secret."""

from pathlib import Path
from random import Random

import pytest

from floe.observability.clock import SystemClock
from floe.observability.metrics import Metrics
from floe.storage.objects.open import open_objects
from floe.storage.objects.port import Objects


def opened(url: str) -> Objects:
    return open_objects(url, clock=SystemClock(), random=Random(1), metrics=Metrics())


@pytest.mark.parametrize("name", ["plain", "with%20space"])
async def test_a_file_url_names_a_folder(tmp_path: Path, name: str) -> None:
    objects = opened(f"file://{tmp_path}/{name}")
    await objects.put("a/b", [b"x"])
    assert (tmp_path / name.replace("%20", " ") / "a" / "b").read_bytes() == b"x"
    await objects.close()


async def test_every_memory_url_is_a_store_of_its_own() -> None:
    first, second = opened("memory://"), opened("memory://")
    await first.put("a", [b"x"])
    await second.put("a", [b"y"])
    assert await first.get("a") == b"x"


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/prefix?region=eu-west-1&access_key_id=a&secret_access_key=b",
        "gs://bucket/prefix?skip_signature=true",
        "az://container/prefix?account_name=a&skip_signature=true",
    ],
)
async def test_cloud_urls_open_without_talking_to_anybody(url: str) -> None:
    await opened(url).close()


@pytest.mark.parametrize(
    "url",
    ["", "/var/lib", "file://relative/path", "ftp://host/x", "s3:///prefix", "s3://b?secret_key=hush&no=1"],
)
def test_a_url_that_names_no_store_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(ValueError, match=r"object store|file store") as caught:
        opened(url)
    assert "hush" not in str(caught.value)
