"""The command line of a bundled workload: a compiled CUDA program, or the harness of the PyTorch ones."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from pathlib import Path

    from rooflens.model.cases import Case, Workload

HARNESS = "rooflens.workloads.torch_harness"


def command_for(
    workload: Workload, case: Case, iterations: int, binary: Path | None = None, *, watch_kernels: bool = False
) -> tuple[str, ...]:
    """Write the command that runs one case.

    Args:
        workload: The workload.
        case: One of its cases.
        iterations: How often it does its work inside the profiled range.
        binary: The compiled program of a CUDA workload.
        watch_kernels: Let a PyTorch workload look at its kernels too. Not under ncu: two profilers exclude each other.

    Raises:
        ValueError: A CUDA workload came without its program.
    """
    if workload.kind == "torch":
        watching = ("--timing", "profiler") if watch_kernels else ()
        case_options = ("--case", case.name, "--iterations", str(iterations))
        return (sys.executable, "-m", HARNESS, workload.name, *case_options, *watching)
    if binary is None:
        raise ValueError(f"`{workload.name}` is compiled: its program is needed")
    parameters = (part for name, value in case.parameters.items() for part in (f"--{name}", str(value)))
    return (str(binary), *parameters, "--iterations", str(iterations))


def require_torch() -> None:
    """Check that PyTorch is installed, without importing it.

    Raises:
        EnvironmentMissingError: It is not.
    """
    if importlib.util.find_spec("torch") is None:
        raise EnvironmentMissingError("PyTorch is not installed", "pip install torch")
