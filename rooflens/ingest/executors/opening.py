"""Open the executor that was asked for: `process:8`, `dask:tcp://host:8786`, `mpi`, or the caller's own."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from rooflens.errors import EnvironmentMissingError, UsageError
from rooflens.ingest.children.memory import physical_bytes, usable_cores
from rooflens.ingest.executors.processes import ProcessExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

ExecutorChoice: TypeAlias = str | Executor
"""What `--executor` accepts, or any executor that pickles its calls or shares our memory."""

_FORMS = "`process:8`, `dask:tcp://host:8786` or `mpi`"
_BYTES_PER_WORKER = 1 << 30
_CONNECT_SECONDS = 20.0


class Workers(Struct, frozen=True):
    """Where tasks are done.

    Attributes:
        open: Gives an executor, for a block; a second time if the first one broke.
        count: About how many tasks it runs at once.
        can_reopen: Whether a broken one can be opened again.
    """

    open: Callable[[], AbstractContextManager[Executor]]
    count: int
    can_reopen: bool = True


def find_workers(choice: ExecutorChoice) -> Workers:
    """Find the executor of a choice.

    Raises:
        UsageError: There is no such kind.
        EnvironmentMissingError: What it needs is not installed, or nothing answers at the address.
    """
    if isinstance(choice, Executor):
        return Workers(lambda: _lent(choice), max(1, getattr(choice, "_max_workers", 1)), can_reopen=False)
    kind, _, rest = choice.partition(":")
    if kind == "process":
        return processes(_count(rest, choice) if rest else None)
    if kind == "dask" and rest:
        return _dask(rest)
    if kind == "mpi" and not rest:
        return _mpi()
    raise UsageError(f"`{choice}` is not an executor", f"give {_FORMS}")


def processes(count: int | None = None) -> Workers:
    """Return processes of this machine: by default one for each core, as far as the memory suffices."""
    if count is None:
        room = (physical_bytes() or _BYTES_PER_WORKER) // _BYTES_PER_WORKER
        count = max(1, min(usable_cores(), room))
    return Workers(lambda: _ended(ProcessExecutor(count)), count)


def _count(text: str, choice: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= 1024:
        raise UsageError(f"`{choice}`: the number of processes is 1 to 1024", "for example `process:8`")
    return int(text)


@contextmanager
def _ended(executor: Executor) -> Iterator[Executor]:
    """Give an executor of ours; what it still does when the block ends is given up."""
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _lent(executor: Executor) -> Iterator[Executor]:
    """Give an executor of the caller's, who ends it."""
    yield executor


def _dask(address: str) -> Workers:
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentMissingError("Dask is not installed", "`pip install 'rooflens[dask]'`") from error

    def connected() -> Client:
        try:
            return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EnvironmentMissingError(
                f"no Dask scheduler answers at `{address}`", "start one with `dask scheduler`, and check the address"
            ) from error

    @contextmanager
    def opened() -> Iterator[Executor]:
        # Pure: Dask knows a task by its arguments, so one that is sent twice is done once.
        with connected() as client:
            yield client.get_executor(pure=True)

    with connected() as client:
        threads = sum(client.nthreads().values())
    if not threads:
        raise EnvironmentMissingError(f"the Dask scheduler at `{address}` has no workers", "start `dask worker`s")
    return Workers(opened, threads)


def _mpi() -> Workers:
    try:
        from mpi4py.futures import MPIPoolExecutor  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentMissingError("mpi4py is not installed", "`pip install 'rooflens[mpi]'`") from error
    except RuntimeError as error:
        raise EnvironmentMissingError(f"there is no MPI here: {error}", "load your site's MPI module") from error
    from mpi4py import MPI  # noqa: PLC0415 - as above

    size = MPI.COMM_WORLD.Get_size()
    if size < 2:
        hint = "`mpiexec -n 8 python -m mpi4py.futures -m rooflens ingest ... --executor mpi`"
        raise EnvironmentMissingError("there is only one MPI process, and none to do the work", hint)
    return Workers(lambda: _ended(MPIPoolExecutor()), size - 1)
