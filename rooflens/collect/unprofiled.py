"""Run a program without the profiler: whether it works, how long it takes, and how much of that is gaps.

ncu runs kernels one at a time, so its reports cannot show launch gaps: these need a run without ncu, whose figures are
kept beside the report as `NAME.unprofiled.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflens.collect.log import run_to_end
from rooflens.errors import EnvironmentMissingError, ProgramError
from rooflens.model.unprofiled import Unprofiled
from rooflens.processes import last_words, signal_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflens.collect.log import Progress

_MISSING_STATUS = 3
"""Exit status of a bundled workload if PyTorch or a GPU is missing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A successful run of a program."""

    wall_ns: int
    stdout: str


def run_program(
    argv: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    doing: str = "running",
) -> Ran:
    """Run a program once to its end, with empty standard input.

    Raises:
        EnvironmentMissingError: The program cannot be started.
        ProgramError: The program failed, or did not end in time.
        StoppedError: Ctrl-C or a like signal.
    """
    finished, stdout, stderr = run_to_end(argv, timeout_s, on_progress, doing)
    if finished.timed_out:
        raise ProgramError(
            f"the program did not end within {timeout_s:g} s, without the profiler",
            "give a longer --timeout, or run a smaller problem",
        )
    if finished.status != 0:
        message = _failure(finished.status, stdout, stderr)
        raise ProgramError(message, "this is the program's own failure: ncu has not run yet", finished.status)
    return Ran(finished.wall_ns, stdout)


def run_workload(
    argv: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Unprofiled:
    """Run a bundled workload, which prints its time on its last line.

    Raises:
        EnvironmentMissingError: PyTorch or a GPU is missing.
        ProgramError: The workload failed.
        StoppedError: Ctrl-C or a like signal.
    """
    try:
        ran = run_program(argv, timeout_s, on_progress)
    except ProgramError as error:
        if error.status == _MISSING_STATUS:
            raise EnvironmentMissingError(str(error), "`rooflens doctor` says what is missing") from error
        raise
    return parse_workload(ran)


def run_cases(
    argv: Sequence[str],
    timeout_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> dict[str, Unprofiled]:
    """Run cases of a bundled workload in one process; return their figures by case name.

    Cases that failed, gave a wrong result or were not reached are left out.

    Raises:
        EnvironmentMissingError: The program cannot be started.
        StoppedError: Ctrl-C or a like signal.
    """
    _, stdout, _ = run_to_end(argv, timeout_s, on_progress, "running")
    measured = parse_cases(stdout)
    return {name.partition(".")[2]: one for name, one in measured.items() if one is not None}


def parse_cases(stdout: str) -> dict[str, Unprofiled | None]:
    """Parse the lines that bundled workloads print for their cases, by `WORKLOAD.CASE`; None for a wrong result."""
    lines = [_object(line) for line in stdout.splitlines()]
    return {
        f"{values.get('workload')}.{values['case']}": _workload_figures(values) if values.get("ok") is True else None
        for values in lines
        if isinstance(values.get("case"), str) and isinstance(values.get("wall_ns"), int)
    }


def parse_workload(ran: Ran) -> Unprofiled:
    """Parse the JSON line of a bundled workload; without the line only the wall time is known."""
    for line in reversed(ran.stdout.splitlines()):
        values = _object(line)
        if isinstance(values.get("wall_ns"), int):
            return _workload_figures(values)
    return Unprofiled(ran.wall_ns)


def _workload_figures(values: dict[str, Any]) -> Unprofiled:
    """Read a bundled workload's figures for a case."""
    return Unprofiled(
        wall_ns=values["wall_ns"],
        kernel_ns=_count(values.get("kernel_ns")),
        launches=_count(values.get("launches")),
        source="workload",
        iterations=_count(values.get("iterations")) or 1,
        cublas_ns=_count(values.get("cublas_ns")),
        cold_ns=_count(values.get("cold_ns")),
    )


def _object(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _count(value: object) -> int | None:
    return round(value) if isinstance(value, int | float) and value > 0 else None


def _failure(status: int | None, stdout: str, stderr: str) -> str:
    how = f"status {status}" if status is None or status >= 0 else signal_name(-status)
    said = last_words(stderr) or last_words(stdout)
    return f"the program failed with {how}, without the profiler" + (f": {said}" if said else "")
