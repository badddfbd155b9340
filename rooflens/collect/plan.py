"""Plan a collection: which program, which counters, which GPU. Planning runs nothing but nvcc.

Workloads and ncu meet here; commands handle flags and terminals. Standard library only: it runs on bare GPU machines.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflens.collect.command import (
    NEWEST,
    PM_SAMPLING_SINCE,
    SOURCE_NAMES_SINCE,
    build_argv,
    check_modes,
    check_system,
    clock_choices,
    find_ncu,
    known_metrics,
    names_kernels,
    profiles_whole,
)
from rooflens.collect.ranks import NO_COMMUNICATION, ONE_NCU, split_launcher
from rooflens.collect.tiers import metrics_for, sections_for
from rooflens.errors import EnvironmentMissingError
from rooflens.local_gpu import local_gpu, obstacles
from rooflens.model.counters.chips import FAMILIES, ChipChoice, check_chip, chip_of
from rooflens.workloads.build import architecture_of, build, lacking_library
from rooflens.workloads.commands import command_for, profiled_command, require_torch
from rooflens.workloads.registry import RANGE_NAME, find_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.collect.command import Collection, Ncu
    from rooflens.collect.ranks import Launcher
    from rooflens.local_gpu import LocalGpu
    from rooflens.model.cases import Case, Workload
    from rooflens.model.counters.metric import Detail, Metric

UNPROFILED_ITERATIONS = 20
PROFILED_ITERATIONS = 1
"""One iteration is enough for counters; timing needs more."""
_TOGETHER = "all-cases"
"""Prefix of the ending of a report of many cases before it is split; no case has this name."""

_ENVIRONMENT = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Variables of the profiled program unless the user has set them: PyTorch's compiler forks workers, and ncu would
follow them like any child, and wait for them."""
_IN_STEP = {"NCCL_NVLS_ENABLE": "0"}
"""The same if ncu moves ranks in step: according to NVIDIA, NCCL's kernels cannot be replayed with NVLS."""

_SCRIPTS = (".py", ".sh", ".jl")
_STORED = Path(__file__).parents[2] / "fixtures"
"""Reports that `make replay` draws; only in a clone of the repository."""


@dataclass(frozen=True, slots=True)
class Target:
    """The program to profile: a case of a bundled workload, or a user's command, which may start several ranks."""

    name: str
    workload: Workload | None = None
    case: Case | None = None
    command: tuple[str, ...] = ()
    launcher: Launcher | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for.

    Attributes:
        collection: How to profile; program and metrics are added later.
        detail: Tier of counters: quick, standard or deep.
        chip: Chip whose counters to collect; None for the local GPU's.
        ncu_path: The ncu to run; None to search for it.
        timeout_s: Seconds that the program without ncu, nsys and ncu may take together; None for no limit.
    """

    target: Target
    collection: Collection
    detail: Detail
    chip: str | None = None
    ncu_path: str | None = None
    timeout_s: float | None = None


class TimeLimit:
    """Time limit in seconds for several programs together, from the first call of `left_s`; None for no limit.

    Attributes:
        starts: Starts of the user's program so far.
    """

    def __init__(self, total_s: float | None) -> None:
        self.total_s = total_s
        self.starts = 0
        self._end_s: float | None = None

    def left_s(self) -> float | None:
        """Return the remaining seconds, 0 or more; None if there is no limit."""
        if self.total_s is None:
            return None
        now_s = time.monotonic()
        self._end_s = self._end_s or now_s + self.total_s
        return max(0.0, self._end_s - now_s)


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run.

    Attributes:
        gpu: The GPU of this machine; None if unknown.
        chip: Chip whose counters are collected.
        program: Command of the un-profiled run; `collection` has the profiled command.
        warnings: Sentences about counters that this machine or its ncu leaves out.
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
        """The whole command line of ncu."""
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
    """Make the target of a command, named after its script, or after its program if there is no script."""
    script = next((part for part in command[1:] if part.endswith(_SCRIPTS)), command[0])
    return Target(Path(script).stem or "program", command=command, launcher=split_launcher(command))


def _kernel_filter(target: Target, collection: Collection) -> str | None:
    """Return the filter of kernel names: a user's program leaves out kernels that wait for other ranks by default.

    Ranges and whole graphs hold kernels of any name, and ncu accepts no filter for them.
    """
    chosen = collection.kernel is not None or names_kernels(collection.options) or profiles_whole(collection)
    if chosen or target.workload is not None or any(part.startswith(ONE_NCU) for part in collection.options):
        return collection.kernel
    return NO_COMMUNICATION


def _clocks(ncu: Ncu, gpu: LocalGpu | None, wanted: str | None) -> tuple[str | None, str]:
    """Return the clock control to use (None for ncu's default), and what to tell the user about it.

    Raises:
        EnvironmentMissingError: This ncu lacks the requested value.
    """
    if wanted is None and gpu is not None and gpu.mig:
        return "none", "clocks are left alone: MIG does not let one instance lock them"
    if wanted is not None and wanted not in (choices := clock_choices(ncu) or ("base", "none")):
        listed = ", ".join(choices)
        message = f"ncu {ncu.version_text} has no `--clock-control {wanted}`: it has {listed}"
        raise EnvironmentMissingError(message, "choose one of those, or point --ncu to a newer Nsight Compute")
    return wanted, ""


def make_plan(request: Request, *, dry_run: bool) -> Plan:
    """Find the GPU, ncu, the counters and the program; nothing slow is started but nvcc.

    Args:
        request: What the user asks for.
        dry_run: Only print the command line: the machine that runs it may have what is missing here.

    Raises:
        EnvironmentMissingError: A GPU, ncu, PyTorch or nvcc is missing; a workload's hint says how to see its page.
        UsageError: The chip is unknown, or options contradict each other.
    """
    check_modes(request.collection)
    with replay_hinted(request.target):
        gpu = _gpu(request.chip, dry_run=dry_run)
        ncu = _ncu(request.ncu_path, dry_run=dry_run)
        choice = _chip(request.chip, gpu)
        plain, profiled = _programs(request.target, _architecture(gpu, choice.chip), dry_run=dry_run)
        also = () if request.chip or gpu is None else tuple(chip_of(capability).chip for capability in gpu.also)
        whole = profiles_whole(request.collection)
        names, lacking = _metrics_of_tier(ncu, (choice.chip, *also), request.detail, whole)
        clocks, clocks_said = _clocks(ncu, gpu, request.collection.clock_control)
        in_step = any(part.startswith(ONE_NCU) for part in request.collection.options)
        variables = {**_ENVIRONMENT, **(_IN_STEP if in_step else {})}
        collection = replace(
            request.collection,
            program=profiled,
            kernel=_kernel_filter(request.target, request.collection),
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
        skipped = [f"`{path}` is not Nsight Compute and was skipped" for path in ncu.skipped]
        alone = lacking_library(request.target.workload) if request.target.workload and not dry_run else ""
        said = (*skipped, *(obstacles(gpu) if gpu else ()), clocks_said, assumed, choice.reason, lacking, alone)
        warnings = tuple(warning for warning in said if warning)
        return Plan(request, ncu, gpu, choice.chip, plain, collection, warnings, TimeLimit(request.timeout_s))


def check_gpu(request: Request) -> None:
    """Look for the GPU only, before anything slower.

    Raises:
        EnvironmentMissingError: There is no GPU; for a workload the hint says how to see its page.
        UsageError: Options contradict each other.
    """
    check_modes(request.collection)
    with replay_hinted(request.target):
        _gpu(request.chip, dry_run=False)


@contextmanager
def replay_hinted(target: Target) -> Iterator[None]:
    """Add to the hint of a missing requirement how to see a bundled workload without a GPU."""
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


def _metrics_of_tier(ncu: Ncu, chips: tuple[str, ...], detail: Detail, whole: str) -> tuple[tuple[str, ...], str]:
    """Return the metrics of a tier that this ncu knows on all of these chips, and a sentence about the missing ones.

    What ncu counts without the hardware (`launch__*`, opcode tables, samples) is not in its lists. Counts by
    instruction exist since a known release. For ranges and graphs as a whole, ncu refuses metrics that the hardware
    lacks and, according to NVIDIA's manual, collects neither opcode tables nor samples.
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
    """Return the metrics that all of these tiers share, in the order of the first."""
    names = [{metric.name for metric in tier} for tier in tiers]
    return [metric for metric in tiers[0] if all(metric.name in of_one for of_one in names)]


def _sections(ncu: Ncu, chips: tuple[str, ...], detail: Detail) -> tuple[str, ...]:
    first, *others = (sections_for(chip, detail, pm_sampling=ncu.knows(PM_SAMPLING_SINCE)) for chip in chips)
    return tuple(name for name in first if all(name in other for other in others))


def _lacks(ncu: Ncu, metrics: frozenset[str] | None, metric: Metric) -> bool:
    if metric.name.startswith("memory_"):
        return not ncu.knows(SOURCE_NAMES_SINCE)
    return metrics is not None and metric.kind == "hardware" and metric.name.partition(".")[0] not in metrics


def _ncu(path: str | None, *, dry_run: bool) -> Ncu:
    try:
        return find_ncu(path)
    except EnvironmentMissingError:
        if not dry_run or path is not None:
            raise
        return NEWEST


def can_run(case: Case, chip: str | None) -> bool:
    """Return whether the given chip, else the local GPU, can run a case; True if neither is known."""
    if case.needs is None:
        return True
    if chip is not None:
        return any(known == case.needs and chip in family for known, family in FAMILIES)
    try:
        return local_gpu().compute_capability == case.needs
    except EnvironmentMissingError:
        return True


def _gpu(chip: str | None, *, dry_run: bool) -> LocalGpu | None:
    if not dry_run:
        check_system()
    try:
        return local_gpu()
    except EnvironmentMissingError as error:
        if chip is None and dry_run:
            told = "`--chip gh100` writes the command of a GPU elsewhere; `rooflens metrics` lists chips"
            raise EnvironmentMissingError(str(error), told) from error
        if not dry_run:
            raise
        return None


def _chip(given: str | None, gpu: LocalGpu | None) -> ChipChoice:
    """Choose the chip whose counters to collect: the user's choice, else the local GPU's."""
    if given is not None or gpu is None:
        return ChipChoice(check_chip(given or ""))
    return chip_of(gpu.compute_capability)


def _architecture(gpu: LocalGpu | None, chip: str) -> str:
    """Return nvcc's name for the GPU: `sm_80`."""
    capability = gpu.compute_capability if gpu else next(known for known, family in FAMILIES if chip in family)
    return architecture_of(capability)


def _programs(target: Target, architecture: str, *, dry_run: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the command that runs un-profiled, and the command that ncu runs."""
    if target.workload is None or target.case is None:
        return target.command, target.command
    binary = None
    if target.workload.kind == "cuda":
        # A dry run compiles nothing: it shows the program without the folder and digest of its cache entry.
        binary = Path(f"{target.workload.name}-{architecture}") if dry_run else build(target.workload, architecture)
    elif not dry_run:
        require_torch()
    return (
        command_for(target.workload, target.case, UNPROFILED_ITERATIONS, binary, watch_kernels=True),
        command_for(target.workload, target.case, PROFILED_ITERATIONS, binary),
    )


def plan_cases(plan: Plan, workload: Workload, names: Sequence[str]) -> Plan | None:
    """Plan a single ncu and process for several cases of a PyTorch workload, from the first case's plan.

    Args:
        plan: The plan of the first case.
        workload: The workload.
        names: The cases, as `WORKLOAD.CASE`.

    Returns:
        The plan, whose report holds all cases; None if the request counts launches of a case, or the user's options for
            ncu already choose them.
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
