"""The contract of object stores (`floe.storage.objects.port`), as a class of tests.

    class TestMyObjects(ObjectsContract):
        @pytest.fixture
        async def objects(self):
            yield MyObjects(...)

The fixture gives an empty store, or an empty prefix of a shared one. `content` is deterministic, so that a
failure shows the same bytes every time.
"""

import asyncio
import random

import pytest

from floe.model.errors import Corrupt
from floe.storage.objects.port import AlreadyExists, ObjectNotFound, Objects

pytestmark = pytest.mark.asyncio

LARGE_BYTES = (20 << 20) + 12_345  # more than two parts of a multipart upload, and no round number


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)  # noqa: S311


async def keys_of(objects: Objects, prefix: str = "", start_after: str = "") -> list[str]:
    return [info.key async for info in objects.list(prefix, start_after)]


class PutContract:
    async def test_put_gathers_pieces_of_every_kind_in_order(self, objects: Objects) -> None:
        await objects.put("a/one", [b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b"", b"g"])
        assert await objects.get("a/one") == b"abcdefg"

    async def test_put_takes_more_pieces_than_one_system_call_does(self, objects: Objects) -> None:
        pieces = [content(7, seed) for seed in range(3000)]
        await objects.put("a/pieces", pieces)
        assert await objects.get("a/pieces") == b"".join(pieces)

    async def test_put_takes_an_empty_body(self, objects: Objects) -> None:
        await objects.put("a/empty", [])
        assert await objects.get("a/empty") == b""
        assert (await objects.head("a/empty")).size == 0

    async def test_put_takes_a_large_body(self, objects: Objects) -> None:
        body = content(LARGE_BYTES)
        await objects.put("a/large", [memoryview(body)[:1000], memoryview(body)[1000:]])
        assert await objects.get("a/large") == body

    async def test_put_of_an_existing_key_is_refused_and_changes_nothing(self, objects: Objects) -> None:
        await objects.put("a/one", [b"first"])
        with pytest.raises(AlreadyExists):
            await objects.put("a/one", [b"second"])
        assert await objects.get("a/one") == b"first"

    async def test_exactly_one_of_racing_puts_wins(self, objects: Objects) -> None:
        bodies = [content(1000, seed) for seed in range(4)]
        outcomes = await asyncio.gather(
            *(objects.put("a/race", [body]) for body in bodies), return_exceptions=True
        )
        winners = [body for body, outcome in zip(bodies, outcomes, strict=True) if outcome is None]
        losers = [outcome for outcome in outcomes if outcome is not None]
        assert len(winners) == 1
        assert all(isinstance(loser, AlreadyExists) for loser in losers)
        assert await objects.get("a/race") == winners[0]

    async def test_a_deleted_key_may_be_put_again(self, objects: Objects) -> None:
        await objects.put("a/one", [b"first"])
        await objects.delete(["a/one"])
        await objects.put("a/one", [b"second"])
        assert await objects.get("a/one") == b"second"

    @pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".tmp/a", "a\0b", "x" * 2000])
    async def test_a_bad_key_is_a_callers_bug(self, objects: Objects, key: str) -> None:
        with pytest.raises(ValueError, match="object key"):
            await objects.put(key, [b"x"])

    @pytest.mark.parametrize("key", ["a b/ü", "tenant=1/+&?#[x]", "100%/%20", "a.b-c_d~e"])
    async def test_a_key_comes_back_as_it_was_given(self, objects: Objects, key: str) -> None:
        await objects.put(key, [b"x"])
        assert await objects.get(key) == b"x"
        assert await keys_of(objects) == [key]
        assert (await objects.head(key)).key == key


class ReadContract:
    async def test_a_missing_key_is_not_found_by_any_read(self, objects: Objects) -> None:
        for read in (
            objects.get("a/none"),
            objects.get_range("a/none", 0, 1),
            objects.get_ranges("a/none", [(0, 1), (5, 1)]),
            objects.head("a/none"),
            anext(aiter(objects.stream("a/none", 0, 1, 1))),
        ):
            with pytest.raises(ObjectNotFound):
                await read

    async def test_ranges_are_exact_and_in_the_order_asked(self, objects: Objects) -> None:
        body = content(50_000)
        await objects.put("a/one", [body])
        spans = [(40_000, 10_000), (0, 1), (5, 0), (0, 1), (39_999, 2), (10, 20_000)]
        assert [bytes(view) for view in await objects.get_ranges("a/one", spans)] == [
            body[position : position + size] for position, size in spans
        ]
        assert bytes(await objects.get_range("a/one", 0, 50_000)) == body
        assert bytes(await objects.get_range("a/one", 49_999, 1)) == body[-1:]

    @pytest.mark.parametrize("span", [(90, 11), (99, 2), (100, 1), (5000, 1), (0, 101)])
    async def test_a_range_past_the_end_is_corrupt(self, objects: Objects, span: tuple[int, int]) -> None:
        await objects.put("a/one", [content(100)])
        with pytest.raises(Corrupt):
            await objects.get_range("a/one", *span)
        with pytest.raises(Corrupt):
            await objects.get_ranges("a/one", [(0, 1), span])
        with pytest.raises(Corrupt):
            [view async for view in objects.stream("a/one", *span, 10)]

    async def test_a_stream_gives_its_span_in_bounded_pieces(self, objects: Objects) -> None:
        body = content(300_000)
        await objects.put("a/one", [body])
        views = [view async for view in objects.stream("a/one", 100, 250_001, 1000)]
        assert b"".join(views) == body[100:250_101]
        assert max(map(len, views)) <= 1000
        assert [view async for view in objects.stream("a/one", 100, 0, 1000)] == []

    async def test_head_tells_size_and_a_plausible_time(self, objects: Objects) -> None:
        await objects.put("a/old", [b"x"])
        await objects.put("a/one", [content(1234)])
        info = await objects.head("a/one")
        assert (info.key, info.size) == ("a/one", 1234)
        assert info.modified_ms >= (await objects.head("a/old")).modified_ms > 1_600_000_000_000


class DeleteContract:
    async def test_delete_removes_what_it_names_and_nothing_else(self, objects: Objects) -> None:
        for key in ("a/1", "a/2", "a/3", "b/1"):
            await objects.put(key, [b"x"])
        assert await objects.delete(["a/1", "a/3", "b/1"]) == {}
        assert await keys_of(objects) == ["a/2"]

    async def test_a_missing_key_counts_as_deleted(self, objects: Objects) -> None:
        await objects.put("a/1", [b"x"])
        assert await objects.delete(["a/0", "a/1", "a/2", "b/c/d"]) == {}
        assert await objects.delete(["a/1"]) == {}
        assert await objects.delete([]) == {}
        assert await keys_of(objects) == []

    async def test_delete_takes_more_keys_than_one_request_does(self, objects: Objects) -> None:
        there = ["a/0003", "a/0999", "a/1000", "a/1001", "a/1199"]
        for key in [*there, "b/1"]:
            await objects.put(key, [b"x"])
        assert await objects.delete([f"a/{number:04}" for number in range(1200)]) == {}
        assert await keys_of(objects) == ["b/1"]


class ListContract:
    async def test_keys_come_in_byte_order_however_folders_sort(self, objects: Objects) -> None:
        keys = ["a", "a-b/c", "a.b", "b/a", "b/a-1", "b/b/c/d", "b/b0", "b/b/c1", "c/ü", "c/z"]
        for key in reversed(keys):
            await objects.put(key, [b"x"])
        assert await keys_of(objects) == sorted(keys)

    async def test_a_prefix_is_of_characters_not_of_folders(self, objects: Objects) -> None:
        keys = ["a/b1", "a/b2/x", "a/b2/y", "a/b20", "a/c", "ab/b2"]
        for key in keys:
            await objects.put(key, [b"x"])
        assert await keys_of(objects, "a/b2") == ["a/b2/x", "a/b2/y", "a/b20"]
        assert await keys_of(objects, "a/b2/") == ["a/b2/x", "a/b2/y"]
        assert await keys_of(objects, "a") == sorted(keys)
        assert await keys_of(objects, "a/c") == ["a/c"]
        assert await keys_of(objects, "nothing/here") == []

    async def test_a_listing_can_start_after_any_key(self, objects: Objects) -> None:
        keys = sorted(["a/1", "a/2/x", "a/2/y", "a/3", "b/1"])
        for key in keys:
            await objects.put(key, [b"x"])
        for after in [*keys, "", "a/0", "a/2/xx", "a/22", "c"]:
            assert await keys_of(objects, "", after) == [key for key in keys if key > after]
            assert await keys_of(objects, "a/", after) == [key for key in keys if key > after and key < "b"]

    async def test_a_listing_can_start_after_what_is_only_a_folder(self, objects: Objects) -> None:
        keys = ["a/1", "a/2/x", "a/3", "b/1"]
        for key in keys:
            await objects.put(key, [b"x"])
        for after in ["a", "a/2", "b"]:
            assert await keys_of(objects, "", after) == [key for key in keys if key > after]

    async def test_a_listing_tells_sizes(self, objects: Objects) -> None:
        await objects.put("a/1", [b"x"])
        await objects.put("a/2", [b"xx"])
        assert [(info.key, info.size) async for info in objects.list("a/")] == [("a/1", 1), ("a/2", 2)]


class WriterContract:
    @pytest.mark.parametrize("size", [0, 10, LARGE_BYTES])
    async def test_a_written_object_is_visible_whole_after_commit(self, objects: Objects, size: int) -> None:
        body = content(size)
        writer = await objects.writer("a/one")
        for start in range(0, size, 3_000_000):
            await writer.write(memoryview(body)[start : start + 3_000_000])
        assert await keys_of(objects) == []
        await writer.commit()
        await writer.abort()
        assert await objects.get("a/one") == body
        assert await keys_of(objects) == ["a/one"]

    @pytest.mark.parametrize("size", [10, LARGE_BYTES])
    async def test_an_aborted_object_leaves_nothing(self, objects: Objects, size: int) -> None:
        writer = await objects.writer("a/one")
        await writer.write(content(size))
        await writer.abort()
        await writer.abort()
        assert await keys_of(objects) == []
        await objects.put("a/one", [b"x"])

    @pytest.mark.parametrize("size", [10, LARGE_BYTES])
    async def test_commit_is_create_only(self, objects: Objects, size: int) -> None:
        writer = await objects.writer("a/one")
        await writer.write(content(size))
        await objects.put("a/one", [b"first"])
        with pytest.raises(AlreadyExists):
            await writer.commit()
        await writer.abort()
        assert await objects.get("a/one") == b"first"

    async def test_a_writer_of_an_existing_key_is_refused(self, objects: Objects) -> None:
        await objects.put("a/one", [b"first"])
        with pytest.raises(AlreadyExists):
            await objects.writer("a/one")

    async def test_an_ended_writer_takes_nothing(self, objects: Objects) -> None:
        writer = await objects.writer("a/one")
        await writer.commit()
        with pytest.raises(ValueError, match="ended"):
            await writer.write(b"x")
        with pytest.raises(ValueError, match="ended"):
            await writer.commit()


class ObjectsContract(PutContract, ReadContract, DeleteContract, ListContract, WriterContract):
    """Everything an adapter must do."""
