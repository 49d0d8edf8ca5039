"""Deleting many keys, with an answer per key and without amplifying a throttled store's trouble.

obstore deletes in bulk but reports only the first failure. So a failed page is halved until the failures
stand alone, with a bound on the requests this may cost; what the bound leaves undecided is reported as
failed, and a later call tries again. After a page of which nothing could be deleted, no page is halved any
more: the store is refusing everybody, not single keys.

Invariant: a key that is not in the answer is gone; deleting a key twice is harmless.
"""

import asyncio
from collections.abc import Sequence

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

PAGE_KEYS = 1000  # the most that one DeleteObjects request takes
_REQUESTS_PER_PAGE_MAX = 48
_SINGLES_IN_FLIGHT_MAX = 16
_REASON_CHARACTERS_MAX = 300


async def delete_many(store: ObjectStore, keys: Sequence[str]) -> dict[str, str]:
    """Why for each key that may still be there."""
    failures: dict[str, str] = {}
    requests_max = _REQUESTS_PER_PAGE_MAX
    for first in range(0, len(keys), PAGE_KEYS):
        page = list(keys[first : first + PAGE_KEYS])
        failed = await _delete_page(store, page, requests_max)
        failures.update(failed)
        if len(failed) == len(page):
            requests_max = 1
    return failures


async def _delete_page(store: ObjectStore, page: list[str], requests_max: int) -> dict[str, str]:
    failures: dict[str, str] = {}
    pending = [page]
    requests = 0
    while pending:
        keys = pending.pop()
        requests += 1
        try:
            await obstore.delete_async(store, keys)
        except FileNotFoundError:
            # Some stores refuse to delete what is not there, and stop at the first such key.
            failures.update(await _delete_singly(store, keys))
        except (BaseError, OSError) as error:
            if len(keys) == 1 or requests >= requests_max:
                failures.update(dict.fromkeys(keys, first_line(error)))
            else:
                middle = len(keys) // 2
                pending += [keys[middle:], keys[:middle]]
    return failures


async def _delete_singly(store: ObjectStore, keys: list[str]) -> dict[str, str]:
    causes: list[str | None] = []
    for first in range(0, len(keys), _SINGLES_IN_FLIGHT_MAX):
        part = keys[first : first + _SINGLES_IN_FLIGHT_MAX]
        causes += await asyncio.gather(*(_delete_one(store, key) for key in part))
    return {key: cause for key, cause in zip(keys, causes, strict=True) if cause is not None}


async def _delete_one(store: ObjectStore, key: str) -> str | None:
    try:
        await obstore.delete_async(store, key)
    except FileNotFoundError:
        return None
    except (BaseError, OSError) as error:
        return first_line(error)
    return None


def first_line(error: Exception) -> str:
    """An error in one line: obstore appends pages of debugging text."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:_REASON_CHARACTERS_MAX]
