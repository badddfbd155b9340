"""The command line of a bundled workload: a compiled CUDA program, or the harness of the PyTorch ones."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflens.model.cases import Case, Workload

HARNESS = "rooflens.workloads.torch_harness"
_HARNESS = (sys.executable, "-m", HARNESS)
_WATCHING = ("--timing", "profiler")
CASE_VARIABLE = "ROOFLENS_CASE"
"""Variable by which a compiled program learns the `WORKLOAD.CASE` that it is to mark, as the harness does."""
_LIMITED = r"(?:timeout\s+(?:--\S+\s+)*\d+\s+)?"
"""What may stand before a program that must not hang."""
TORCH_SINCE = (2, 5)
_NEEDS = "attention with grouped heads, RMSNorm and products of fp8 as they are called since"
"""What older ones lack: `enable_gqa` came with 2.5, `rms_norm` with 2.4, and `_scaled_mm` took its scales so in 2.5."""


def command_for(
    workload: Workload, case: Case, iterations: int, binary: Path | None = None, *, watch_kernels: bool = False
) -> tuple[str, ...]:
    """Write the command that runs one case.

    Args:
        workload: The workload.
        case: One of its cases.
        iterations: How often it does its work inside the profiled range.
        binary: The compiled program of a CUDA workload.
        watch_kernels: Let a PyTorch workload time its kernels, too. Not under ncu: two profilers exclude each other.

    Raises:
        ValueError: A CUDA workload came without its program.
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
        iterations: How often each does its work.
        seconds: No case begins after this time; None for no limit.
    """
    return (*_HARNESS, *names, "--iterations", str(iterations), *_WATCHING, *_until(seconds))


def profiled_command(names: Sequence[str], seconds: float | None = None) -> tuple[str, ...]:
    """Write the command that runs cases of PyTorch workloads once each under ncu, in one process.

    A range `WORKLOAD.CASE` inside the one of all workloads tells their kernels apart; nothing is checked.
    """
    return (*_HARNESS, *names, "--iterations", "1", "--check", "0", "--mark-cases", *_until(seconds))


def _until(seconds: float | None) -> tuple[str, ...]:
    return () if seconds is None else ("--seconds", f"{seconds:.0f}")


def command_of_case(command_line: str, name: str) -> str:
    """Say of a command line that ran many cases what ran one of them, so that its part of the report is recognized.

    Args:
        command_line: The profiler's, of the harness or of a shell that runs compiled programs one after another.
        name: The case, as `WORKLOAD.CASE`.

    Returns:
        The line as it is where it does not name the case.
    """
    profiler, shell, script = command_line.partition(" sh -c ")
    marked = rf"(?:^|[\s;'\"]){CASE_VARIABLE}={re.escape(name)}\s+{_LIMITED}([^;'\"]+)"
    found = re.search(marked, script) if shell else None
    if found is not None:
        return f"{profiler} {found[1].strip()}"
    words = command_line.split(" ")
    start = next((at + 2 for at, pair in enumerate(pairwise(words)) if pair == ("-m", HARNESS)), len(words))
    end = next((at for at in range(start, len(words)) if words[at].startswith("--")), len(words))
    return " ".join([*words[:start], name, *words[end:]]) if name in words[start:end] else command_line


def require_torch() -> None:
    """Check, without importing it, that a PyTorch is installed which the bundled workloads run on.

    Raises:
        EnvironmentMissingError: There is none, or it is too old.
    """
    if importlib.util.find_spec("torch") is None:
        raise EnvironmentMissingError("PyTorch is not installed", "pip install torch")
    from importlib import metadata  # noqa: PLC0415 - loads what only a collection needs

    try:
        check_torch(metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return  # one that was built here and has no record: the workload's own process looks again


def check_torch(version: str) -> None:
    """Check that the bundled workloads run on a release of PyTorch.

    Args:
        version: As PyTorch states it: `2.4.1+cu121`; one that does not begin like a release counts as new enough.

    Raises:
        EnvironmentMissingError: It is too old.
    """
    release = re.match(r"(\d+)\.(\d+)", version)
    if release is not None and (int(release[1]), int(release[2])) < TORCH_SINCE:
        since = "{}.{}".format(*TORCH_SINCE)
        message = f"PyTorch {version} is too old for the bundled workloads: they need {since} ({_NEEDS})"
        raise EnvironmentMissingError(message, f"pip install 'torch>={since}'; your own programs are profiled with any")
