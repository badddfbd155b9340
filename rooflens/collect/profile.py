"""Carry out the plan of a collection: a trial, the program without ncu, then with ncu; keep files beside the report.

Standard library only: it runs on bare GPU machines.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rooflens.collect.command import REGEX, can_profile_one_of_each
from rooflens.collect.nsys import trace
from rooflens.collect.plan import UNPROFILED_ITERATIONS, replay_hinted
from rooflens.collect.ranks import NO_COMMUNICATION
from rooflens.collect.run import collect
from rooflens.collect.torch_trace import count_launches
from rooflens.collect.trial import check_machine
from rooflens.collect.unprofiled import run_cases, run_program, run_workload
from rooflens.errors import EnvironmentMissingError, InputError, ProgramError, RooflensError
from rooflens.ingest.reports.splitting import split_report
from rooflens.ingest.reports.unpacking import sidecar
from rooflens.ingest.reports.unprofiled import write_unprofiled
from rooflens.ingest.timelines.nsys import find_nsys
from rooflens.model.keys import function_of
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.unprofiled import Unprofiled
from rooflens.workloads.commands import command_of_case, measuring_command
from rooflens.workloads.registry import RANGE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rooflens.collect.log import Progress
    from rooflens.collect.plan import Plan
    from rooflens.collect.run import Collected
    from rooflens.model.cases import Case, Workload
    from rooflens.model.unprofiled import LaunchCount


@dataclass(frozen=True, slots=True)
class Recording:
    """The outcome of a plan.

    Attributes:
        plan: The plan as it was carried out.
        unprofiled: The run without ncu; None if it was left out.
        collected: ncu's report, with its warnings.
        starts: Starts of the program; None if ncu started it for each pass.
        lost: A sentence about what could not be kept beside the report; empty if nothing was lost.
    """

    plan: Plan
    unprofiled: Unprofiled | None
    collected: Collected
    starts: int | None
    lost: str = ""


def profile(  # noqa: PLR0913 - each is one thing of how it is carried out
    plan: Plan,
    on_progress: Callable[[Progress], None] = lambda _: None,
    *,
    run_first: bool = True,
    unprofiled: Unprofiled | None = None,
    try_first: bool = True,
    on_first_run: Callable[[Plan, Unprofiled | None], None] = lambda *_: None,
) -> Recording:
    """Carry out a plan: check the machine, run the program without ncu, then with ncu; keep the first run's figures.

    Args:
        plan: What to run.
        on_progress: Called with the progress of a run.
        run_first: False leaves out the run without ncu.
        unprofiled: Figures from a timeline; they also replace the run without ncu.
        try_first: False leaves out the checks before the program.
        on_first_run: Called between the two runs with ncu's plan and the first run's figures.

    Raises:
        ProgramError: The program failed without ncu.
        EnvironmentMissingError, InputError, StoppedError: As `check_machine`, `run_unprofiled` and `ncu.run.collect`
            raise them.
    """
    with replay_hinted(plan.request.target):
        if try_first:
            plan = replace(plan, warnings=(*plan.warnings, *check_machine(plan, on_progress)))
        if unprofiled is None and run_first:
            unprofiled = run_unprofiled(plan, on_progress)
        if unprofiled is not None:
            plan = choose_launches(plan, unprofiled)
        on_first_run(plan, unprofiled)
        collected = _run_ncu(plan, unprofiled, on_progress)
        lost = keep_unprofiled(collected.report, unprofiled)
        starts = None if "app" in plan.collection.replay_mode else plan.limit.starts
        return Recording(plan, unprofiled, collected, starts, lost)


def measure_cases(
    workload: Workload,
    cases: Sequence[Case],
    limit_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> dict[str, Unprofiled]:
    """Run cases of a PyTorch workload without ncu in one process, so that PyTorch is imported once.

    Args:
        workload: The workload.
        cases: The cases, in execution order.
        limit_s: Seconds per case; None for no limit.
        on_progress: Called with the progress of the run.

    Returns:
        Figures by case name. A failed case is left out: run alone, it gives the reason.

    Raises:
        EnvironmentMissingError: The program cannot be started.
        StoppedError: Ctrl-C, SIGTERM or SIGHUP.
    """
    command = measuring_command([f"{workload.name}.{case.name}" for case in cases], UNPROFILED_ITERATIONS)
    return run_cases(command, None if limit_s is None else limit_s * len(cases), on_progress)


def profile_cases(
    plan: Plan,
    places: Mapping[str, Path],
    unprofiled: Mapping[str, Unprofiled],
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Collected, tuple[Path, ...], str]:
    """Run cases under one ncu, and split its report into a report per case, each with its un-profiled run beside it.

    Args:
        plan: As `plan_cases` makes it.
        places: Report path by `WORKLOAD.CASE`.
        unprofiled: Figures without ncu by `WORKLOAD.CASE`, as far as there are any.
        on_progress: Called with the progress of the run.

    Returns:
        ncu's result, the reports that were written, and a sentence about what could not be kept beside them. A case
        that failed or launched nothing has no report.

    Raises:
        EnvironmentMissingError, InputError, StoppedError: As `ncu.run.collect` raises them.
    """
    collected = collect(plan.ncu, plan.collection, plan.limit.left_s(), on_progress)
    whole = collected.report
    found = split_report(
        whole, RANGE_NAME, lambda name: places.get(name, whole.with_name(f"{name}.ncu-rep")), command_of_case
    )
    written, lost = [], ""
    for name, report in places.items():
        if found.get(name):
            lost = keep_unprofiled(report, unprofiled.get(name)) or lost
            written.append(report)
    if written:
        whole.unlink()
    return collected, tuple(written), lost


def run_unprofiled(plan: Plan, on_progress: Callable[[Progress], None]) -> Unprofiled:
    """Run the program once without ncu, and once more under nsys or PyTorch's profiler, to count its kernels.

    A bundled workload measures itself in the first run.

    Raises:
        ProgramError: The program failed.
        EnvironmentMissingError: The program cannot be started, or a workload's requirement is missing.
        StoppedError: Ctrl-C, SIGTERM or SIGHUP.
    """
    target = plan.request.target
    plan.limit.starts += 1
    try:
        if target.workload is not None:
            return run_workload(plan.program, plan.limit.left_s(), on_progress)
        ran = run_program(plan.program, plan.limit.left_s(), on_progress)
    except (ProgramError, EnvironmentMissingError) as error:
        error.is_of_program = True
        raise
    left_s = plan.limit.left_s()
    half_s = None if left_s is None else left_s / 2  # counts are nice to have; the profile matters
    if target.launcher is not None:  # all ranks would be counted together
        return Unprofiled(ran.wall_ns)
    if nsys := find_nsys():
        plan.limit.starts += 1
        return trace(nsys, plan.program, half_s, on_progress) or Unprofiled(ran.wall_ns)
    counts = count_launches(plan.program, half_s, on_progress)
    plan.limit.starts += counts is not None
    if not counts:
        return Unprofiled(ran.wall_ns)
    return Unprofiled(ran.wall_ns, None, sum(one.count for one in counts), "trace", launch_counts=counts)


def choose_launches(plan: Plan, unprofiled: Unprofiled) -> Plan:
    """Profile each kernel once per shape if the un-profiled run had more launches than the limit.

    Otherwise ncu profiles the first launches, up to the limit.
    """
    collection, counts = plan.collection, unprofiled.launch_counts
    is_more = (unprofiled.launches or 0) > collection.max_launches * unprofiled.iterations
    if not counts or not is_more or not can_profile_one_of_each(collection):
        return plan
    kernel = collection.kernel
    if kernel in {None, NO_COMMUNICATION}:
        kernel = _longest(counts, collection.max_launches) or kernel
    return replace(plan, collection=replace(collection, one_of_each=True, kernel=kernel))


def _longest(counts: Sequence[LaunchCount], most: int) -> str | None:
    """Return a filter for the longest kernels, up to a number of shapes; None if all fit."""
    shapes: Counter[str] = Counter()
    times_ns: Counter[str] = Counter()
    for entry in counts:
        if not waits_for_ranks(entry.name):
            shapes[function_of(entry.name)] += 1
            times_ns[function_of(entry.name)] += entry.summed_ns
    left = most
    names: list[str] = []
    for name, _ in times_ns.most_common():
        left -= shapes[name]
        if left >= 0 or not names:
            names.append(name)
    if len(names) == len(shapes):
        return None
    return f"{REGEX}^({'|'.join(re.escape(name) for name in names if ':' not in name)})$"


def _run_ncu(plan: Plan, unprofiled: Unprofiled | None, on_progress: Callable[[Progress], None]) -> Collected:
    """Run ncu; if it fails, keep any un-profiled run beside what exists of a report."""
    left_s = plan.limit.left_s()
    if left_s == 0:
        what = f"no time is left for ncu of the {plan.limit.total_s:g} s: the run without it took them all"
        raise InputError(what, "give a longer --timeout, or leave that run out with --no-unprofiled")
    plan.limit.starts += 1
    try:
        return collect(plan.ncu, plan.collection, left_s, on_progress)
    except RooflensError as error:
        if error.kept is not None:
            keep_unprofiled(error.kept, unprofiled)
        raise


def keep_unprofiled(report: Path, unprofiled: Unprofiled | None) -> str:
    """Write the un-profiled run beside its report, replacing that of an older report of the same name.

    Returns:
        A sentence saying why it could not be written (the report matters more, and stays); empty if it was.
    """
    place = sidecar(report)
    try:
        if unprofiled is not None:
            write_unprofiled(report, unprofiled)
        else:
            place.unlink(missing_ok=True)
    except (InputError, OSError) as error:
        with suppress(OSError):
            place.unlink(missing_ok=True)
        return f"`{report}` is written, but not the figures of the run without ncu, which its gaps need: {error}"
    return ""
