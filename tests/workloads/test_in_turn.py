"""Compiled cases in turn: each with its name, none that would not end in time, and none that costs the others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rooflens.processes import Captured
from rooflens.workloads import in_turn
from rooflens.workloads.commands import CASE_VARIABLE, in_turn_command
from rooflens.workloads.in_turn import LastStart, run_in_turn


class Clock:
    """A clock that only programs move."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def program(self, argv: Sequence[str], limit_s: float) -> Captured:
        """Take the seconds that are the command's last word; a program over its limit is ended."""
        wanted_s = float(argv[-1])
        self.now_s += min(wanted_s, limit_s)
        return Captured(None if wanted_s > limit_s else 0, f"{os.environ[CASE_VARIABLE]}\n", "")


def runs(seconds: float | None, *each_s: float) -> tuple[int, int]:
    """Run programs that take these times; return the exit status and how many were begun."""
    clock = Clock()
    commands = [(f"case {number}", [str(one_s)]) for number, one_s in enumerate(each_s)]
    begun: list[Sequence[str]] = []

    def run(argv: Sequence[str], limit_s: float) -> Captured:
        begun.append(argv)
        return clock.program(argv, limit_s)

    status = run_in_turn(commands, LastStart(seconds, clock), run)
    assert seconds is None or len(begun) == 1 or clock.now_s <= max(seconds, sum(each_s[: len(begun)]))
    return status, len(begun)


def test_none_begins_that_would_not_end_in_time() -> None:
    """Of programs that take 6.6 s each, eight fit into 55 s, and the ninth is not begun; the first always is."""
    assert runs(55, *(6.6,) * 12) == (0, 8)
    assert runs(5, *(6.6,) * 3) == (0, 1)
    assert runs(None, *(6.6,) * 3) == (0, 3)
    assert runs(20, 2, 9, 2, 2) == (0, 3)  # the longest so far is what the next may take: 13 + 9 > 20


def test_one_that_hangs_costs_itself() -> None:
    """It is ended after half a minute, and says nothing about how long the next may take."""
    assert runs(40, 2, 1000, 2, 2) == (0, 4)
    assert runs(40, 1000) == (1, 1)


def test_what_each_took_and_what_was_left_out_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs learn their case's name, their output is passed on, and the rest is on stderr."""
    monkeypatch.setenv(CASE_VARIABLE, "")
    assert runs(50, 20, 1000, 6.6) == (0, 2)
    said = capsys.readouterr()
    assert said.out == "case 0\ncase 1\n"
    left_out = "case 2: left out: 0.0 s are left, and one took 20.0 s"
    assert said.err.splitlines() == ["case 0: 20.00 s", "case 1: ended after 30 s", left_out]


def test_the_command_runs_programs_with_their_names(tmp_path: Path) -> None:
    """A program that fails or cannot be started costs itself; one success is enough for exit status 0."""
    tell = (sys.executable, "-ISc", f"import os; print(os.environ['{CASE_VARIABLE}'])")
    fails = (sys.executable, "-ISc", "raise SystemExit(7)")
    programs = {"saxpy.n16": tell, "fma.iters_8": fails, "dot.n28": (str(tmp_path / "none"),), "saxpy.n28": tell}
    done = subprocess.run(in_turn_command(programs, 60), capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.returncode, done.stdout) == (0, "saxpy.n16\nsaxpy.n28\n")
    assert "fma.iters_8: 0." in done.stderr
    assert ", status 7\n" in done.stderr
    assert "cannot be started" in done.stderr
    del programs["saxpy.n16"], programs["saxpy.n28"]
    done = subprocess.run(in_turn_command(programs), capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert (done.returncode, done.stdout) == (7, "")


def test_the_line_is_read_as_it_is_written() -> None:
    """The name of a case separates the commands, so that no word needs quotes."""
    programs = {"a.b": ["/x/a", "--n", "1"], "c.d": ["/x/c"]}
    assert in_turn.parse(in_turn_command(programs, 55)[3:]) == (55.0, list(programs.items()))
    assert in_turn.parse(in_turn_command(programs)[3:]) == (None, list(programs.items()))
