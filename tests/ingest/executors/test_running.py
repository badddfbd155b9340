from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rooflens.errors import EnvironmentMissingError, InputError, UsageError
from rooflens.ingest.executors.opening import find_workers, processes
from rooflens.ingest.executors.processes import ProcessExecutor
from rooflens.ingest.executors.running import Lost, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflens.ingest.executors.opening import ExecutorChoice

KILLER, FAILING = 7, 5


def double(items: tuple[int, ...]) -> list[int]:
    """Do what is asked."""
    return [2 * item for item in items]


def double_or_die(items: tuple[int, ...]) -> list[int]:
    """Be killed by one item, as a worker is where memory runs out."""
    if KILLER in items:
        os.kill(os.getpid(), signal.SIGKILL)
    return double(items)


def double_or_fail(items: tuple[int, ...]) -> list[int]:
    """Fail at one item, as only a bug does."""
    if FAILING in items:
        raise ZeroDivisionError("on purpose")
    return double(items)


def refuse(items: tuple[int, ...]) -> list[int]:
    """Fail as a store that cannot be written does."""
    raise InputError(f"cannot write {len(items)} items", "none")


def lack_a_module(items: tuple[int, ...]) -> list[int]:
    """Fail as a worker with another installation does."""
    raise ModuleNotFoundError(f"No module named 'rooflens', {items}")


def _tasks(count: int = 12, size: int = 3) -> Iterator[tuple[int, ...]]:
    yield from (tuple(range(start, start + size)) for start in range(0, count, size))


def _run(
    choice: ExecutorChoice, function: Callable[[tuple[int, ...]], list[int]]
) -> tuple[list[int], dict[int, InputError]]:
    found = list(run_tasks(find_workers(choice), function, _tasks()))
    lost = {one.item: one.error for one in found if isinstance(one, Lost)}
    return sorted(number for one in found if not isinstance(one, Lost) for number in one), lost


@pytest.mark.parametrize("choice", ["process:2", ThreadPoolExecutor(2)], ids=["processes", "threads"])
def test_every_executor_gives_the_same(choice: ExecutorChoice) -> None:
    """Processes of ours and an executor that a program brings do all tasks, each once."""
    assert _run(choice, double) == ([2 * number for number in range(12)], {})


def test_only_the_item_that_kills_its_worker_is_lost() -> None:
    """The worker dies with the task, with it again, and with the item alone: its neighbours in the task are done."""
    done, lost = _run("process:2", double_or_die)
    assert done == [2 * number for number in range(12) if number != KILLER]
    assert [(item, str(error)) for item, error in lost.items()] == [
        (KILLER, "the worker was killed (SIGKILL) while reading, as the system does when memory runs out")
    ]


def test_where_one_death_breaks_the_executor_no_neighbour_is_blamed() -> None:
    """A `ProcessPoolExecutor` fails all it has when one process dies; still only the killer is lost."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver")) as executor:
        done, lost = _run(executor, double_or_die)
    assert done == [2 * number for number in range(12) if number != KILLER]
    assert [*lost] == [KILLER]


class _BreaksOften(Executor):
    """An executor whose every third call takes all others along."""

    opened = 0

    def __init__(self) -> None:
        _BreaksOften.opened += 1
        self._calls = 0

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]
        self._calls += 1
        future: Future[object] = Future()
        try:
            if self._calls % 3 == 0:
                raise multiprocessing.ProcessError("broken")  # noqa: TRY301 - as executors do
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as executors do
            future.set_exception(error)
        return future


def test_a_task_that_fails_once_is_done_on_the_second_try() -> None:
    """Workers that die now and then, whatever they work at, cost no item."""
    assert _run(_BreaksOften(), double) == ([2 * number for number in range(12)], {})


def test_a_bug_costs_its_item() -> None:
    """An exception of a task is narrowed down to the item and told by its name."""
    done, lost = _run(ThreadPoolExecutor(2), double_or_fail)
    assert len(done) == 11
    assert str(lost[FAILING]) == "the worker that read it failed: ZeroDivisionError: on purpose"


def test_an_error_about_all_tasks_ends_the_run() -> None:
    """What the tasks say is wrong with the store is not put on each report; a module that is missing there is named."""
    with pytest.raises(InputError, match="cannot write 3 items"):
        _run(ThreadPoolExecutor(2), refuse)
    with pytest.raises(EnvironmentMissingError, match="No module named 'rooflens'") as caught:
        _run(ThreadPoolExecutor(2), lack_a_module)
    assert "install" in caught.value.hint


def test_tasks_are_taken_as_there_is_room() -> None:
    """Ten thousand tasks are not handed over at once: memory does not grow with their number."""
    taken = 0

    def counted() -> Iterator[tuple[int, ...]]:
        nonlocal taken
        for number in range(10_000):
            taken += 1
            yield (number,)

    results = run_tasks(find_workers(ThreadPoolExecutor(2)), double, counted())
    next(results)
    assert taken <= 5


def test_who_stops_early_waits_for_nobody() -> None:
    """Leaving the loop, as Ctrl-C does, ends the processes that are still at work."""
    executor = ProcessExecutor(1)
    future = executor.submit(time.sleep, 600)
    threading.Timer(0.5, executor.shutdown, kwargs={"cancel_futures": True}).start()
    start_s = time.monotonic()
    with pytest.raises(InputError):
        future.result()
    executor.shutdown()
    assert time.monotonic() - start_s < 30


@pytest.mark.parametrize("choice", ["process:0", "process:x", "thread:2", "mpi:3", "dask", "dask:", ""])
def test_another_choice_is_refused(choice: str) -> None:
    """What is no executor is an error of usage that names those there are."""
    with pytest.raises(UsageError) as caught:
        find_workers(choice)
    assert "process:8" in caught.value.hint


def test_there_are_no_more_processes_than_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default one process a core, and one a GiB where there are fewer."""
    monkeypatch.setattr("rooflens.ingest.executors.opening.usable_cores", lambda: 64)
    monkeypatch.setattr("rooflens.ingest.executors.opening.physical_bytes", lambda: 16 << 30)
    assert processes().count == 16
    monkeypatch.setattr("rooflens.ingest.executors.opening.usable_cores", lambda: 4)
    assert processes().count == 4
