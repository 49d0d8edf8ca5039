"""The driver of operations: changes that touch more than one vnode, driven to their end by their home.

An operation begins as a row written by a transaction of its home vnode, together with whatever that
transaction decides. Once the row is durable the driver applies its steps to other vnodes, each in a
transaction of its own there, and at the end removes the row in a transaction that makes the outcome visible.
A new leader of the home goes on where the row says. What fails is asked for again until it is done: an
operation has no way back and needs none, since everything that could refuse it was checked before it began.

`machines.operation` decides the order; this module does the waiting, the retries and the bookkeeping.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from floe.machines.operation import Apply, Conclude, Effect, OperationMachine, Record, pause_ms
from floe.metadata import keys
from floe.metadata.codecs.operations import (
    Arguments,
    OperationRow,
    decode_operation,
    encode_operation,
    operation_id_of,
    operation_key,
)
from floe.metadata.vnode import Transaction, Vnode
from floe.model.errors import Fenced, Unavailable
from floe.model.ids import ObjectId, VnodeId

A = TypeVar("A")
OPERATIONS_AT_ONCE = 64  # of one broker; the rest wait their turn
_PAGE = 256


class Outcome(NamedTuple):
    """What came of applying a step: whether it is done there, and what it found, for the end to know."""

    is_done: bool = True
    found: Sequence[ObjectId] = ()


DONE = Outcome()
MORE = Outcome(is_done=False)


class OperationKind(Generic[A]):
    """What operations of one kind do. Every method but `targets` may be called again after a crash."""

    step_count = 1

    def targets(self, arguments: A, step: int) -> Sequence[VnodeId]:
        """Where a step is applied."""
        raise NotImplementedError

    async def apply(self, arguments: A, step: int, vnode: VnodeId) -> Outcome:
        """Apply a step to one vnode, or a bounded part of it."""
        raise NotImplementedError

    async def settle(self, arguments: A, found: Mapping[VnodeId, Sequence[ObjectId]]) -> None:
        """Act on what the last step has found, in transactions of its own, before the end."""

    async def conclude(self, arguments: A, tx: Transaction) -> None:
        """Take part in the transaction of the home that removes the row."""


class OperationDriver:
    """Drives the operations whose home is one vnode. `room` bounds those of the whole broker."""

    def __init__(
        self,
        vnode: Vnode,
        kinds: Mapping[type, OperationKind[Any]],
        *,
        random: Random,
        room: asyncio.Semaphore,
    ) -> None:
        self._vnode = vnode
        self._kinds = kinds
        self._random = random
        self._room = room
        self._running: dict[int, asyncio.Task[None]] = {}
        self._over: set[int] = set()  # those of `_running` that have been concluded
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}

    def is_running(self, operation_id: int) -> bool:
        return operation_id in self._running

    async def begin(self, tx: Transaction, arguments: Arguments, operation_id: int = 0) -> int:
        """Add an operation to a transaction of the home; it is driven once that is durable.

        One that is given an id begins only if it is not under way already.
        """
        if operation_id and await tx.get(operation_key(operation_id)) is not None:
            return operation_id
        while not operation_id:
            drawn = self._random.getrandbits(63)
            operation_id = drawn if await tx.get(operation_key(drawn)) is None else 0
        row = OperationRow(0, arguments)
        tx.put(operation_key(operation_id), encode_operation(row))
        tx.when_durable(partial(self._launch, operation_id, row))
        return operation_id

    async def finished(self, operation_id: int) -> None:
        """Wait until an operation that has begun is over, however often leadership changes meanwhile."""
        if operation_id not in self._running and not await self._is_stored(operation_id):
            return
        if operation_id in self._over:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(operation_id, []).append(waiter)
        await waiter

    async def resume(self) -> None:
        """Drive what a new term finds in the store, once everything of the term before has stopped."""
        await self._stopped()
        await self._vnode.run(self._find_all)

    def stop(self) -> None:
        """Stop driving: leadership is lost or may be. What was decided elsewhere stays decided."""
        for task in self._running.values():
            task.cancel()

    async def close(self) -> None:
        """Stop; whoever waits for an operation learns that it will go on without this broker."""
        await self._stopped()
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            if not waiter.done():
                waiter.set_exception(Unavailable("this broker is closing; the operation goes on after it"))
        self._waiting.clear()

    async def _stopped(self) -> None:
        self.stop()
        if self._running:
            await asyncio.wait(self._running.values())

    async def _is_stored(self, operation_id: int) -> bool:
        return await self._vnode.run(lambda tx: tx.get(operation_key(operation_id))) is not None

    async def _find_all(self, tx: Transaction) -> None:
        start, end = keys.OPERATION, keys.after(keys.OPERATION)
        found: dict[int, OperationRow] = {}
        while True:
            page = await tx.scan(start, end, _PAGE)
            found.update((operation_id_of(key), decode_operation(value)) for key, value in page)
            if len(page) < _PAGE:
                break
            start = page[-1][0] + b"\0"
        tx.when_durable(partial(self._resume_all, found))

    def _resume_all(self, found: Mapping[int, OperationRow]) -> None:
        for operation_id, row in found.items():
            self._launch(operation_id, row)
        for operation_id in [each for each in self._waiting if each not in found]:
            self._tell(operation_id)

    def _launch(self, operation_id: int, row: OperationRow) -> None:
        if operation_id in self._running:
            return
        task = asyncio.get_running_loop().create_task(self._drive(operation_id, row))
        self._running[operation_id] = task
        task.add_done_callback(lambda _: self._ended(operation_id))

    def _ended(self, operation_id: int) -> None:
        del self._running[operation_id]
        self._over.discard(operation_id)

    def _tell(self, operation_id: int) -> None:
        if operation_id in self._running:
            self._over.add(operation_id)
        for waiter in self._waiting.pop(operation_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def _drive(self, operation_id: int, row: OperationRow) -> None:
        async with self._room:
            await _Drive(self, operation_id, row).run()


class _Drive:
    """One operation being driven: the machine, and a task for each effect it has asked for."""

    def __init__(self, driver: OperationDriver, operation_id: int, row: OperationRow) -> None:
        kind = driver._kinds[type(row.arguments)]
        self._driver = driver
        self._id = operation_id
        self._arguments = row.arguments
        self._kind = kind
        self._found: dict[VnodeId, Sequence[ObjectId]] = {}
        self._machine = OperationMachine(
            step=row.step,
            step_count=kind.step_count,
            targets=partial(kind.targets, row.arguments),
        )

    async def run(self) -> None:
        machine = self._machine
        tasks: dict[asyncio.Task[list[Effect]], None] = {}  # a set that keeps its order
        effects = machine.start()
        try:
            while not machine.is_over:
                tasks.update((asyncio.ensure_future(self._perform(effect)), None) for effect in effects)
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                effects = []
                for task in [task for task in tasks if task.done()]:
                    del tasks[task]
                    effects += task.result()
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _perform(self, effect: Effect) -> list[Effect]:
        """Do what the machine asks for and return what it asks for next; a task boundary."""
        if effect.attempt:
            await asyncio.sleep(self._driver._random.uniform(0, pause_ms(effect.attempt)) / 1000)
        try:
            return await self._done(effect)
        except (Unavailable, Fenced):
            return self._machine.failed(effect)
        except Exception as error:  # noqa: BLE001 - a bug in a step must not stop the operation for good
            message = f"a step of an operation failed and will be tried again. {effect} {self._arguments}"
            context = {"message": message[:1000], "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return self._machine.failed(effect)

    async def _done(self, effect: Effect) -> list[Effect]:
        match effect:
            case Apply(step, target):
                outcome = await self._kind.apply(self._arguments, step, VnodeId(target))
                if outcome.found:
                    self._found[VnodeId(target)] = outcome.found
                return self._machine.applied(effect, is_done=outcome.is_done)
            case Record(step):
                self._found.clear()
                await self._driver._vnode.run(partial(self._record, step))
                return self._machine.recorded(effect)
            case Conclude():
                await self._kind.settle(self._arguments, self._found)
                await self._driver._vnode.run(self._conclude)
                self._machine.concluded()
                return []

    async def _record(self, step: int, tx: Transaction) -> None:
        tx.put(operation_key(self._id), encode_operation(OperationRow(step, self._arguments)))

    async def _conclude(self, tx: Transaction) -> None:
        key = operation_key(self._id)
        if await tx.get(key) is not None:
            await self._kind.conclude(self._arguments, tx)
            tx.delete(key)
        tx.when_durable(partial(self._driver._tell, self._id))
