"""Plan a collection and run it: which program runs, which counters are asked for, what it will cost.

Workloads and ncu meet here; flags and terminals are left to commands. Standard library only: it runs on a bare GPU box.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rooflens.errors import EnvironmentMissingError, InputError, ProgramError, RooflensError, StoppedError, UsageError
from rooflens.ingest.ncu.command import (
    NEWEST,
    PM_SAMPLING_SINCE,
    REGEX,
    SOURCE_NAMES_SINCE,
    build_argv,
    can_profile_one_of_each,
    check_modes,
    check_system,
    clock_choices,
    find_ncu,
    known_metrics,
    names_kernels,
    profiles_whole,
)
from rooflens.ingest.ncu.failures import NO_PERMISSION, PERMISSION_HINT
from rooflens.ingest.ncu.nsys import trace
from rooflens.ingest.ncu.ranks import NO_COMMUNICATION, ONE_NCU, split_launcher
from rooflens.ingest.ncu.run import check_place, collect
from rooflens.ingest.ncu.tiers import metrics_for, sections_for
from rooflens.ingest.ncu.torch_trace import count_launches
from rooflens.ingest.ncu.unprofiled import run_cases, run_program, run_workload, write_unprofiled
from rooflens.ingest.reports.splitting import split_report
from rooflens.ingest.reports.unpacking import log_of, sidecar
from rooflens.ingest.timelines.nsys import find_nsys
from rooflens.local_gpu import counters_are_open, cuda_has_gpu, local_gpu, may_administer, obstacles
from rooflens.model.counters.chips import FAMILIES, ChipChoice, check_chip, chip_of
from rooflens.model.keys import function_of
from rooflens.model.knowledge.roles import waits_for_ranks
from rooflens.model.timeline import place
from rooflens.model.unprofiled import Unprofiled
from rooflens.workloads.build import architecture_of, build, lacking_library
from rooflens.workloads.commands import (
    command_for,
    command_of_case,
    measuring_command,
    profiled_command,
    require_torch,
)
from rooflens.workloads.registry import RANGE_NAME, find_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflens.ingest.ncu.command import Collection, Ncu
    from rooflens.ingest.ncu.log import Progress
    from rooflens.ingest.ncu.ranks import Launcher
    from rooflens.ingest.ncu.run import Collected
    from rooflens.local_gpu import LocalGpu
    from rooflens.model.cases import Case, Workload
    from rooflens.model.counters.metric import Detail, Metric
    from rooflens.model.records import Kernel
    from rooflens.model.unprofiled import LaunchCount

UNPROFILED_ITERATIONS = 20
PROFILED_ITERATIONS = 1
"""One iteration is enough for counters; timing needs more."""
_TOGETHER = "all-cases"
"""Begins the ending of a report of many cases, until it is split: no case is called so."""

_ENVIRONMENT = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Variables of the profiled program where the user has not set them: PyTorch's compiler forks workers, which ncu would
follow as it follows every child, and wait for."""
_IN_STEP = {"NCCL_NVLS_ENABLE": "0"}
"""The same where ncu moves ranks in step: NVIDIA says that NCCL's kernels cannot be replayed with NVLS."""

_PROBE = Path(__file__).parent / "ingest" / "ncu" / "probe.py"
_PROBED = "rooflens_probe"
_IDLE = (sys.executable, "-IS", "-c", "")
"""A program that launches nothing."""
_NOT_STARTED = "one kernel was tried first, and the program was not started"
_TRIAL_SECONDS = 60.0
"""One kernel takes two seconds under ncu; waking the driver, or the counters of `deep`, may take longer."""

_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
_SCRIPTS = (".py", ".sh", ".jl")
_STORED = Path(__file__).parents[1] / "fixtures"
"""Reports that `make replay` draws; only in a clone of the repository."""


@dataclass(frozen=True, slots=True)
class Target:
    """The program to profile: one case of a bundled workload, or a user's command, which may start several ranks."""

    name: str
    workload: Workload | None = None
    case: Case | None = None
    command: tuple[str, ...] = ()
    launcher: Launcher | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for.

    Attributes:
        collection: How to profile; its program and its metrics are still to be found.
        detail: Tier of counters: quick, standard or deep.
        chip: Chip to ask counters for; None for the one at hand.
        ncu_path: The ncu to run; None to look for one.
        timeout_s: Seconds that the program without ncu, nsys and ncu may take together; None for no limit.
    """

    target: Target
    collection: Collection
    detail: Detail
    chip: str | None = None
    ncu_path: str | None = None
    timeout_s: float | None = None


class TimeLimit:
    """Time limit in seconds for several programs together, counted from the first `left_s`; None for no limit.

    Attributes:
        starts: How often the user's program was started so far.
    """

    def __init__(self, total_s: float | None) -> None:
        self.total_s = total_s
        self.starts = 0
        self._end_s: float | None = None

    def left_s(self) -> float | None:
        """Return the seconds that are left, 0 or more; None where there is no limit."""
        if self.total_s is None:
            return None
        now_s = time.monotonic()
        self._end_s = self._end_s or now_s + self.total_s
        return max(0.0, self._end_s - now_s)


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be run.

    Attributes:
        gpu: The GPU of this machine; None where it is not known.
        chip: Chip that the counters are of.
        program: Command of the un-profiled run; that of the profile is in `collection`.
        warnings: Why this machine or its ncu leaves counters out, in sentences.
        limit: Time limit for everything that is run.
    """

    request: Request
    ncu: Ncu
    gpu: LocalGpu | None
    chip: str
    program: tuple[str, ...]
    collection: Collection
    warnings: tuple[str, ...] = ()
    limit: TimeLimit = field(default_factory=lambda: TimeLimit(None), compare=False)

    @property
    def argv(self) -> tuple[str, ...]:
        """Ncu's whole command line."""
        return build_argv(self.ncu, self.collection)


def workload_target(name: str, case_name: str | None) -> Target:
    """Make the target of a bundled workload.

    Raises:
        InputError: There is no such workload, or it has no such case.
    """
    workload = find_workload(name)
    case = workload.case(case_name)
    return Target(f"{name}.{case.name}" if case_name else name, workload, case)


def command_target(command: tuple[str, ...]) -> Target:
    """Make the target of a command, named after its script, else after its program."""
    script = next((part for part in command[1:] if part.endswith(_SCRIPTS)), command[0])
    return Target(Path(script).stem or "program", command=command, launcher=split_launcher(command))


def _kernels(target: Target, collection: Collection) -> str | None:
    """Return the filter of names: of a user's program, kernels that wait for other ranks are left out unasked.

    Ranges and whole graphs hold kernels of any name, and ncu takes no filter for them.
    """
    chosen = collection.kernel is not None or names_kernels(collection.options) or profiles_whole(collection)
    if chosen or target.workload is not None or any(part.startswith(ONE_NCU) for part in collection.options):
        return collection.kernel
    return NO_COMMUNICATION


def _clocks(ncu: Ncu, gpu: LocalGpu | None, wanted: str | None) -> tuple[str | None, str]:
    """Return the clock control to ask for, None for ncu's own, and what is to be said of it.

    Raises:
        EnvironmentMissingError: This ncu does not have it.
    """
    if wanted is None and gpu is not None and gpu.mig:
        return "none", "clocks are left alone: MIG does not let one instance lock them"
    if wanted is not None and wanted not in (choices := clock_choices(ncu) or ("base", "none")):
        listed = ", ".join(choices)
        message = f"ncu {ncu.version_text} has no `--clock-control {wanted}`: it has {listed}"
        raise EnvironmentMissingError(message, "choose one of those, or point --ncu to a newer Nsight Compute")
    return wanted, ""


def make_plan(request: Request, *, dry_run: bool) -> Plan:
    """Find the GPU, ncu, the counters and the program; start nothing that costs time but nvcc.

    Args:
        request: What the user asks for.
        dry_run: Only the command line is wanted: what is missing here may be there on the machine that runs it.

    Raises:
        EnvironmentMissingError: A GPU, ncu, PyTorch or nvcc is missing; a workload's hint says how to see its page.
        UsageError: The chip is unknown, or options contradict each other.
    """
    check_modes(request.collection)
    with _replay_said(request.target):
        gpu = _gpu(request.chip, dry_run=dry_run)
        ncu = _ncu(request.ncu_path, dry_run=dry_run)
        choice = _chip(request.chip, gpu)
        plain, profiled = _programs(request.target, _architecture(gpu, choice.chip), dry_run=dry_run)
        also = () if request.chip or gpu is None else tuple(chip_of(capability).chip for capability in gpu.also)
        whole = profiles_whole(request.collection)
        names, lacking = _metrics(ncu, (choice.chip, *also), request.detail, whole)
        clocks, clocks_said = _clocks(ncu, gpu, request.collection.clock_control)
        in_step = any(part.startswith(ONE_NCU) for part in request.collection.options)
        variables = {**_ENVIRONMENT, **(_IN_STEP if in_step else {})}
        collection = replace(
            request.collection,
            program=profiled,
            kernel=_kernels(request.target, request.collection),
            clock_control=clocks,
            nvtx_include=request.collection.nvtx_include or ((RANGE_NAME,) if request.target.workload else ()),
            metrics=names,
            sections=_sections(ncu, (choice.chip, *also), request.detail),
            environment={
                **{name: value for name, value in variables.items() if name not in os.environ},
                **request.collection.environment,
            },
        )
        assumed = gpu.assumed if gpu is not None and request.chip is None else ""
        skipped = [f"`{path}` is not Nsight Compute and was passed over" for path in ncu.skipped]
        alone = lacking_library(request.target.workload) if request.target.workload and not dry_run else ""
        said = (*skipped, *(obstacles(gpu) if gpu else ()), clocks_said, assumed, choice.reason, lacking, alone)
        warnings = tuple(warning for warning in said if warning)
        return Plan(request, ncu, gpu, choice.chip, plain, collection, warnings, TimeLimit(request.timeout_s))


def check_gpu(request: Request) -> None:
    """Look for the GPU alone, before anything that takes longer.

    Raises:
        EnvironmentMissingError: There is none; a workload's hint says how to see its page.
        UsageError: Options contradict each other.
    """
    check_modes(request.collection)
    with _replay_said(request.target):
        _gpu(request.chip, dry_run=False)


@contextmanager
def _replay_said(target: Target) -> Iterator[None]:
    """Say in the hint of what is missing how to see a bundled workload without a GPU."""
    try:
        yield
    except EnvironmentMissingError as error:
        if target.workload is None or not _STORED.is_dir():
            raise
        name = target.workload.name
        stored = (f"*/{start}{name}{end}.ncu-rep" for start in ("", "*__") for end in ("", ".*"))
        if any(any(_STORED.glob(pattern)) for pattern in stored):
            replay = f"without a GPU, `make replay WORKLOAD={name}` draws the same page from stored reports"
        else:
            replay = f"without a GPU, `make demo` draws such a page from published reports; none of `{name}` is stored"
        told = EnvironmentMissingError(str(error), f"{error.hint}; {replay}" if error.hint else replay)
        told.is_of_program = error.is_of_program
        raise told from error


def _metrics(ncu: Ncu, chips: tuple[str, ...], detail: Detail, whole: str) -> tuple[tuple[str, ...], str]:
    """Return the names of a tier that this ncu knows on all of these chips, and a sentence about those it lacks.

    What ncu counts without the hardware (`launch__*`, opcode tables, samples) is in none of its lists; counts by
    instruction have their names since a known release. For what is profiled whole ncu refuses those that the hardware
    lacks, and by NVIDIA's manual collects no opcode tables and no samples.
    """
    wanted = _of_all([metrics_for(chip, detail) for chip in chips])
    said = []
    if whole:
        countable = [metric for metric in wanted if not _is_by_instruction(metric)]
        by_instruction = f"{len(wanted) - len(countable)} of {len(wanted)} metrics count by instruction"
        wanted, said = countable, [f"{by_instruction}, which ncu does not do for {whole}"]
    known = [None if ncu is NEWEST else known_metrics(ncu, chip) for chip in chips]
    lacking = {metric.name for metric in wanted if any(_lacks(ncu, names, metric) for names in known)}
    said += [f"this ncu lacks {len(lacking)} of {len(wanted)} metrics, which a newer one has"] if lacking else []
    return tuple(metric.name for metric in wanted if metric.name not in lacking), "; ".join(said)


def _is_by_instruction(metric: Metric) -> bool:
    return metric.kind in {"sass", "sampling"} or "__sass_" in metric.name


def _of_all(tiers: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Return the metrics that all of these tiers have, in the order of the first."""
    names = [{metric.name for metric in tier} for tier in tiers]
    return [metric for metric in tiers[0] if all(metric.name in of_one for of_one in names)]


def _sections(ncu: Ncu, chips: tuple[str, ...], detail: Detail) -> tuple[str, ...]:
    first, *others = (sections_for(chip, detail, pm_sampling=ncu.knows(PM_SAMPLING_SINCE)) for chip in chips)
    return tuple(name for name in first if all(name in other for other in others))


def _lacks(ncu: Ncu, known: frozenset[str] | None, metric: Metric) -> bool:
    if metric.name.startswith("memory_"):
        return not ncu.knows(SOURCE_NAMES_SINCE)
    return known is not None and metric.kind == "hardware" and metric.name.partition(".")[0] not in known


def _ncu(path: str | None, *, dry_run: bool) -> Ncu:
    try:
        return find_ncu(path)
    except EnvironmentMissingError:
        if not dry_run or path is not None:
            raise
        return NEWEST


def can_run(case: Case, chip: str | None) -> bool:
    """Return whether the chip that is named, else the GPU at hand, can run a case; True where neither is known."""
    if case.needs is None:
        return True
    if chip is not None:
        return any(known == case.needs and chip in family for known, family in FAMILIES)
    try:
        return local_gpu().compute_capability == case.needs
    except EnvironmentMissingError:
        return True


def _gpu(chip: str | None, *, dry_run: bool) -> LocalGpu | None:
    """Return the GPU at hand; None where `nvidia-smi` tells none, and either CUDA has one or none is needed."""
    if not dry_run:
        check_system()
    try:
        return local_gpu()
    except EnvironmentMissingError:
        if chip is None or not (dry_run or cuda_has_gpu()):
            raise
        return None


def _chip(given: str | None, gpu: LocalGpu | None) -> ChipChoice:
    """Choose the chip to ask counters for: the one the user names, else that of the GPU at hand."""
    if given is not None or gpu is None:
        return ChipChoice(check_chip(given or ""))
    return chip_of(gpu.compute_capability)


def _architecture(gpu: LocalGpu | None, chip: str) -> str:
    """Return what nvcc calls the GPU, as `sm_80`."""
    capability = gpu.compute_capability if gpu else next(known for known, family in FAMILIES if chip in family)
    return architecture_of(capability)


def _programs(target: Target, architecture: str, *, dry_run: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the command that runs un-profiled, and the one that ncu runs."""
    if target.workload is None or target.case is None:
        return target.command, target.command
    binary = None
    if target.workload.kind == "cuda":
        # A dry run compiles nothing: the program is shown without the folder and the digest of its cache entry.
        binary = Path(f"{target.workload.name}-{architecture}") if dry_run else build(target.workload, architecture)
    elif not dry_run:
        require_torch()
    return (
        command_for(target.workload, target.case, UNPROFILED_ITERATIONS, binary, watch_kernels=True),
        command_for(target.workload, target.case, PROFILED_ITERATIONS, binary),
    )


@dataclass(frozen=True, slots=True)
class Recording:
    """The outcome of a plan.

    Attributes:
        plan: The plan as it was carried out.
        unprofiled: The run without ncu; None where it was left out.
        collected: ncu's report, with what it warned about.
        starts: How often the program was started; None where ncu started it for each pass.
        lost: What could not be kept beside the report, in a sentence; empty where nothing was lost.
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
    """Carry out a plan: check the machine, run the program without ncu, then under ncu; keep the first run's figures.

    Args:
        plan: What to run.
        on_progress: Called with how far a run is.
        run_first: False leaves out the run without ncu.
        unprofiled: What a timeline shows of the program: the run without ncu is then left out, too.
        try_first: False leaves out the checks before the program.
        on_first_run: Called between the two runs, with the plan that ncu follows and what the first run measured.

    Raises:
        ProgramError: The program failed without ncu.
        EnvironmentMissingError, InputError, StoppedError: As `check_machine`, `run_unprofiled` and `ncu.run.collect`
            raise them.
    """
    with _replay_said(plan.request.target):
        if try_first:
            plan = replace(plan, warnings=(*plan.warnings, *check_machine(plan, on_progress)))
        if unprofiled is None and run_first:
            unprofiled = run_unprofiled(plan, on_progress)
        if unprofiled is not None:
            plan = choose_launches(plan, unprofiled)
        on_first_run(plan, unprofiled)
        collected = _take(plan, unprofiled, on_progress)
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
        cases: The cases, in the order to run them in.
        limit_s: Seconds for each case; None for no limit.
        on_progress: Called with how far the run is.

    Returns:
        What each case measured, by its name. One that failed is left out: run alone, it says why.

    Raises:
        EnvironmentMissingError: The program cannot be started.
        StoppedError: Ctrl-C, SIGTERM or SIGHUP.
    """
    command = measuring_command([f"{workload.name}.{case.name}" for case in cases], UNPROFILED_ITERATIONS)
    return run_cases(command, None if limit_s is None else limit_s * len(cases), on_progress)


def plan_cases(plan: Plan, workload: Workload, names: Sequence[str]) -> Plan | None:
    """Plan one ncu and one process for cases of a PyTorch workload, from the plan of the first of them.

    Args:
        plan: Of the first case.
        workload: The workload.
        names: The cases, as `WORKLOAD.CASE`.

    Returns:
        The plan, whose report holds all cases; None where what is asked for counts launches of one case, or takes ncu's
        place in choosing them.
    """
    collection, limit_s = plan.collection, plan.request.timeout_s
    counts = collection.launch_skip, collection.launch_count, collection.kill or None, collection.options or None
    if any(one is not None for one in counts) or collection.replay_mode != "kernel":
        return None
    if collection.nvtx_include != (RANGE_NAME,):
        return None
    together = replace(
        collection,
        program=profiled_command(names),
        output=collection.output.with_name(f"{workload.name}.{_TOGETHER}{collection.output.suffix}"),
        max_launches=collection.max_launches * len(names),
    )
    limit = TimeLimit(None if limit_s is None else limit_s * len(names))
    return replace(plan, collection=together, limit=limit)


def profile_cases(
    plan: Plan,
    places: Mapping[str, Path],
    unprofiled: Mapping[str, Unprofiled],
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Collected, tuple[Path, ...], str]:
    """Run cases under one ncu, and split its report into one a case, with the run without ncu beside each.

    Args:
        plan: As `plan_cases` makes it.
        places: The report of each case, by its `WORKLOAD.CASE`.
        unprofiled: What each measured without ncu, where it did, by the same.
        on_progress: Called with how far the run is.

    Returns:
        What ncu did, the reports that were written, and what could not be kept beside one, in a sentence. A case that
        failed or launched nothing has no report.

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


_tried: set[tuple[str, ...]] = set()
"""Command lines that one kernel was profiled with in this process, without their program and report."""


def check_machine(plan: Plan, on_progress: Callable[[Progress], None] = lambda _: None) -> tuple[str, ...]:
    """Look for what would make ncu fail before the program is started, and profile one kernel under the same options.

    Returns:
        What did not go well and may still be no obstacle, in sentences.

    Raises:
        EnvironmentMissingError: This user may not read the counters, or ncu names what is in its way.
        InputError: The report cannot be written, or ncu knows no such metric or section.
        UsageError: The filter of kernels is not a valid expression.
        StoppedError: Ctrl-C, SIGTERM or SIGHUP.
    """
    if counters_are_open() is False and not may_administer():
        raise EnvironmentMissingError(NO_PERMISSION, PERMISSION_HINT)
    check_place(plan.collection.output)
    key = (plan.collection.replay_mode, *build_argv(plan.ncu, _trial(plan.collection, Path("trial.ncu-rep"))))
    said = () if key in _tried else _try(plan, on_progress)
    _tried.add(key)
    return said


def _try(plan: Plan, on_progress: Callable[[Progress], None]) -> tuple[str, ...]:
    """Profile one kernel; raise where ncu says why that cannot be, return a sentence where only the trial failed.

    The kernel itself is replayed, whatever the mode: application replay would start it for each pass, and it has no
    range. What ncu says of the mode it says while it reads its command line, with a program that launches nothing.
    """
    with TemporaryDirectory(prefix="rooflens-") as folder:
        output = Path(folder, plan.collection.output.name)
        if plan.collection.replay_mode != "kernel":
            idle = replace(plan.collection, program=_IDLE, output=output, environment={}, keep_log=False)
            _tried_out(plan, idle, on_progress)
        return _tried_out(plan, _trial(plan.collection, output), on_progress)


def _tried_out(plan: Plan, trial: Collection, on_progress: Callable[[Progress], None]) -> tuple[str, ...]:
    limit_s = min(_TRIAL_SECONDS, plan.limit.total_s or _TRIAL_SECONDS)
    start_s = time.monotonic()
    try:
        collect(plan.ncu, trial, limit_s, on_progress)
    except StoppedError:
        raise
    except RooflensError as error:
        if time.monotonic() - start_s >= limit_s:
            message = f"ncu did not profile one kernel of one thread within {limit_s:g} s"
            raise EnvironmentMissingError(message, f"see that `nvidia-smi` works; {_NOT_STARTED}") from error
        if isinstance(error, InputError) and not error.is_certain:
            return (f"one kernel could not be profiled on trial: {error}",)
        hint = error.hint.partition("; the report so far is kept")[0]
        if (log := log_of(trial.output)).exists():
            kept = log_of(plan.collection.output)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, kept)
            hint = hint.replace(str(log), str(kept))
        error.hint = f"{hint}; {_NOT_STARTED}"
        raise
    return ()


def _trial(collection: Collection, output: Path) -> Collection:
    """Return the collection of one bundled kernel under the same options, with an expression that must compile."""
    kernel = collection.kernel or ""
    in_step = any(part.startswith(ONE_NCU) for part in collection.options)
    return replace(
        collection,
        program=(sys.executable, "-IS", str(_PROBE)),
        output=output,
        kernel=f"{kernel}|^{_PROBED}$" if kernel.startswith(REGEX) else None,
        launch_skip=None,
        launch_count=1,
        nvtx_include=(),
        replay_mode="kernel",
        options=() if in_step or names_kernels(collection.options) else collection.options,
        from_start=True,
        environment={},
        kill=False,
        keep_log=False,
    )


def run_unprofiled(plan: Plan, on_progress: Callable[[Progress], None]) -> Unprofiled:
    """Run the program once without ncu, and once more under what counts its kernels: nsys, else PyTorch's profiler.

    A bundled workload measures itself in the first run.

    Raises:
        ProgramError: The program failed.
        EnvironmentMissingError: It cannot be started, or a workload misses something.
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
    half_s = None if left_s is None else left_s / 2  # counts are nice to have; the profile is the point
    if target.launcher is not None:  # all ranks would be counted as one
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
    """Profile each kernel once in each shape where the un-profiled run counted more launches than may be profiled.

    Otherwise ncu profiles the first launches: all there are, or as many as may be where nobody counted them.
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
    """Return the filter of the kernels that take most time, in at most so many shapes; None where all of them fit."""
    shapes: Counter[str] = Counter()
    times_ns: Counter[str] = Counter()
    for entry in counts:
        if not waits_for_ranks(entry.name):
            shapes[function_of(entry.name)] += 1
            times_ns[function_of(entry.name)] += _total_ns(entry)
    left = most
    names: list[str] = []
    for name, _ in times_ns.most_common():
        left -= shapes[name]
        if left >= 0 or not names:
            names.append(name)
    if len(names) == len(shapes):
        return None
    return f"{REGEX}^({'|'.join(re.escape(name) for name in names if ':' not in name)})$"


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of what ran is in a report.

    Attributes:
        names: Names of kernels in the report, of those that ran.
        of: Names of the kernels that ran.
        time_share: Part of the kernels' time, 0 to 1; None where it is not known.
        missing: Names that are not in it, the longest time first, without those that wait for other ranks.
    """

    names: int
    of: int
    time_share: float | None
    missing: tuple[str, ...]


def covered(recording: Recording) -> Covered | None:
    """Compare a report with the un-profiled run; None where that named no kernels.

    Where nothing reads reports, ncu's log names them, without template arguments and cut where they are long. A report
    of ranges or whole graphs names no kernels.
    """
    whole = profiles_whole(recording.plan.collection)
    if whole or recording.unprofiled is None or not recording.unprofiled.launch_counts:
        return None
    counts = recording.unprofiled.launch_counts
    kernels, names = _read(recording.collected.report), recording.collected.names
    heads = tuple(name.removesuffix("...") for name in names if name.endswith("..."))
    lacking = {id(entry) for entry in place(kernels, recording.unprofiled)[1]} if kernels else set()
    times_ns: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for entry in counts:
        name = entry.name if kernels else function_of(entry.name)
        times_ns[name] += _total_ns(entry)
        if id(entry) not in lacking if kernels else name in names or (heads and name.startswith(heads)):
            found[name] += _total_ns(entry)
    total_ns = times_ns.total()
    share = found.total() / total_ns if kernels and total_ns else None
    missing = tuple(name for name, _ in times_ns.most_common() if name not in found and not waits_for_ranks(name))
    return Covered(len(found), len(times_ns), share, missing)


def _total_ns(entry: LaunchCount) -> int:
    return entry.total_ns or entry.count * (entry.time_ns or 0)


def _take(plan: Plan, unprofiled: Unprofiled | None, on_progress: Callable[[Progress], None]) -> Collected:
    """Run ncu; where it fails, keep the un-profiled run, if there was one, next to what there is of a report."""
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
    """Keep the un-profiled run beside its report, in place of that of an older report of this name.

    Returns:
        Why it could not be kept, in a sentence: the report is worth more, and stays. Else nothing.
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
        return f"`{report}` is written, but not what the run without ncu showed, which its gaps need: {error}"
    return ""


def other_gpu(plan: Plan, report: Path) -> str:
    """Say which GPU of a report has other counters than the chip they were asked for; empty where none has."""
    kernels = _read(report)
    ran_on = {kernel.gpu: kernel.compute_capability for kernel in kernels if kernel.gpu and kernel.compute_capability}
    for name, capability in ran_on.items():
        families = [family for known, family in FAMILIES if known == capability]
        if families and not any(plan.chip in family for family in families):
            words = f"the kernels ran on {name} ({min(families[0])}), but the counters of {plan.chip} were asked for"
            return f"{words}: some are missing; --chip {min(families[0])} asks for the right ones"
    return ""


def _read(report: Path) -> Sequence[Kernel]:
    """Read the kernels of a report; none where it cannot be read here."""
    try:
        from rooflens.ingest.reports.read import read_report  # noqa: PLC0415 - needs what a bare GPU box may lack

        return read_report(report, report.name).kernels
    except (ImportError, InputError):
        return ()


def estimate_cost(plan: Plan, unprofiled: Unprofiled | None) -> str:
    """Say what the collection will cost: launches x passes x time + saved memory, and what of it is not known."""
    collection = plan.collection
    whole = profiles_whole(collection)
    most, which = collection.launch_count or collection.max_launches, whole or "launches"
    if collection.one_of_each:
        which = "distinct launches"
    launches = kernel_ns = None
    if unprofiled is not None and unprofiled.launches and not whole:
        launches = unprofiled.launches // unprofiled.iterations
        distinct = sum(not waits_for_ranks(entry.name) for entry in unprofiled.launch_counts)
        most = min(distinct if collection.one_of_each else launches, most)
        timed_ns = sum(map(_total_ns, unprofiled.launch_counts))
        kernel_ns = (unprofiled.kernel_ns or timed_ns) // unprofiled.iterations or None
    passes = _passes(plan.chip, collection.metrics)
    counted = f"at most {most} {which}{' (how many is not known)' if launches is None else ''}"
    times = "passes (not counted)"
    if passes is not None:
        times = f"{passes} pass{'' if passes == 1 else 'es'} (ncu adds 1 to 3)"
    each = "the kernels' time (not known)"
    if kernel_ns is not None and launches:
        each = f"{_scaled(kernel_ns / launches)} each"
        each += "" if passes is None else f" = {_scaled(kernel_ns / launches * most * passes)}"
    saved = "; the program is run again for each pass, nothing is saved"
    if collection.replay_mode in {"kernel", "range"}:
        saved = " + saving and restoring what the kernels write, for each pass (how much is not known)"
    return f"estimate: {counted} x {times} x {each}{saved}"


def _passes(chip: str, metrics: tuple[str, ...]) -> int | None:
    """Count the hardware passes, where NVIDIA's scheduler is installed: a bare GPU box may lack it."""
    from rooflens.ingest.ncu.passes import count_passes  # noqa: PLC0415 - loads NVIDIA's library

    try:
        return count_passes(chip, metrics).hardware_passes
    except (EnvironmentMissingError, UsageError):
        return None


def _scaled(duration_ns: float) -> str:
    for unit, scale in _UNITS:
        if duration_ns >= scale:
            return f"{duration_ns / scale:.3g} {unit}"
    return f"{duration_ns:.3g} ns"
