"""The broker-wide budget: first come, first served, nobody forgotten, nobody stuck."""

import asyncio

import pytest

from floe.kafka.memory_budget import MemoryBudget


@pytest.fixture
def given():
    return []


@pytest.fixture
def peers(given):
    """Connections by name: the callbacks that they are known by."""
    return {name: lambda name=name: given.append(name) for name in "abcde"}


async def turn():
    await asyncio.sleep(0)


async def test_room_is_given_in_order_of_arrival(given, peers):
    budget = MemoryBudget(100)
    budget.held += 80  # complete requests under way
    for name, size in (("a", 90), ("b", 10), ("c", 10)):
        budget.wait(size, peers[name])
    # There would be room for b, but a was there first.
    assert not budget.try_take(5, peers["d"])
    budget.give_back(20)
    await turn()
    assert given == []
    budget.give_back(49)
    await turn()
    assert given == []
    budget.give_back(1)
    await turn()
    assert given == ["a"]
    assert budget.held == 100
    budget.complete(90, peers["a"])
    await turn()
    assert given == ["a"]
    budget.give_back(90)
    await turn()
    assert given == ["a", "b", "c"]
    assert (budget.held, budget.has_waiters) == (30, False)


async def test_request_larger_than_the_limit_passes_alone(peers, given):
    budget = MemoryBudget(100)
    assert budget.try_take(500, peers["a"])
    assert not budget.try_take(1, peers["b"])
    budget.complete(500, peers["a"])
    budget.wait(500, peers["b"])
    await turn()
    assert given == []
    budget.give_back(500)
    await turn()
    assert given == ["b"]


async def test_one_of_many_that_are_stuck_half_way_goes_on_to_its_end(peers, given):
    budget = MemoryBudget(100)
    for name in "abcd":
        assert budget.try_take(25, peers[name])
    for name in "abcd":
        budget.wait(25, peers[name])
    await turn()
    # Nothing under way would ever make room, so the first passes the limit, and goes on doing so.
    assert given == ["a"]
    assert budget.try_take(50, peers["a"])
    assert not budget.try_take(1, peers["e"])
    assert budget.held == 175
    budget.complete(100, peers["a"])
    await turn()
    assert given == ["a"]  # its work is under way and will make room
    budget.give_back(100)
    await turn()
    # There is room for b again; then c is stuck as a was, and goes on in its turn.
    assert given == ["a", "b", "c"]


async def test_one_that_leaves_does_not_hold_up_those_behind(peers, given):
    budget = MemoryBudget(100)
    budget.held += 60
    budget.wait(90, peers["a"])
    budget.wait(30, peers["b"])
    budget.leave(0, peers["a"])
    await turn()
    assert given == ["b"]
    assert budget.held == 90


async def test_privilege_ends_with_its_connection(peers, given):
    budget = MemoryBudget(100)
    for name in "ab":
        assert budget.try_take(50, peers[name])
    for name in "ab":
        budget.wait(50, peers[name])
    await turn()
    assert given == ["a"]
    budget.leave(100, peers["a"])
    await turn()
    assert given == ["a", "b"]
    budget.leave(100, peers["b"])
    assert (budget.held, budget.arriving) == (0, 0)
