"""The busiest resource of each side, memory level and pipe, and the bottleneck that comes of the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.records import Bottleneck, ratio
from rooflens.model.roofline.flops import SCALAR_COUNTERS, UPPER_BOUND
from rooflens.model.roofline.levels import L2_INTERNAL, LSU_INPUT, SHARED_DATA, fullest, leading_stage
from rooflens.model.roofline.opcodes import thread_flop
from rooflens.model.roofline.pipes import PIPE_ROWS
from rooflens.model.verdict.stand_ins import compute_stand_in, memory_stand_in
from rooflens.model.verdict.thresholds import default_thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflens.model.records import Analysis, Kernel, Level, Phases, Pipe
    from rooflens.model.unprofiled import InProgram
    from rooflens.model.verdict.thresholds import Thresholds

NEVER_LEAD = frozenset({"fp16", "lsu"})
"""What never leads by itself: CUDA-core fp16 is an upper bound, and the LSU pipe is counted as L1's input stage."""


class Case(Struct, frozen=True):
    """Everything a verdict is reached from.

    Attributes:
        in_program: A typical launch of it without the profiler; None where none was timed.
        phases: How its run divides; None without a series.
        command_line: ncu's, as the report states it; None where it does not.
        compulsory_bytes: What it must move to and from DRAM by formula; None where no formula is known.
    """

    kernel: Kernel
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]
    flags: tuple[str, ...]
    limits: Thresholds
    in_program: InProgram | None = None
    phases: Phases | None = None
    command_line: str | None = None
    compulsory_bytes: float | None = None


def memory_bottleneck(case: Case) -> Bottleneck | None:
    """Find the busiest memory level; L1's data stage counts as shared memory where that makes up most of it.

    A report that shows neither L2 nor any stage behind L1's input may hide the busiest unit: then what stands in for
    the side does so where it is higher.
    """
    unit = fullest(case.levels, {})
    caches = any(_is_seen(level, case.levels[level]) for level in ("l1", "l2"))
    stand_in = None if caches else memory_stand_in(case.kernel)
    if unit is None or (stand_in is not None and stand_in.share > unit[1]):
        return stand_in
    name, share = unit
    return Bottleneck("smem" if name == "l1" and _is_shared_memory(case, share) else name, share)


def both_sides(analysis: Analysis) -> list[Bottleneck]:
    """Find the busiest memory level and the busiest pipe of an analyzed kernel, the busier one first."""
    case = Case(analysis.kernel, analysis.levels, analysis.pipes, analysis.flags, default_thresholds())
    return in_order(memory_bottleneck(case), compute_bottleneck(case))


def in_order(*sides: Bottleneck | None) -> list[Bottleneck]:
    """Put the sides that are known in order of falling share."""
    return sorted((side for side in sides if side is not None), key=lambda side: -side.share)


_PARTIAL: Mapping[str, frozenset[str]] = {
    "l1": frozenset({LSU_INPUT, SHARED_DATA}),
    "l2": frozenset({L2_INTERNAL}),
}
"""Level -> stages that do not show how busy the rest of it is."""


def _is_seen(name: str, level: Level) -> bool:
    """Return whether a level's busiest stage is known, as far as stages tell."""
    return level.share is not None and not (level.stages and level.stages.keys() <= _PARTIAL[name])


def _is_shared_memory(case: Case, l1_share: float) -> bool:
    """Return whether most of the LSU's wavefronts are shared-memory ones, where a stage that serves both leads."""
    l1 = case.levels["l1"]
    leading = leading_stage(l1) or "data"
    wavefronts = l1.stages.get("data", l1_share)
    return (
        leading in {"data", "writeback", SHARED_DATA}
        and (case.levels["smem"].share or 0.0) > case.limits.smem_part_of_l1 * wavefronts
    )


def compute_bottleneck(case: Case) -> Bottleneck | None:
    """Find the busiest pipe; a busy pipe is named after the work that explains it."""
    unit, issue = fullest({}, case.pipes, NEVER_LEAD), case.pipes.get("issue")
    is_measured = issue is not None and issue.share is not None
    stand_in = None if is_measured else compute_stand_in(case.kernel)
    if unit is None or (stand_in is not None and stand_in.share > unit[1]):
        return stand_in
    key, share = unit
    return Bottleneck(_filling(case) or key if key == "issue" else _explained(case, key, share), share)


def _filling(case: Case) -> str | None:
    """Name the work that fills the issue slots; None where no one kind does, or instructions are not counted.

    From CC 8.6 on, an SM has as many fp32 lanes as it issues threads a cycle: multiply-adds that fill the pipe fill
    the slots as well, with what little stands between them.
    """
    issued = _issued(case)
    counts = {name: count for name, count in _instructions(case) if name in case.pipes}
    name = max(counts, key=counts.__getitem__, default=None)
    return name if name is not None and (ratio(counts[name], issued) or 0.0) >= case.limits.issue_filled else None


def _issued(case: Case) -> float | None:
    """Return the warp instructions issued, counted or worked out of their share."""
    issue, duration_ns = case.pipes["issue"], case.kernel.duration_ns
    peak = issue.peak_per_s or case.kernel.counters.get("issue_peak_inst_per_s")
    if issue.amount is not None or issue.share is None or peak is None or duration_ns is None:
        return issue.amount
    return issue.share * peak * duration_ns / 1e9


def _instructions(case: Case) -> Iterator[tuple[str, float]]:
    """Count warp instructions by what they work on; where only threads are counted, the fewest warps that hold them."""
    counters = case.kernel.counters
    for key, amount in _COUNTED:
        yield key, counters.get(amount, 0.0)
    yield from _scalar_instructions(case.kernel)


_COUNTED = tuple(
    (row.key, row.amount or "") for row in PIPE_ROWS if row.unit == "inst" and row.key not in {"issue", *NEVER_LEAD}
)
"""Pipes whose warp instructions are counted, and the counters that do."""
_SCALAR_THREADS = {dtype: SCALAR_COUNTERS[dtype] for dtype in ("fp32", "fp64")}


def _scalar_instructions(kernel: Kernel) -> Iterator[tuple[str, float]]:
    counters = kernel.counters
    if not kernel.warp_opcodes:
        for dtype, (add, mul, fma) in _SCALAR_THREADS.items():
            threads = counters.get(add, 0.0) + counters.get(mul, 0.0) + counters.get(fma, 0.0)
            yield dtype, threads / WARP_THREADS
        return
    found = dict.fromkeys(_SCALAR_THREADS, 0)
    for opcode, count in kernel.warp_opcodes.items():
        flop = thread_flop(opcode)
        if flop is not None and flop[0] in found:
            found[flop[0]] += count
    yield from ((dtype, float(count)) for dtype, count in found.items())


def busiest_unit(case: Case, *sides: Bottleneck | None) -> Bottleneck | None:
    """Name the busiest unit of a kernel without a wall, whatever work fills it; `sides` are memory and compute."""
    top = max((side for side in sides if side is not None), key=lambda side: side.share, default=None)
    if top is None or top.resource is None:
        return top
    unit = fullest(case.levels, case.pipes, NEVER_LEAD)
    return top if unit is None or top.share > unit[1] else Bottleneck(*unit)


def is_stand_in(case: Case, side: Bottleneck) -> bool:
    """Return whether a side's unit was not measured itself: something else speaks for it."""
    place = case.levels.get(side.resource or "") or case.pipes.get(side.resource or "")
    return place is None or place.share is None


def plateau_bottleneck(case: Case) -> Bottleneck | None:
    """Find the unit that is full on the plateau of the run, with its share of the whole run; None where none is."""
    phases = case.phases
    if phases is None or phases.share < case.limits.bound_share:
        return None
    place = case.levels.get(phases.resource) or case.pipes.get(phases.resource)
    if place is None or place.share is None:
        return None
    resource = phases.resource
    return Bottleneck(resource if resource in case.levels else _explained(case, resource, place.share), place.share)


def is_lsu_full(levels: Mapping[str, Level], resource: str | None) -> bool:
    """Return whether a wall is L1 because load and store instructions fill its input, whatever bytes they ask for."""
    return resource == "l1" and leading_stage(levels["l1"]) == LSU_INPUT


def attained_share(case: Case, wall: Bottleneck) -> float | None:
    """Return what the wall's resource does of its attainable roof; None where that is not known.

    L2's is that of the path back to the SMs, so only what comes back counts.
    """
    level, pipe = case.levels.get(wall.resource or ""), case.pipes.get(wall.resource or "")
    one = level or pipe
    if one is None or not one.attainable_per_s:
        return None
    per_s = level.bytes_per_s if level else pipe.amount_per_s if pipe else None
    if wall.resource == "l2":
        returned, duration_ns = case.kernel.counters.get("l2_return_bytes"), case.kernel.duration_ns
        per_s = returned / duration_ns * 1e9 if returned is not None and duration_ns else None
    return None if per_s is None else per_s / one.attainable_per_s


_RUNS = {row.key: row.runs for row in PIPE_ROWS if row.runs}


def _explained(case: Case, key: str, busy: float) -> str:
    runs = _RUNS.get(key)
    if runs is None:
        return key
    works = {
        name: pipe.share
        for name, pipe in case.pipes.items()
        if pipe.share is not None
        and pipe.source != UPPER_BOUND
        and (name in runs or ("tensor_*" in runs and name.startswith("tensor_") and name != key))
    }
    name = max(works, key=works.__getitem__, default=key)
    return name if works.get(name, 0.0) >= case.limits.pipe_explained * busy else key
