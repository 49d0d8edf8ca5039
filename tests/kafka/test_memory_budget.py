"""The broker-wide budget: first come, first served, nobody forgotten."""

import asyncio

from floe.kafka.memory_budget import MemoryBudget


async def test_room_is_given_in_order_of_arrival():
    budget = MemoryBudget(100)
    assert budget.try_take(80)
    given = []
    waits = {name: lambda name=name: given.append(name) for name in "abc"}
    for name, size in (("a", 90), ("b", 10), ("c", 10)):
        budget.wait(size, waits[name])
    # There would be room for b, but a was there first.
    assert not budget.try_take(5)
    budget.give_back(20)
    await asyncio.sleep(0)
    assert given == []
    budget.give_back(60)
    await asyncio.sleep(0)
    assert given == ["a", "b"]
    assert budget.held == 100
    budget.give_back(90)
    await asyncio.sleep(0)
    assert given == ["a", "b", "c"]
    assert (budget.held, budget.has_waiters) == (20, False)


async def test_request_larger_than_the_limit_passes_alone():
    budget = MemoryBudget(100)
    assert budget.try_take(500)
    assert not budget.try_take(1)
    budget.give_back(500)
    assert budget.try_take(1)
    given = []
    budget.wait(500, lambda: given.append(1))
    await asyncio.sleep(0)
    assert given == []
    budget.give_back(1)
    await asyncio.sleep(0)
    assert given == [1]


async def test_one_that_leaves_does_not_hold_up_those_behind():
    budget = MemoryBudget(100)
    budget.try_take(60)
    given = []

    def first():
        given.append("first")

    budget.wait(90, first)
    budget.wait(30, lambda: given.append("second"))
    budget.leave(first)
    budget.leave(first)
    await asyncio.sleep(0)
    assert given == ["second"]
    assert budget.held == 90
