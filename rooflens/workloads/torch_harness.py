"""Run cases of PyTorch workloads: `python -m rooflens.workloads.torch_harness NAME --case CASE --iterations N`.

Cases of several workloads are `NAME.CASE NAME.CASE ...`, in one process: PyTorch is imported once. Prints one JSON line
on stdout for each case. Exits 0 if the results match their references, 1 if one does not, 3 if PyTorch, Triton or a GPU
is missing; of several cases the first that fails decides, and the others run. Under a profiler, with `--mark-cases`,
one that ran is enough for 0: the report of those that ran is good. What needs PyTorch is in `torch_measure`, so that
this module can say what is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
import traceback
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, RooflensError, UsageError
from rooflens.workloads.commands import check_torch
from rooflens.workloads.in_turn import LastStart
from rooflens.workloads.registry import find_workload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from rooflens.model.cases import Case, Workload
    from rooflens.workloads.torch_measure import Measurement


_PACKAGES = {"torch": "PyTorch", "triton": "Triton"}
"""Packages that workloads are written with, and their names."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named cases, print their results and return the exit status."""
    options = parse_options(arguments)
    last_start = LastStart(options.seconds)
    try:
        cases = _cases(options)
        check_torch(_import("torch").__version__)
    except RooflensError as error:
        return _say(error)
    statuses = []
    for workload, case in cases:
        where = "" if len(cases) == 1 else f"{workload.name}.{case.name}: "
        if refusal := last_start.refusal:
            sys.stderr.write(f"{where}{refusal}\n")
            continue
        last_start.begin()
        statuses.append(_run_case(workload, case, options, where))
        last_start.end()
    return 0 if options.mark_cases and 0 in statuses else next(filter(None, statuses), 0)


def _cases(options: argparse.Namespace) -> list[tuple[Workload, Case]]:
    """List the named cases.

    Raises:
        UnknownNameError: The workload or case does not exist.
        UsageError: A workload is compiled, or cases are given in both ways.
    """
    if options.cases and (len(options.names) > 1 or "." in options.names[0]):
        raise UsageError("--case is for one workload", "name cases of several as NAME.CASE")
    found = []
    for name in options.names:
        workload_name, _, case_name = name.partition(".")
        workload = find_workload(workload_name)
        if workload.kind != "torch":
            hint = f"profile it: rooflens profile {workload.name}"
            raise UsageError(f"workload `{workload.name}` is not a PyTorch program", hint)
        found += [(workload, workload.case(case)) for case in options.cases or [case_name or None]]
    return found


def _say(error: RooflensError, where: str = "") -> int:
    """Print an error and return its exit status."""
    sys.stderr.write(f"error: {where}{error}\n" + (f"\nhint: {error.hint}\n" if error.hint else ""))
    return error.exit_code


def _run_case(workload: Workload, case: Case, options: argparse.Namespace, where: str) -> int:
    """Run one case, print its result and return its exit status."""
    try:
        measurement = _measure(workload, case, options)
    except RooflensError as error:
        return _say(error, where)
    except Exception:  # noqa: BLE001 - what one case dies of must not cost the others
        sys.stderr.write(f"error: {where}{traceback.format_exc()}")
        return 1
    named = {"workload": workload.name, "case": case.name, "iterations": options.iterations}
    sys.stdout.write(json.dumps(named | dataclasses.asdict(measurement)) + "\n")
    sys.stdout.flush()  # a later case may crash the process
    return 0 if measurement.ok else 1


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; errors end the process with status 2."""
    parser = argparse.ArgumentParser(prog="python -m rooflens.workloads.torch_harness", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="+", help="folder of a workload, or NAME.CASE")
    case_help = "case of the one workload, may be repeated; the first one by default"
    parser.add_argument("--case", action="append", dest="cases", default=[], help=case_help)
    parser.add_argument("--iterations", type=_positive, default=1, metavar="N", help="runs inside the range (1)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="where to run (cuda)")
    parser.add_argument("--toy", action="store_true", help="take the toy shape of the case")
    parser.add_argument("--timing", choices=("wall", "profiler"), default="wall", help="profiler: look at kernels too")
    parser.add_argument("--check", type=int, choices=(0, 1), default=1, help="compare with the reference (1)")
    parser.add_argument(
        "--mark-cases", action="store_true", help="mark each case with a range NAME.CASE of its own, too"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="begin no case that may not end within this time")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _measure(workload: Workload, case: Case, options: argparse.Namespace) -> Measurement:
    torch_measure = _import("rooflens.workloads.torch_measure")
    device = torch_measure.find_device(options.device, case.dtype)
    measurement: Measurement = torch_measure.measure(
        load_program(workload),
        case.toy if options.toy else case.parameters,
        case.dtype,
        torch_measure.MeasurePlan(
            device,
            options.iterations,
            profiled=options.timing == "profiler",
            checked=bool(options.check),
            case_range=f"{workload.name}.{case.name}" if options.mark_cases else None,
        ),
    )
    return measurement


def load_program(workload: Workload) -> ModuleType:
    """Import the program of a PyTorch workload."""
    return _import(f"rooflens.workloads.{workload.name}.{workload.program.removesuffix('.py')}")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(error.name or "")
        if package is None:
            raise
        raise EnvironmentMissingError(f"{package} is not installed", f"pip install {error.name}") from error


if __name__ == "__main__":
    sys.exit(main())
