"""Run one case of a PyTorch workload: `python -m rooflens.workloads.torch_harness NAME --case CASE --iterations N`.

Prints one JSON line on stdout. Exits 0 if the result matches its reference, 1 if it does not, 3 if PyTorch or a GPU is
missing. What needs PyTorch is in `torch_measure`, so that this module can say what is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, RooflensError, UsageError
from rooflens.workloads.commands import check_torch
from rooflens.workloads.registry import find_workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from rooflens.model.cases import Case, Workload
    from rooflens.workloads.torch_measure import Measurement


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for.

    Attributes:
        toy: Use the shape that a CPU checks in a blink.
        profiled: Run the iterations a second time under PyTorch's profiler to see when kernels ran.
    """

    workload: str
    case: str | None
    iterations: int
    device: str
    toy: bool
    profiled: bool


@dataclass(frozen=True, slots=True)
class Result:
    """The JSON line; times and launches are totals over all iterations.

    Attributes:
        launches: Kernels that were launched; None where nobody counted.
        wall_ns: Host time of the iterations, with the device idle before and after.
        kernel_ns: Time in which the device was busy with at least one kernel or copy; None where nobody looked.
        max_relative_error: Largest difference from the reference over the largest value of the reference; None if the
            result holds a value that is not finite.
    """

    workload: str
    case: str
    iterations: int
    launches: int | None
    wall_ns: int
    kernel_ns: int | None
    max_relative_error: float | None
    tolerance: float
    ok: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the case that the arguments name, print its result and return the exit status."""
    options = parse_options(arguments)
    try:
        result = run_case(options)
    except RooflensError as error:
        sys.stderr.write(f"error: {error}\n" + (f"\nhint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    sys.stdout.write(json.dumps(dataclasses.asdict(result)) + "\n")
    return 0 if result.ok else 1


def parse_options(arguments: Sequence[str] | None) -> Options:
    """Read the command line; a wrong one ends the process with status 2."""
    parser = argparse.ArgumentParser(prog="python -m rooflens.workloads.torch_harness", description=__doc__)
    parser.add_argument("workload", metavar="NAME", help="folder of the workload")
    parser.add_argument("--case", help="case of the workload; the first one by default")
    parser.add_argument("--iterations", type=_positive, default=1, metavar="N", help="runs inside the range (1)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where to run (cuda)")
    parser.add_argument("--toy", action="store_true", help="take the toy shape of the case")
    parser.add_argument("--timing", choices=("wall", "profiler"), default="wall", help="profiler: look at kernels too")
    given = parser.parse_args(arguments)
    return Options(given.workload, given.case, given.iterations, given.device, given.toy, given.timing == "profiler")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def run_case(options: Options) -> Result:
    """Prepare, warm up, measure and check one case.

    Raises:
        InputError: There is no such workload or case.
        UsageError: The workload is not one of PyTorch's.
        EnvironmentMissingError: PyTorch, a GPU, or what the case needs of it is missing.
    """
    workload = find_workload(options.workload)
    case = workload.case(options.case)
    if workload.kind != "torch":
        raise UsageError(
            f"workload `{workload.name}` is not a PyTorch program", f"profile it: rooflens profile {workload.name}"
        )
    measurement = _measure(workload, case, options)
    return Result(
        workload=workload.name, case=case.name, iterations=options.iterations, **dataclasses.asdict(measurement)
    )


def _measure(workload: Workload, case: Case, options: Options) -> Measurement:
    check_torch(_import("torch").__version__)
    torch_measure = _import("rooflens.workloads.torch_measure")
    device = torch_measure.find_device(options.device, case.dtype)
    measurement: Measurement = torch_measure.measure(
        load_program(workload),
        case.toy if options.toy else case.parameters,
        case.dtype,
        torch_measure.Plan(device, options.iterations, options.profiled),
    )
    return measurement


def load_program(workload: Workload) -> ModuleType:
    """Import the program of a PyTorch workload."""
    return _import(f"rooflens.workloads.{workload.name}.{workload.program.removesuffix('.py')}")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise EnvironmentMissingError("PyTorch is not installed", "pip install torch") from error


if __name__ == "__main__":
    sys.exit(main())
