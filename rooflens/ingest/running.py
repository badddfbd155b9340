"""Run work on an executor: every item that goes in comes out in order, as a result or as an error that names it.

Workers may die. Items left without a result are run again one by one, so only an item that fails alone is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from msgspec import Struct

from rooflens.errors import EnvironmentMissingError, InputError, RooflensError, UsageError, lacking_package
from rooflens.machine import collect_seldom, limit_memory, physical_bytes, usable_cores, without_pandas

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Item = TypeVar("Item")
Result = TypeVar("Result")

ExecutorChoice: TypeAlias = str | Executor
"""The values of `--executor`, or any executor that pickles its calls or shares our memory."""

_IN_FLIGHT = 2
"""Groups submitted per worker, so that no worker waits for its next group."""

_FORMS = "`process:8` or `dask:tcp://host:8786`"
_BYTES_PER_WORKER = 1 << 30
_MOST_ON_WINDOWS = 61
"""Most processes that Python's executor can wait for on Windows."""

_CONNECT_SECONDS = 20.0
_LOST_HINT = "read it alone (`rooflens analyze`) to see what it does; the other reports are not affected"


class Workers(Struct, frozen=True):
    """Where work runs.

    Attributes:
        open: Opens the executor for a block, and again if it broke.
        alone: Opens the executor that retries items one at a time.
        count: Approximate number of groups that run at once.
    """

    open: Callable[[], AbstractContextManager[Executor]]
    alone: Callable[[], AbstractContextManager[Executor]]
    count: int


def run(
    function: Callable[[tuple[Item, ...]], Result], groups: Iterable[tuple[Item, ...]], workers: Workers
) -> Iterator[tuple[tuple[Item, ...], Result | InputError]]:
    """Call a function for each group of items; yield each group with its result, in order.

    If a call fails, its group's items come one by one, each with its result, or with the reason why there is none.

    Args:
        function: A function importable by name, or a partial of it: some executors pickle it.
        groups: Consumed only as workers become free.
        workers: Where to call the function.

    Raises:
        RooflensError: Raised by the function; it concerns all groups.
        EnvironmentMissingError: The workers cannot import what they need.
    """
    waiting: deque[tuple[tuple[Item, ...], Future[Result]]] = deque()
    coming = iter(groups)
    with ExitStack() as stack:
        executor: Executor | None = None
        while True:
            if executor is None and not waiting:
                executor = stack.enter_context(workers.open())
            while executor is not None and len(waiting) < _IN_FLIGHT * workers.count:
                group = next(coming, None)
                if group is None:
                    break
                waiting.append((group, _submitted(executor, function, group)))
            if not waiting:
                return
            group, future = waiting.popleft()
            error = _error_of(future)
            if error is None:
                yield group, future.result()
            else:
                if isinstance(error, BrokenExecutor):  # with all its work: start nothing new before that is done
                    executor = None
                    stack.close()
                yield from _one_by_one(function, group, error, workers)


def _submitted(executor: Executor, function: Callable[[Item], Result], group: Item) -> Future[Result]:
    try:
        return executor.submit(function, group)
    except Exception as error:  # noqa: BLE001 - an executor that broke, or was shut down, since it last answered
        failed: Future[Result] = Future()
        failed.set_exception(error)
        return failed


def _error_of(future: Future[Result]) -> BaseException | None:
    """Wait for a call; return the exception that it raised or that cancelled it."""
    try:
        return future.exception()
    except CancelledError as error:
        return error


def _one_by_one(
    function: Callable[[tuple[Item, ...]], Result], group: tuple[Item, ...], error: BaseException, workers: Workers
) -> Iterator[tuple[tuple[Item, ...], Result | InputError]]:
    """Run the items of a failed group one at a time, in an executor that is reopened if it breaks."""
    _raise_if_general(error)
    items = deque(group)
    while items:
        with workers.alone() as executor:
            is_broken = False
            while items and not is_broken:
                alone = (items.popleft(),)
                future = _submitted(executor, function, alone)
                failure = _error_of(future)
                if failure is None:
                    yield alone, future.result()
                else:
                    _raise_if_general(failure)
                    is_broken = isinstance(failure, BrokenExecutor)
                    yield alone, _lost(failure)


def _raise_if_general(error: BaseException) -> None:
    """Raise an error that concerns all items, or has nothing to do with them."""
    if isinstance(error, ImportError):
        raise EnvironmentMissingError(
            f"a worker cannot import what it needs: {error}", "install the same rooflens where the workers run"
        ) from error
    if isinstance(error, RooflensError) or not isinstance(error, Exception):
        raise error


def _lost(error: BaseException) -> InputError:
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
        return InputError("the process that read it died, as happens when memory runs out", _LOST_HINT)
    first_line = str(error).partition("\n")[0]
    return InputError(f"the worker that read it failed: {type(error).__name__}: {first_line}".rstrip(": "), _LOST_HINT)


def find_workers(choice: ExecutorChoice) -> Workers:
    """Find the executor for a value of `--executor`.

    Raises:
        UsageError: The value is not an executor.
        EnvironmentMissingError: A package is not installed, or nothing answers at the address.
    """
    if isinstance(choice, Executor):
        return Workers(lambda: _lent(choice), lambda: _lent(choice), max(1, getattr(choice, "_max_workers", 1)))
    kind, _, rest = choice.partition(":")
    if kind == "process":
        if rest and not (rest.isascii() and rest.isdecimal() and 0 < int(rest) <= 1024):
            raise UsageError(f"`{choice}`: the number of processes is 1 to 1024", "for example `process:8`")
        return processes(int(rest) if rest else None)
    if kind == "dask" and rest:
        return _dask(rest)
    raise UsageError(f"`{choice}` is not an executor", f"give {_FORMS}")


@contextmanager
def _lent(executor: Executor) -> Iterator[Executor]:
    """Give an executor that the caller owns and shuts down."""
    yield executor


def processes(count: int | None = None) -> Workers:
    """Return local worker processes: by default one per core, as far as memory suffices.

    They import the program's main module again, so only the command line may choose them by default.
    """
    if count is None:
        room = (physical_bytes() or _BYTES_PER_WORKER) // _BYTES_PER_WORKER
        count = max(1, min(usable_cores(), room))
    if sys.platform == "win32":
        count = min(count, _MOST_ON_WINDOWS)
    return Workers(lambda: _pool(count), lambda: _pool(1), count)


@contextmanager
def _pool(count: int) -> Iterator[Executor]:
    # Only this pool's workers may be killed; the calling program may have other children.
    before = multiprocessing.active_children()
    # Whatever a killed worker left unpacked is deleted with the folder.
    with tempfile.TemporaryDirectory(prefix="rooflens-", ignore_cleanup_errors=True) as scratch:
        # Not fork: the parent may run threads (pyarrow, Jupyter), whose locks a forked child would inherit held.
        with _nothing_from_here():  # it starts the tracker of its semaphores
            executor = ProcessPoolExecutor(count, _Context(), _begin_worker, (count, scratch))
        try:
            yield executor
        except (KeyboardInterrupt, SystemExit):  # nobody waits for the workers' results
            for worker in multiprocessing.active_children():
                if worker not in before:
                    worker.kill()
            raise
        finally:
            executor.shutdown(cancel_futures=True)


@contextmanager
def _nothing_from_here() -> Iterator[None]:
    """Let a started Python import nothing from the working directory until it has our own path.

    It may be a folder of a stranger's reports, with a `pickle.py` in it, and what Python runs with `-c`, as
    multiprocessing does, looks there first.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


_SAFE_PATH = "PYTHONSAFEPATH"


class _Process(SpawnProcess):
    def start(self) -> None:
        """Start the process."""
        with _nothing_from_here():
            super().start()


class _Context(SpawnContext):
    Process = _Process


def _begin_worker(count: int, scratch: str) -> None:
    """Set up a worker: limit its share of memory; let it end at Ctrl-C and with the process that started it."""
    import pyarrow as pa  # noqa: PLC0415 - for its first array alone

    tempfile.tempdir = scratch
    limit_memory(count)
    collect_seldom()
    with without_pandas():
        # With its first array pyarrow imports pandas, which would cost each worker time and memory.
        pa.array([1.0])
    # The terminal sends Ctrl-C to the whole process group; a traceback per worker would bury the message.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, name="rooflens-parent", daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _dask(address: str) -> Workers:
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise lacking_package(error) or error from None

    def connected() -> Client:
        try:
            return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EnvironmentMissingError(
                f"no Dask scheduler answers at `{address}`", "start one with `dask scheduler`, and check the address"
            ) from error

    @contextmanager
    def opened() -> Iterator[Executor]:
        with connected() as client:
            yield client.get_executor()

    with connected() as client:
        threads = sum(client.nthreads().values())
    if not threads:
        raise EnvironmentMissingError(f"the Dask scheduler at `{address}` has no workers", "start `dask worker`s")
    return Workers(opened, opened, threads)
