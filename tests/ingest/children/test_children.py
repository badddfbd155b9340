from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rooflens
from rooflens.ingest.children import children as parent_side
from rooflens.ingest.children import memory, starting
from rooflens.ingest.children.children import ChildDiedError, Children

if TYPE_CHECKING:
    from collections.abc import Iterator

SENT_BYTES = 1 << 20


class DiesAsItIsSent:
    """An answer whose child is killed when half of it is in the pipe."""

    def __reduce__(self) -> tuple[object, ...]:
        """Send the head of a frame and some of what it promises, then end."""
        written = b"A" + SENT_BYTES.to_bytes(8, "little") + bytes(100)
        for descriptor in range(3, 20):
            try:
                os.write(descriptor, written)
            except OSError:
                continue
        os.kill(os.getpid(), signal.SIGSEGV)
        return (str, ())


def die_while_sending() -> DiesAsItIsSent:
    """Return what cannot be sent whole."""
    return DiesAsItIsSent()


def die_of_memory_unsaid() -> None:
    """Abort as C++ does where memory cannot be had."""
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def refuse() -> None:
    """Raise what a library of its own might."""
    raise LookupError("on purpose")


def allocate(size: int) -> int:
    """Take so much memory; return how much it was."""
    return len(bytearray(size))


def say_much() -> str:
    """Print where the answers go, as native libraries do."""
    ctypes.CDLL(None).puts(b"x" * 10_000)
    ctypes.CDLL(None).fflush(None)
    return "whole"


def pickle_fails() -> object:
    """Return what no pickle takes."""
    return lambda: None


@pytest.fixture
def children() -> Iterator[Children]:
    """Children that end with the test."""
    made = Children("the worker")
    yield made
    made.close()


def _death(children: Children, function: object, *arguments: object, deadline_s: float | None = None) -> ChildDiedError:
    with pytest.raises(ChildDiedError) as caught:
        children.call(function, arguments, deadline_s)  # type: ignore[arg-type]
    return caught.value


def test_a_child_answers_many_calls_and_keeps_its_pipes_to_itself(children: Children) -> None:
    """One process takes call after call; what libraries print in it does not reach the answers."""
    assert children.call(say_much, ()) == "whole"
    assert children.call(os.getpid, ()) == children.call(os.getpid, ()) != os.getpid()


def test_what_a_call_raises_is_raised_here_and_its_child_goes_on(children: Children) -> None:
    """An exception crosses as it is; an answer that cannot be sent is one too."""
    first = children.call(os.getpid, ())
    with pytest.raises(LookupError, match="on purpose"):
        children.call(refuse, ())
    with pytest.raises(TypeError, match="cannot be sent"):
        children.call(pickle_fails, ())
    assert children.call(os.getpid, ()) == first


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (os.abort, (), "damaged: the worker ended with SIGABRT while reading"),
        (os._exit, (3,), "damaged: the worker ended with status 3 while reading"),
        (die_while_sending, (), "damaged: the worker ended with SIGSEGV while sending what it had read"),
        (signal.raise_signal, (signal.SIGKILL,), "(SIGKILL) while reading, as the system does when memory runs out"),
        (die_of_memory_unsaid, (), "the worker needed more than the "),
    ],
)
def test_a_death_is_told_as_it_was(
    children: Children, function: object, arguments: tuple[object, ...], said: str
) -> None:
    """A child that aborts, exits, dies while sending, is killed or runs out of memory: each is said as what it is."""
    error = _death(children, function, *arguments)
    assert said in str(error)
    assert error.hint
    assert children.call(os.getpid, ())


def test_a_child_may_take_its_share_of_memory_and_no_more(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    """Half a gigabyte is given and two are not: the message names the limit and no damage."""
    monkeypatch.setattr(parent_side, "limit_bytes", lambda _: 1 << 30)
    assert children.call(allocate, (1 << 29,)) == 1 << 29
    error = _death(children, allocate, 2 << 30)
    assert str(error) == "the worker needed more than the 1.0 GiB of memory that it may use"
    assert "more memory" in error.hint


def test_a_child_that_died_idle_is_replaced(children: Children) -> None:
    """A child that was killed between two calls costs none of them."""
    first = children.call(os.getpid, ())
    os.kill(first, signal.SIGKILL)
    assert children.call(os.getpid, ()) != first


def test_a_child_that_cannot_begin_says_why(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    """An interpreter that fails at once, and one that is not there, are named; nothing is called damaged."""
    monkeypatch.setattr(starting, "_BOOT", "raise SystemExit('no such module')")
    assert "ended before it began: no such module" in str(_death(children, os.getpid))
    monkeypatch.setattr(sys, "executable", "/none/python")
    error = _death(children, os.getpid)
    assert str(error) == "cannot start a process to read it in: No such file or directory"


def test_a_call_over_its_time_is_ended_and_says_how_long_it_had(children: Children) -> None:
    """The message names the seconds that were waited, the hint the option that changes them."""
    error = _death(children, time.sleep, 600, deadline_s=0.5)
    assert str(error) == "the worker did not finish within 0.5 s"
    assert "--deadline" in error.hint


def test_children_outlive_the_thread_that_asked_for_them(children: Children) -> None:
    """Linux ends a child with the thread that started it: none of those that ask for children starts them itself."""
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(children.call(os.getpid, ())))
    asking.start()
    asking.join()
    time.sleep(0.1)
    assert children.call(os.getpid, ()) == found[0]


def test_children_are_let_go_by_count_and_by_memory(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    """After so many answers, or holding so much, a child gives way to a new one."""
    monkeypatch.setattr(parent_side, "RETIRED_CALLS", 2)
    pids = [children.call(os.getpid, ()) for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    monkeypatch.setattr(parent_side, "RETIRED_CALLS", 100)
    monkeypatch.setattr(parent_side, "RETIRED_BYTES", 1 << 20)
    assert children.call(os.getpid, ()) != children.call(os.getpid, ())


def test_children_start_from_daemonic_workers(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    """A process that multiprocessing lets have no children, as a Dask worker is, has these."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", value=True)  # type: ignore[attr-defined]
    assert children.call(os.getpid, ()) != os.getpid()


PARENT = """
import os, re, sys, threading, time
sys.path.insert(0, {place!r})
from rooflens.ingest.children.children import Children
children = Children("x")
print(children.call(os.getpid, ()), flush=True)
threading.Thread(target=children.call, args=(re.match, ("(a+)+$", "a" * 60 + "b"))).start()
time.sleep(600)
"""


def test_no_child_outlives_its_parent() -> None:
    """Parents without a main guard, killed by SIGTERM, SIGHUP and SIGKILL, leave no child, not one hung in C code."""
    script = PARENT.format(place=str(Path(rooflens.__file__).parents[1]))
    ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    parents = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in ends]  # noqa: S603
    pids = [int(parent.stdout.readline()) for parent in parents if parent.stdout]
    time.sleep(0.3)
    assert all(_is_alive(pid) for pid in pids)
    for parent, number in zip(parents, ends, strict=True):
        parent.send_signal(number)
        assert parent.wait(10) == -number
        assert parent.stdout is not None
        parent.stdout.close()
    end_s = time.monotonic() + 10
    while any(map(_is_alive, pids)) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not any(map(_is_alive, pids))


def _is_alive(pid: int) -> bool:
    """Return whether a process runs: one that has ended and waits for its new parent to notice does not."""
    try:
        return not re.search(r"\) [ZX] ", Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
    except OSError:
        return False


def test_memory_is_shared_out_and_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children get four fifths of the memory between them, each at least 2 GiB; a container's limit counts."""
    monkeypatch.setattr(memory, "physical_bytes", lambda: 100 << 30)
    assert memory.limit_bytes(4) == 20 << 30
    assert memory.limit_bytes(1000) == 2 << 30
    monkeypatch.setattr(memory, "physical_bytes", lambda: 1 << 30)
    assert memory.limit_bytes(8) == int(0.8 * (1 << 30))
    monkeypatch.undo()
    group = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", (str(group),))
    whole = memory.physical_bytes()
    group.write_text("max\n")
    assert memory.physical_bytes() == whole
    group.write_text("1073741824\n")
    assert memory.physical_bytes() == 1 << 30
