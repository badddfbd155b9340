"""A call in a child process gives its answer or an error that says what happened, however the child ends."""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rooflens
from rooflens.errors import InputError
from rooflens.ingest.reports.child import in_child


def give(value: object) -> object:
    """Return the arguments."""
    return value


def die_of_memory_unsaid() -> None:
    """Abort like C++ without memory."""
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def refuse() -> None:
    """Refuse a file with a cause that cannot be pickled."""
    raise InputError("damaged: on purpose", "none") from LookupError(lambda: None)


def fail() -> None:
    """Fail like a programming mistake."""
    raise ZeroDivisionError("on purpose")


def allocate(size: int) -> int:
    """Allocate memory; return how much."""
    return len(bytearray(size))


def say_much() -> str:
    """Print to the answer's stream, like native libraries."""
    ctypes.CDLL(None).puts(b"x" * 100_000)
    ctypes.CDLL(None).fflush(None)
    print("y" * 100_000, flush=True)  # noqa: T201 - what is tested
    return "whole"


def pickle_fails() -> object:
    """Return something that cannot be pickled."""
    return lambda: None


def folder_of_the_package() -> str:
    """Return the path that the package is imported from."""
    return str(rooflens.__file__)


def rewrite(path: Path) -> int:
    """Rewrite a file while it is read, like `ncu -f -o`."""
    return path.write_bytes(b"B" * 100)


def tear(path: Path) -> None:
    """Fail like a reader that sees half of a rewritten file."""
    path.write_bytes(b"B")
    raise InputError("damaged: cut off", "none")


def rename_over(path: Path) -> None:
    """Replace a file by another of the same size while it is read."""
    path.with_name("new").write_bytes(path.read_bytes())
    path.with_name("new").replace(path)


def error_of(function: object, *arguments: object, deadline_s: float = 60.0) -> InputError:
    """Return the error of a call that must fail."""
    with pytest.raises(InputError) as caught:
        in_child(function, *arguments, deadline_s=deadline_s)  # type: ignore[arg-type]
    assert caught.value.hint
    return caught.value


def test_a_call_is_answered_by_another_process_of_the_same_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of the same name in the current folder is not imported."""
    (tmp_path / "rooflens").mkdir()
    (tmp_path / "rooflens" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    assert in_child(give, {"a": [1, None]}) == {"a": [1, None]}
    assert in_child(os.getpid) != os.getpid()
    assert in_child(folder_of_the_package) == rooflens.__file__


def test_what_is_printed_in_a_child_is_not_its_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """Printing, by Python or a native library, does not reach the answer or our own stdout."""
    assert in_child(say_much) == "whole"
    assert capfd.readouterr() == ("", "")


def test_a_refusal_keeps_its_message_and_hint() -> None:
    """An input error crosses the process boundary completely, without its cause."""
    error = error_of(refuse)
    assert (str(error), error.hint) == ("damaged: on purpose", "none")


def test_a_bug_says_where_it_is() -> None:
    """An exception not due to damage is reported with its place; so is an answer that cannot be sent."""
    error = error_of(fail)
    assert f"ZeroDivisionError at {Path(__file__).name}:" in str(error)
    assert "bug" in error.hint
    assert "pickle" in str(error_of(pickle_fails)).lower()


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (os.abort, (), "damaged: NVIDIA's reader ended with SIGABRT"),
        (os._exit, (3,), "damaged: NVIDIA's reader ended with status 3"),
        (signal.raise_signal, (signal.SIGKILL,), "was killed (SIGKILL), as the system does when memory runs out"),
        (die_of_memory_unsaid, (), "NVIDIA's reader needed more memory than it may use"),
        (allocate, (1 << 50,), "reading it needs more memory than there is"),
    ],
)
def test_a_death_is_told_as_it_was(function: object, arguments: tuple[object, ...], said: str) -> None:
    """A child that aborts, exits, is killed or runs out of memory gives a distinct error for each."""
    assert said in str(error_of(function, *arguments))


def test_a_child_that_hangs_is_ended() -> None:
    """The error names the seconds waited, and the hint how to change them."""
    started_s = time.monotonic()
    error = error_of(time.sleep, 600, deadline_s=1.0)
    assert str(error) == "NVIDIA's reader did not finish within 1 s"
    assert "ROOFLENS_DEADLINE_S" in error.hint
    assert time.monotonic() - started_s < 30


def test_a_child_has_no_pandas() -> None:
    """In a child, pandas counts as not installed: its import takes longer than most calls."""
    assert "pandas is kept out" in str(error_of(importlib.import_module, "pandas"))


def test_a_child_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing interpreter is named, and nothing is called damaged."""
    monkeypatch.setattr(sys, "executable", "/none/python")
    assert str(error_of(os.getpid)) == "cannot start a process to read it in: No such file or directory"


def test_children_start_from_daemonic_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may have no multiprocessing children, such as a Dask worker, has these."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", value=True)  # type: ignore[attr-defined]
    assert in_child(os.getpid) != os.getpid()


PARENT = """
import os, re, sys
sys.path.insert(0, {place!r})
from rooflens.ingest.reports.child import in_child
from parent_of_children import hang
in_child(hang)
"""

HANG = """
import os, re
def hang():
    os.write(2, b"started %d\\n" % os.getpid())
    with open({file!r}, "w") as file:
        file.write(str(os.getpid()))
    re.match("(a+)+$", "a" * 60 + "b")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_child_outlives_its_parent(tmp_path: Path, number: int) -> None:
    """A killed parent without a main guard leaves no child, not even one that hangs in C code."""
    (tmp_path / "parent_of_children.py").write_text(HANG.format(file=str(tmp_path / "pid")))
    (tmp_path / "script.py").write_text(PARENT.format(place=str(Path(rooflens.__file__).parents[1])))
    parent = subprocess.Popen([sys.executable, str(tmp_path / "script.py")])  # noqa: S603 - our own script
    end_s = time.monotonic() + 30
    while not (pid := _read(tmp_path / "pid")) and time.monotonic() < end_s:
        time.sleep(0.02)
    parent.send_signal(number)
    assert parent.wait(10) == -number
    while _is_alive(int(pid)) and time.monotonic() < end_s:
        time.sleep(0.02)
    assert not _is_alive(int(pid))


def _read(file: Path) -> str:
    return file.read_text(encoding="ascii") if file.exists() else ""


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return not re.search(r"\) [ZX] ", Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
    except OSError:
        return False
