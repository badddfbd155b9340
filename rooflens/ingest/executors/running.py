"""Run tasks on workers that may die, a few at a time, and find the items that kill them.

A task that fails, or whose worker dies, is tried once more, then item by item: only an item that fails alone is lost.
Where one death breaks the whole executor, as in `ProcessPoolExecutor`, all tasks that it had are tried once more, then
one at a time with nothing beside, so that no task is blamed for its neighbour.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from rooflens.errors import EnvironmentMissingError, InputError, RooflensError
from rooflens.ingest.children.children import ChildDiedError
from rooflens.ingest.executors.opening import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from rooflens.ingest.executors.opening import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")

_IN_FLIGHT = 2
"""How many tasks are submitted for each that can run at once, so that a worker never waits for its next one."""

_LOST_HINT = "read it alone (`rooflens analyze`) to see what it does; the other reports are not affected"


class Lost(Struct, Generic[Item], frozen=True):
    """An item that killed every worker, or that fails by itself."""

    item: Item
    error: InputError


class _Batch(Struct, Generic[Item]):
    """Items that are done together, and how often that failed; `alone` where nothing else may run beside."""

    items: tuple[Item, ...]
    attempts: int = 0
    alone: bool = False


def run_tasks(
    workers: Workers, function: Callable[[tuple[Item, ...]], Result], tasks: Iterable[tuple[Item, ...]]
) -> Iterator[Result | Lost[Item]]:
    """Call a function for each task, on workers; yield the results as they come.

    Args:
        workers: Where to call it.
        function: Pickled by its name, a partial one with its arguments. It may be called more than once for a task.
        tasks: Items that belong together; consumed only as there is room, so there may be any number.

    Raises:
        RooflensError: The function raised one twice: it concerns all tasks, not one.
        EnvironmentMissingError: The workers cannot import what they need.
    """
    with ExitStack() as stack:
        run = _Run(workers, function, tasks, stack)
        while run.fill():
            yield from run.next_results()


class _Run(Generic[Item, Result]):
    """Tasks on their way."""

    def __init__(
        self,
        workers: Workers,
        function: Callable[[tuple[Item, ...]], Result],
        tasks: Iterable[tuple[Item, ...]],
        stack: ExitStack,
    ) -> None:
        self._workers = workers
        self._function = function
        self._fresh = iter(tasks)
        self._again: deque[_Batch[Item]] = deque()
        self._running: dict[Future[Result], tuple[_Batch[Item], Executor]] = {}
        self._stack = stack
        self._executor: Executor | None = None

    def fill(self) -> bool:
        """Submit tasks while there is room; False when all are done."""
        while len(self._running) < _IN_FLIGHT * self._workers.count:
            batch = self._next()
            if batch is None:
                break
            self._submit(batch)
            if batch.alone:
                break
        return bool(self._running)

    def _next(self) -> _Batch[Item] | None:
        """Return the next task that may start now; None where there is none."""
        if any(batch.alone for batch, _ in self._running.values()):
            return None
        for batch in self._again:
            if not batch.alone or not self._running:
                self._again.remove(batch)
                return batch
        if self._again:  # one that must run alone waits
            return None
        items = next(self._fresh, None)
        return None if items is None else _Batch(items)

    def _submit(self, batch: _Batch[Item]) -> None:
        call = partial(_attempt, self._function, batch.items)
        executor = self._opened()
        try:
            future = executor.submit(call, batch.attempts)
        except BrokenExecutor:  # since it last answered
            self._leave(executor)
            executor = self._opened()
            future = executor.submit(call, batch.attempts)
        self._running[future] = batch, executor

    def _opened(self) -> Executor:
        if self._executor is None:
            self._executor = self._stack.enter_context(self._workers.open())
        return self._executor

    def next_results(self) -> Iterator[Result | Lost[Item]]:
        """Wait for tasks to end; yield their results, and queue those that failed again."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        for future in done:
            batch, executor = self._running.pop(future)
            try:
                result = future.result()
            except (BrokenExecutor, CancelledError) as error:
                self._leave(executor)
                yield from self._failed(batch, error, alone=True)
            except Exception as error:  # noqa: BLE001 - whatever a worker dies of
                yield from self._failed(batch, error, alone=False)
            else:
                yield result

    def _leave(self, executor: Executor) -> None:
        """Drop an executor that broke, if it is the one in use; the caller's is replaced by processes of our own."""
        if executor is not self._executor:
            return
        self._executor = None
        if not self._workers.can_reopen:
            self._workers = processes(self._workers.count)

    def _failed(self, batch: _Batch[Item], error: BaseException, *, alone: bool) -> Iterator[Lost[Item]]:
        """Queue what failed again, as a whole or in pieces; yield an item that fails alone."""
        if isinstance(error, ImportError):
            raise EnvironmentMissingError(
                f"a worker cannot import what it needs: {error}", "install the same rooflens where the workers run"
            ) from error
        was_alone = batch.alone or not alone
        if batch.attempts and was_alone and isinstance(error, RooflensError) and not isinstance(error, ChildDiedError):
            raise error
        if not batch.attempts:
            self._again.append(_Batch(batch.items, 1))
        elif not was_alone:
            self._again.append(_Batch(batch.items, batch.attempts + 1, alone=True))
        elif len(batch.items) > 1:
            self._again.extend(_Batch((item,), batch.attempts + 1, alone=alone) for item in batch.items)
        else:
            yield Lost(batch.items[0], _told(error))


def _attempt(function: Callable[[Any], Result], items: tuple[Any, ...], attempt: int) -> Result:  # noqa: ARG001 - tells one try from the next, where a task is known by what it is given
    """Run a task on the worker."""
    return function(items)


def _told(error: BaseException) -> InputError:
    if isinstance(error, ChildDiedError):
        return InputError(str(error), _LOST_HINT)
    first_line = str(error).partition("\n")[0]
    return InputError(f"the worker that read it failed: {type(error).__name__}: {first_line}".rstrip(": "), _LOST_HINT)
