"""The driver asks again for what fails, keeps its bounds, and tells whoever waits."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

import pytest

from floe.metadata.codecs.operations import CloseBucket
from floe.metadata.operations import DONE, MORE, OperationDriver, OperationKind
from floe.metadata.store.memory import MemoryStore
from floe.metadata.vnode import Vnode
from floe.model.errors import Unavailable
from floe.model.ids import Term, VnodeId


class Toy(OperationKind[CloseBucket]):
    """Two steps on three targets; notes what is done, and does `behave` first."""

    step_count = 2

    def __init__(self):
        self.applied = []
        self.concluded = []
        self.active = self.most_active = 0

    async def behave(self, step, vnode):
        return DONE

    def targets(self, arguments, step):
        return [VnodeId(0), VnodeId(1), VnodeId(2)]

    async def apply(self, arguments, step, vnode):
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            await asyncio.sleep(0)
            outcome = await self.behave(step, vnode)
        finally:
            self.active -= 1
        self.applied.append((arguments.bucket, step, vnode))
        return outcome

    async def conclude(self, arguments, tx):
        tx.put(b"zend%d" % arguments.bucket, b"")
        tx.when_durable(lambda: self.concluded.append(arguments.bucket))


@asynccontextmanager
async def driving(kind, room=8, disk=None):
    store = MemoryStore(1, disk=disk)
    vnode = Vnode(store, VnodeId(0))
    vnode.led(Term(store.disk.terms[0]))
    driver = OperationDriver(vnode, {CloseBucket: kind}, random=Random(1), room=asyncio.Semaphore(room))
    await driver.resume()
    yield driver, vnode, store
    await driver.close()
    await vnode.close()


async def begin(driver, vnode, bucket, operation_id=0):
    return await vnode.run(lambda tx: driver.begin(tx, CloseBucket(bucket), operation_id))


async def test_operation_that_has_begun_is_driven_to_its_end():
    kind = Toy()
    async with driving(kind) as (driver, vnode, store):
        operation = await begin(driver, vnode, 5)
        await driver.finished(operation)
        assert sorted(kind.applied) == [(5, step, target) for step in (0, 1) for target in (0, 1, 2)]
        assert kind.concluded == [5]
        assert store.disk.vnodes[0].scan(b"o", b"p", 10) == []
        await driver.finished(operation)


async def test_transaction_that_fails_begins_nothing():
    kind = Toy()
    async with driving(kind) as (driver, vnode, _store):

        async def body(tx):
            await driver.begin(tx, CloseBucket(5))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await vnode.run(body)
        assert await vnode.run(lambda tx: tx.scan(b"o", b"p", 10)) == []
        assert driver._running == {}
    assert kind.applied == []


async def test_steps_that_fail_or_have_more_to_do_are_asked_again(caplog):
    class Stubborn(Toy):
        def __init__(self):
            super().__init__()
            self.moods = [Unavailable("not now"), MORE, ZeroDivisionError(), MORE]

        async def behave(self, step, vnode):
            mood = self.moods.pop() if vnode == 1 and self.moods else DONE
            if isinstance(mood, Exception):
                raise mood
            return mood

    kind = Stubborn()
    async with driving(kind) as (driver, vnode, _store):
        await driver.finished(await begin(driver, vnode, 5))
    assert kind.applied.count((5, 0, 1)) == 3
    assert kind.applied.count((5, 1, 1)) == 1
    assert "ZeroDivisionError" in caplog.text


async def test_operation_with_an_id_begins_once():
    kind = Toy()
    async with driving(kind) as (driver, vnode, _store):
        await asyncio.gather(*(begin(driver, vnode, 5, operation_id=77) for _ in range(4)))
        assert driver.is_running(77)
        await driver.finished(77)
        assert not driver.is_running(78)
    assert kind.concluded == [5]


async def test_broker_drives_only_so_many_at_a_time():
    kind = Toy()
    async with driving(kind, room=2) as (driver, vnode, _store):
        operations = [await begin(driver, vnode, bucket) for bucket in range(10)]
        await asyncio.gather(*(driver.finished(operation) for operation in operations))
    assert sorted(kind.concluded) == list(range(10))
    assert kind.most_active <= 2 * 3


async def test_new_term_goes_on_at_the_recorded_step_and_waiters_are_told():
    class Held(Toy):
        gate = None

        async def behave(self, step, vnode):
            if step == 1 and self.gate is not None:
                await self.gate.wait()
            return DONE

    kind = Held()
    kind.gate = asyncio.Event()
    async with driving(kind) as (driver, vnode, _store):
        operation = await begin(driver, vnode, 5)
        waiting = asyncio.create_task(driver.finished(operation))
        while kind.active < 3 or not driver.is_running(operation) or len(kind.applied) < 3:
            await asyncio.sleep(0)
        assert {step for _, step, _ in kind.applied} == {0}
        kind.applied.clear()
        driver.stop()
        vnode.led(Term(1))
        await driver.resume()
        kind.gate.set()
        await waiting
        assert [step for _, step, _ in kind.applied] == [1, 1, 1]
    assert kind.concluded == [5]


async def test_waiter_is_told_when_the_end_was_reached_under_a_term_it_did_not_see():
    kind = Toy()
    async with driving(kind) as (driver, vnode, store):
        operation = await begin(driver, vnode, 5)
        waiting = asyncio.create_task(driver.finished(operation))
        while not driver._waiting:
            await asyncio.sleep(0)
        driver.stop()
        store.disk.vnodes[0].write([(b"o" + operation.to_bytes(8, "big"), None)])
        await driver.resume()
        await asyncio.wait_for(waiting, 1)


async def test_closing_driver_tells_waiters_that_the_outcome_is_open():
    class Stuck(Toy):
        async def behave(self, step, vnode):
            await asyncio.Event().wait()

    async with driving(Stuck()) as (driver, vnode, store):
        operation = await begin(driver, vnode, 5)
        waiting = asyncio.create_task(driver.finished(operation))
        while not driver._waiting:
            await asyncio.sleep(0)
        await driver.close()
        with pytest.raises(Unavailable):
            await waiting
    assert store.disk.vnodes[0].scan(b"o", b"p", 10) != []
