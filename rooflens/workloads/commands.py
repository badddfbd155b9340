"""The command line of a bundled workload: a compiled CUDA program, or the harness of PyTorch workloads."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rooflens.model.cases import Case, Workload

HARNESS, IN_TURN = "rooflens.workloads.torch_harness", "rooflens.workloads.in_turn"
_HARNESS = (sys.executable, "-m", HARNESS)
_IN_TURN = (sys.executable, "-m", IN_TURN)
_WATCHING = ("--timing", "profiler")
CASE_VARIABLE = "ROOFLENS_CASE"
"""Variable that tells a compiled program its `WORKLOAD.CASE` to mark; the harness does that itself."""
TORCH_SINCE = (2, 5)
_NEEDS = "attention with grouped heads, RMSNorm and products of fp8 as they are called since"
"""Missing from older releases: `enable_gqa` (2.5), `rms_norm` (2.4), and the scales of `_scaled_mm` as of 2.5."""


def command_for(
    workload: Workload, case: Case, iterations: int, binary: Path | None = None, *, watch_kernels: bool = False
) -> tuple[str, ...]:
    """Write the command that runs a case.

    Args:
        workload: The workload.
        case: A case of the workload.
        iterations: Repetitions of its work inside the profiled range.
        binary: The compiled program of a CUDA workload.
        watch_kernels: Let a PyTorch workload also time its kernels; not under ncu, as two profilers exclude each other.

    Raises:
        ValueError: The program of a CUDA workload is missing.
    """
    if workload.kind == "torch":
        named = (workload.name, "--case", case.name)
        return (*_HARNESS, *named, "--iterations", str(iterations), *(_WATCHING if watch_kernels else ()))
    if binary is None:
        raise ValueError(f"`{workload.name}` is compiled: its program is needed")
    parameters = (part for name, value in case.parameters.items() for part in (f"--{name}", str(value)))
    return (str(binary), *parameters, "--iterations", str(iterations))


def measuring_command(names: Sequence[str], iterations: int, seconds: float | None = None) -> tuple[str, ...]:
    """Write the command that times and checks cases of PyTorch workloads one after another in one process.

    Args:
        names: The cases, as `WORKLOAD.CASE`.
        iterations: Repetitions of each case's work.
        seconds: No case begins that may not end within this time; None for no limit.
    """
    return (*_HARNESS, *names, "--iterations", str(iterations), *_WATCHING, *_until(seconds))


def profiled_command(names: Sequence[str], seconds: float | None = None) -> tuple[str, ...]:
    """Write the command that runs cases of PyTorch workloads once each under ncu, in one process.

    Inside the range of all workloads, a range `WORKLOAD.CASE` marks each case's kernels; results are not checked.
    """
    return (*_HARNESS, *names, "--iterations", "1", "--check", "0", "--mark-cases", *_until(seconds))


def in_turn_command(commands: Mapping[str, Sequence[str]], seconds: float | None = None) -> tuple[str, ...]:
    """Write the command that runs compiled programs one after another.

    Args:
        commands: Name of each case, `WORKLOAD.CASE`, and the command of its program.
        seconds: As for `measuring_command`.
    """
    marked = (part for name, argv in commands.items() for part in (f"{CASE_VARIABLE}={name}", *argv))
    return (*_IN_TURN, *_until(seconds), *marked)


def _until(seconds: float | None) -> tuple[str, ...]:
    return () if seconds is None else ("--seconds", f"{seconds:.0f}")


def command_of_case(command_line: str, name: str) -> str:
    """Reduce a command line of many cases to that of one case, so that its part of the report is recognized.

    Args:
        command_line: The profiler's command line, for the harness or for compiled programs in turn.
        name: The case, as `WORKLOAD.CASE`.

    Returns:
        The line unchanged if it does not name the case.
    """
    profiler, in_turn, programs = command_line.partition(f" -m {IN_TURN} ")
    if in_turn:
        own = programs.partition(f"{CASE_VARIABLE}={name} ")[2].partition(f" {CASE_VARIABLE}=")[0]
        return f"{profiler.rpartition(' ')[0]} {own.strip()}" if own else command_line
    words = command_line.split(" ")
    start = next((at + 2 for at, pair in enumerate(pairwise(words)) if pair == ("-m", HARNESS)), len(words))
    end = next((at for at in range(start, len(words)) if words[at].startswith("--")), len(words))
    return " ".join([*words[:start], name, *words[end:]]) if name in words[start:end] else command_line


def require_torch() -> None:
    """Check, without importing it, that the installed PyTorch can run the bundled workloads.

    Raises:
        EnvironmentMissingError: PyTorch is missing or too old.
    """
    if importlib.util.find_spec("torch") is None:
        raise EnvironmentMissingError("PyTorch is not installed", "pip install torch")
    from importlib import metadata  # noqa: PLC0415 - loads what only a collection needs

    try:
        check_torch(metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return  # a local build without metadata: the workload's own process checks again


def check_torch(version: str) -> None:
    """Check that a release of PyTorch can run the bundled workloads.

    Args:
        version: As PyTorch states it: `2.4.1+cu121`; a version without a release number counts as new enough.

    Raises:
        EnvironmentMissingError: The release is too old.
    """
    release = re.match(r"(\d+)\.(\d+)", version)
    if release is not None and (int(release[1]), int(release[2])) < TORCH_SINCE:
        since = "{}.{}".format(*TORCH_SINCE)
        message = f"PyTorch {version} is too old for the bundled workloads: they need {since} ({_NEEDS})"
        raise EnvironmentMissingError(message, f"pip install 'torch>={since}'; your own programs are profiled with any")
