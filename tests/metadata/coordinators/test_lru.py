"""The bounded cache forgets what was used least recently, and nothing else."""

from floe.metadata.coordinators.lru import Lru


def test_least_recently_used_entry_is_forgotten():
    cache: Lru[int, str] = Lru(2)
    cache.put(1, "a")
    cache.put(2, "b")
    assert cache.get(1) == "a"
    cache.put(3, "c")
    assert (cache.get(1), cache.get(2), cache.get(3)) == ("a", None, "c")
    assert len(cache) == 2


def test_replacing_an_entry_forgets_nothing():
    cache: Lru[int, str] = Lru(2)
    for value in "abc":
        cache.put(1, value)
    cache.put(2, "z")
    assert (cache.get(1), cache.get(2)) == ("c", "z")


def test_removed_and_cleared_entries_are_gone():
    cache: Lru[int, str] = Lru(4)
    cache.put(1, "a")
    cache.put(2, "b")
    cache.remove(1)
    cache.remove(9)
    assert (cache.get(1), cache.get(2)) == (None, "b")
    cache.clear()
    assert len(cache) == 0
