"""Everything put in comes out, whatever executor does the work and whatever happens to its workers."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loops import for_all

import rooflens
from rooflens.errors import EnvironmentMissingError, InputError, UsageError
from rooflens.ingest.running import ExecutorChoice, Workers, find_workers, processes, run

KILLER, FAILING = 7, 5
ANSWERS, FAILS, DIES = "answers", "fails", "dies"


def double(items: tuple[int, ...]) -> list[int]:
    """Do the work."""
    return [2 * item for item in items]


def double_or_die(items: tuple[int, ...]) -> list[int]:
    """Be killed at one item, as a worker is that runs out of memory."""
    if KILLER in items:
        os.kill(os.getpid(), signal.SIGKILL)
    return double(items)


def double_or_fail(items: tuple[int, ...]) -> list[int]:
    """Fail at one item, as only a bug would."""
    if FAILING in items:
        raise ZeroDivisionError("on purpose")
    return double(items)


def double_late(items: tuple[int, ...]) -> list[int]:
    """Take longest for the first items."""
    time.sleep(0.02 / (1 + items[0]))
    return double(items)


def refuse(items: tuple[int, ...]) -> list[int]:
    """Fail for a reason that concerns all items."""
    raise InputError(f"cannot write {len(items)} items", "none")


def lack_a_module(items: tuple[int, ...]) -> list[int]:
    """Fail as a worker with a different installation does."""
    raise ModuleNotFoundError(f"No module named 'rooflens', {items}")


def groups(count: int = 12, size: int = 3) -> Iterator[tuple[int, ...]]:
    """Return numbers in groups."""
    yield from (tuple(range(start, start + size)) for start in range(0, count, size))


def run_all(
    choice: ExecutorChoice, function: Callable[[tuple[int, ...]], list[int]]
) -> tuple[list[int], dict[int, str]]:
    """Return the answers in the order in which they came, and the errors by item."""
    found = list(run(function, groups(), find_workers(choice)))
    assert [item for items, _ in found for item in items] == list(range(12))
    errors = {items[0]: str(result) for items, result in found if isinstance(result, InputError)}
    return [number for _, result in found if not isinstance(result, InputError) for number in result], errors


@pytest.mark.parametrize("choice", ["process:2", ThreadPoolExecutor(3)], ids=["processes", "threads"])
def test_answers_come_in_the_order_of_the_items(choice: ExecutorChoice) -> None:
    """The order of the items is kept whichever ends first, in our processes and in an executor from the caller."""
    assert run_all(choice, double_late) == ([2 * number for number in range(12)], {})


def test_a_worker_runs_nothing_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules in a stranger's folder of reports, named like those that Python starts with, are not imported."""
    pwned = tmp_path / "pwned"
    for name in ("multiprocessing", "pickle", "runpy", "signal", "socket", "tempfile", "threading"):
        (tmp_path / f"{name}.py").write_text(f"open({str(pwned)!r}, 'a').write('{name} ')\n")
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    found = [answer for _, answer in run(double, [(1,), (2,)], processes(1))]
    assert (found, dict(os.environ)) == ([[2], [4]], before)
    assert not pwned.exists(), pwned.read_text()


def test_only_the_item_that_kills_its_worker_is_lost() -> None:
    """A death fails everything in the pool; repeated one by one, only the killer has no answer, and is named."""
    done, lost = run_all("process:2", double_or_die)
    assert done == [2 * number for number in range(12) if number != KILLER]
    assert lost == {KILLER: "the process that read it died, as happens when memory runs out"}


def test_a_bug_costs_its_item() -> None:
    """An exception is narrowed down to its item and reported by its name."""
    done, lost = run_all(ThreadPoolExecutor(2), double_or_fail)
    assert done == [2 * number for number in range(12) if number != FAILING]
    assert lost == {FAILING: "the worker that read it failed: ZeroDivisionError: on purpose"}


def test_an_error_about_all_items_ends_the_run() -> None:
    """An error that concerns everything, such as a module that workers lack, is not repeated for each item."""
    with pytest.raises(InputError, match="cannot write 3 items"):
        run_all(ThreadPoolExecutor(2), refuse)
    with pytest.raises(EnvironmentMissingError, match="No module named 'rooflens'") as caught:
        run_all(ThreadPoolExecutor(2), lack_a_module)
    assert "install" in caught.value.hint


def test_an_executor_of_the_caller_that_breaks_costs_what_it_did_not_do() -> None:
    """We cannot reopen a caller's executor: each item without an answer is named, and its owner keeps the executor."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as executor:
        done, lost = run_all(executor, double_or_die)
    assert done == [2 * number for number in range(6)]
    assert [*lost] == list(range(6, 12))
    with ThreadPoolExecutor(1) as executor:
        run_all(executor, double)
        assert executor.submit(int, 3).result() == 3


class Cancelling(Executor):
    """An executor that cancels what it is given, as during its shutdown."""

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]  # noqa: ARG002 - the class's own signature
        """Accept a call without making it."""
        future: Future[object] = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


def test_what_an_executor_cancels_is_named() -> None:
    """Calls that were cancelled are not taken as answers."""
    done, lost = run_all(Cancelling(), double)
    assert (done, len(lost)) == ([], 12)
    assert "CancelledError" in lost[0]


class Mortal(Executor):
    """An executor that breaks at a deadly item and accepts nothing after that."""

    def __init__(self) -> None:
        self._is_broken = False

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]
        """Make the call at once."""
        if self._is_broken:
            raise BrokenExecutor
        future: Future[object] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as executors do
            self._is_broken = isinstance(error, BrokenExecutor)
            future.set_exception(error)
        return future


@contextmanager
def mortal() -> Iterator[Executor]:
    """Open an executor that may break."""
    yield Mortal()


def behave(items: tuple[tuple[int, str], ...]) -> list[int]:
    """Answer for all items, or fail or die as the worst of them does."""
    kinds = {kind for _, kind in items}
    if DIES in kinds:
        raise BrokenExecutor
    if FAILS in kinds:
        raise ValueError("on purpose")
    return [number for number, _ in items]


@given(
    st.lists(st.lists(st.sampled_from([ANSWERS, FAILS, DIES]), min_size=1, max_size=4), max_size=8), st.integers(1, 3)
)
def test_what_goes_in_comes_out(kinds: list[list[str]], workers: int) -> None:
    """For any mix of answers, errors and deaths, each item comes out once, in order, with its own outcome."""
    numbers = iter(range(100))
    given_groups = [tuple((next(numbers), kind) for kind in group) for group in kinds]
    came = list(run(behave, given_groups, Workers(mortal, mortal, workers)))
    assert [item for items, _ in came for item in items] == [item for group in given_groups for item in group]
    for items, result in came:
        if isinstance(result, InputError):
            ((_, kind),) = items
            assert ("died" in str(result), "failed: ValueError" in str(result)) == (kind == DIES, kind == FAILS)
        else:
            assert result == [number for number, kind in items if kind == ANSWERS]
            assert len(result) == len(items)


def test_groups_are_taken_as_there_is_room() -> None:
    """Only two groups for each worker are taken in advance, however many there are."""
    taken: list[int] = []

    def watched() -> Iterator[tuple[int, ...]]:
        for number in range(100):
            taken.append(number)
            yield (number,)

    with ThreadPoolExecutor(2) as executor:
        results = run(double, watched(), find_workers(executor))
        next(results)
        assert len(taken) <= 4
        results.close()  # type: ignore[attr-defined]  # a generator


@for_all("choice", ["process:0", "process:x", "process:2000", "dask:", "mpi", "threads"])
def test_a_choice_that_is_none_is_refused(choice: str) -> None:
    """An invalid choice is repeated in the message, and the hint shows a valid one."""
    with pytest.raises(UsageError, match=choice) as caught:
        find_workers(choice)
    assert "process:8" in caught.value.hint


def test_processes_are_as_many_as_there_are_cores_and_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is one process for each core, provided that each has at least a GiB of memory."""
    monkeypatch.setattr("rooflens.ingest.running.usable_cores", lambda: 64)
    monkeypatch.setattr("rooflens.ingest.running.physical_bytes", lambda: 16 << 30)
    assert processes().count == 16
    monkeypatch.setattr("rooflens.ingest.running.usable_cores", lambda: 4)
    assert processes().count == 4


PARENT = """
import os, sys, tempfile, time
from rooflens.ingest.running import processes, run
def hang(items):
    tempfile.mkstemp()
    os.write(1, b"%d\\n" % os.getpid())  # at once: an unbuffered print writes the end of its line apart
    time.sleep(600)
if __name__ == "__main__":
    list(run(hang, [(1,), (2,)], processes(2)))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_its_parent(tmp_path: Path, number: int) -> None:
    """Busy workers end when their parent is stopped or killed; Ctrl-C also removes their files."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, str(tmp_path / "parent.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(rooflens.__file__).parents[1]), "TMPDIR": str(scratch)},
        start_new_session=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        pids = [int(parent.stdout.readline()) for _ in range(2)]
    if number == signal.SIGINT:  # a terminal sends it to all processes
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    parent.wait(30)
    end_s = time.monotonic() + 30
    while any(map(_is_alive, pids)) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not any(map(_is_alive, pids))
    assert number != signal.SIGINT or list(scratch.iterdir()) == []


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and awaits its new parent does not."""
    try:
        return not re.search(r"\) [ZX] ", Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
    except OSError:
        return False
