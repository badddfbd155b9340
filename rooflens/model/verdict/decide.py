"""The verdict: which wall a kernel hits, decided in a fixed order, first match wins.

overhead -> balanced -> memory or compute -> latency; unknown where nothing speaks. `at_roof` stands beside the class.
The limits are in `thresholds.toml`, NVIDIA's where it has any; its throughput per cents are read only where a report
holds nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.model.counters.balance import STALLS
from rooflens.model.failed import failure_words
from rooflens.model.records import Verdict
from rooflens.model.roofline.levels import device_dram_share
from rooflens.model.verdict import advice
from rooflens.model.verdict.bottleneck import (
    attained_share,
    busiest_unit,
    compute_bottleneck,
    is_lsu_full,
    is_stand_in,
    memory_bottleneck,
    plateau_bottleneck,
)
from rooflens.model.verdict.collecting import not_profiled
from rooflens.model.verdict.nvidia_rules import SAME_CLASSES, read_nvidia
from rooflens.model.verdict.sentences import NOT_MEASURED, Facts, evidence_lines, verdict_sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.records import Bottleneck, Confidence, Distances, Finding, Kernel
    from rooflens.model.unprofiled import InProgram
    from rooflens.model.verdict.bottleneck import Case
    from rooflens.model.verdict.thresholds import Thresholds

_CONFIDENCE: tuple[Confidence, ...] = ("high", "medium", "low")
_DOUBTS = frozenset(
    {
        "short_and_replayed",
        "share_over_one",
        "clocks_moved",
        "dram_clock_low",
        "partial_counters",
        "no_flop_counters",
        "one_side_only",
        "slower_while_profiled",
        "tensor_flop_estimated",
        "tensor_flop_unknown",
        "tensor_counter_reads_zero",
        "tensor_work_not_measured",
        "tcgen05_without_operation_counters",
        "wgmma_count_estimated",
    }
)
"""Flags that lower confidence by one step each."""
_LACKING = frozenset({"no_flop_counters", "sol_pair_only", "partial_counters", "one_side_only"})
"""Flags of a report from which more could be learned."""
_READY = frozenset({"selected", "not_selected"})
"""States of a warp that could go on."""
WHAT_FILLS_A_UNIT = frozenset(
    {
        "uncoalesced_global_load",
        "uncoalesced_global_store",
        "local_memory",
        "bank_conflicts",
        "thread_divergence",
        "partial_warps",
        "contended_atomics",
        "unfused_arithmetic",
        "slow_fp64",
        "fp64_divisions",
        "tensor_cores_unused",
    }
)
"""Findings about what fills a unit. Where there is none, relieving a full unit goes before waits and warps."""
_FEW_WARPS = 0.25
"""A quarter of the warp slots: where nothing else is known, fewer warps count as the reason for waiting."""
_PROVISIONAL = frozenset({"latency", "overhead"})
"""Classes that say that no unit is busy: a unit that was not measured might be."""


class Decision(Struct, frozen=True):
    """What is decided before anything is found: the class and its wall.

    Attributes:
        wall: The resource of the wall; None for latency, overhead and unknown.
        top_share: The largest share of any resource, 0 to 1; None where none is known.
        is_provisional: The class says that no unit is busy, and stands on one side alone: the other may be.
        full_for_a_while: The series named the wall: its unit is full on the plateau of the run, and none is on average.
    """

    bound: Bound
    wall: Bottleneck | None
    at_roof: bool
    memory: Bottleneck | None
    compute: Bottleneck | None
    top_share: float | None
    is_provisional: bool
    full_for_a_while: bool


def decide(case: Case) -> Decision:
    """Decide which wall one kernel hits."""
    memory, compute = memory_bottleneck(case), compute_bottleneck(case)
    top = _top_share(memory, compute)
    bound, wall = _decide(case, memory, compute, top or 0.0)
    is_provisional = bound in _PROVISIONAL and (memory is None or compute is None)
    return Decision(
        bound=bound,
        wall=wall,
        at_roof=bound != "unknown" and wall is not None and _at_roof(case, wall),
        memory=memory,
        compute=compute,
        top_share=None if is_provisional else top,
        is_provisional=is_provisional,
        full_for_a_while=bound in {"memory", "compute"} and (top or 0.0) < case.limits.bound_share,
    )


def _top_share(memory: Bottleneck | None, compute: Bottleneck | None) -> float | None:
    return max((side.share for side in (memory, compute) if side is not None), default=None)


def write_verdict(
    case: Case, decision: Decision, distances: Distances, findings: Sequence[Finding], *, with_evidence: bool = True
) -> Verdict:
    """Put what was decided and what was found into words; the findings that cost time make the first moves.

    Without its lines of evidence, which neither totals nor a store hold, that takes two thirds of the time.
    """
    bound, wall = decision.bound, decision.wall
    costing = tuple(finding for finding in findings if finding.severity != "note")
    causes = costing if bound == "latency" else ()
    phases = case.phases if decision.full_for_a_while else None
    sides = decision.memory, decision.compute
    unmeasured = bound == "latency" and not _explains_the_wait(case, distances, causes)
    left = distances.headroom if unmeasured else None
    facts = Facts(case.kernel, case.levels, case.pipes, *sides, wall, causes, _waiting(case), phases, unmeasured, left)
    moves = _moves(case, decision, costing, unmeasured=unmeasured)
    return Verdict(
        bound=bound,
        resource=wall.resource if wall else None,
        at_roof=decision.at_roof,
        cause=NOT_MEASURED if unmeasured else _cause(case, decision, causes),
        distances=distances,
        confidence=_confidence(case, decision),
        sentence=verdict_sentence(bound, facts, moves, at_roof=decision.at_roof),
        evidence=evidence_lines(bound, facts, case.limits.occupancy_gap_share) if with_evidence else (),
        advice=moves,
        bottleneck=wall or busiest_unit(case, *sides),
    )


def _at_roof(case: Case, wall: Bottleneck) -> bool:
    """Judge against the attainable roof where one is known; a stage can be at its peak all the same.

    DRAM must be near its peak at its own clock, too: at the profiled one it may have been slower.
    """
    limits = case.limits
    if wall.resource == "dram" and device_dram_share(case.kernel, wall.share) < limits.at_roof_device_share:
        return False
    return max(wall.share, attained_share(case, wall) or 0.0) >= limits.at_roof_share


def _decide(
    case: Case, memory: Bottleneck | None, compute: Bottleneck | None, top: float
) -> tuple[Bound, Bottleneck | None]:
    limits = case.limits
    if case.kernel.failed:
        return "unknown", None
    if _is_overhead(case, top):
        return "overhead", None
    if top < limits.bound_share:
        return _without_busy_unit(case, is_measured=memory is not None or compute is not None)
    if memory is None or compute is None:
        return ("memory", memory) if memory is not None else ("compute", compute)
    wall = memory if memory.share >= compute.share else compute
    if abs(memory.share - compute.share) < limits.balanced_lead:
        return "balanced", wall
    return ("memory" if wall is memory else "compute"), wall


def _without_busy_unit(case: Case, *, is_measured: bool) -> tuple[Bound, Bottleneck | None]:
    """Decide on a kernel none of whose units is busy on average: its plateau, or that it waits."""
    full = plateau_bottleneck(case)
    if full is not None:
        return ("memory" if full.resource in case.levels else "compute"), full
    return ("latency" if is_measured or _waits(case) else "unknown"), None


def _waits(case: Case) -> bool:
    """Return whether launch, stalls or NVIDIA's rule say that a kernel waits of which no unit was measured."""
    said = read_nvidia(case.kernel.rules).bottleneck or ""
    return _shows_waiting(case) or "latency" in SAME_CLASSES.get(said, ())


def _shows_waiting(case: Case) -> bool:
    """Return whether launch or stalls show a usual reason for waiting."""
    counters, limits = case.kernel.counters, case.limits
    few_blocks = counters.get("waves", limits.small_grid_waves) < limits.small_grid_waves
    few_warps = counters.get("theoretical_occupancy", 1.0) < _FEW_WARPS
    stalled = max((share for reason, share in case.kernel.stalls.items() if reason not in _READY), default=0.0)
    return few_blocks or few_warps or stalled > limits.dominant_stall


def _is_overhead(case: Case, top: float) -> bool:
    return _waiting(case) is not None or (_is_short(case.kernel, case.limits) and top < case.limits.bound_share)


def _is_short(kernel: Kernel, limits: Thresholds) -> bool:
    return kernel.duration_ns is not None and kernel.duration_ns < limits.overhead_duration_ns


def _waiting(case: Case) -> InProgram | None:
    """Return the kernel's typical launch where the gaps around it outweigh its time."""
    return case.in_program if case.in_program is not None and case.in_program.gap_outweighs else None


def _explains_the_wait(case: Case, distances: Distances, causes: Sequence[Finding]) -> bool:
    """Return whether it is known why a kernel waits.

    Stalls say what warps wait for. Without them a limiter does that explains most of what could be won, or of which
    nobody can tell how much it explains.
    """
    if _has_stalls(case.kernel):
        return bool(causes)
    return any(cause.severity == "limiter" and _is_most(cause, distances, case.limits) for cause in causes)


def _has_stalls(kernel: Kernel) -> bool:
    if kernel.stalls:
        return True
    return "warp_latency_cycles" in kernel.counters and any(f"stall_{why}_cycles" in kernel.counters for why in STALLS)


def _is_most(cause: Finding, distances: Distances, limits: Thresholds) -> bool:
    """Return whether the gain of a cause is most of the headroom: factors multiply, so by their logarithms."""
    gain, headroom = cause.speedup_up_to, distances.headroom
    if gain is None or headroom is None:
        return True
    return math.log(gain) >= limits.explaining_part_of_headroom * math.log(headroom)


def _cause(case: Case, decision: Decision, causes: tuple[Finding, ...]) -> str | None:
    bound = decision.bound
    if bound == "latency":
        return causes[0].title
    if bound == "overhead":
        return "gaps around its launches" if _waiting(case) else "as short as its launch"
    if bound == "unknown":
        return failure_words(case.kernel) if case.kernel.failed else "missing counters"
    return "full for a part of its run" if decision.full_for_a_while else None


def _moves(case: Case, decision: Decision, costing: Sequence[Finding], *, unmeasured: bool) -> tuple[str, ...]:
    """Choose what can help: what was found, else what helps at such a wall, and last how to learn more.

    Where it was not measured why a kernel waits, only what limits it stands before how to learn that.
    """
    if case.kernel.failed:
        return advice.failed_moves(case.kernel, case.command_line)
    if unmeasured and not_profiled(case.kernel) is None:
        limiting = tuple(finding.move for finding in costing if finding.severity == "limiter")
        others = tuple(finding.move for finding in costing if finding.severity != "limiter")
        return (*limiting, *advice.collect_moves(case.kernel, case.command_line), *others)
    found = tuple(finding.move for finding in costing)
    at_wall = _wall_moves(case, decision)
    first = at_wall[:1] if _is_wall_first(decision, costing) else ()
    moves = (*first, *found) if found else at_wall
    is_lacking = not _LACKING.isdisjoint(case.flags)
    collect = advice.collect_moves(case.kernel, case.command_line) if is_lacking or not moves else ()
    return tuple(dict.fromkeys((*moves, *collect)))


def _is_wall_first(decision: Decision, costing: Sequence[Finding]) -> bool:
    """Return whether the full unit goes first: nothing says what fills it, and filling it further is no aim.

    DRAM below its roof is still to be filled, and so is a unit that is full for a part of the run only.
    """
    wall = decision.wall
    below_its_roof = wall is not None and wall.resource == "dram" and not decision.at_roof
    filling = below_its_roof or decision.full_for_a_while
    return not filling and not any(finding.id in WHAT_FILLS_A_UNIT for finding in costing)


def _wall_moves(case: Case, decision: Decision) -> tuple[str, ...]:
    bound, wall, at_roof = decision.bound, decision.wall, decision.at_roof
    if wall is None or bound not in {"memory", "compute", "balanced"}:
        return ()
    if bound == "memory" or wall.resource in case.levels:
        level = "lsu" if is_lsu_full(case.levels, wall.resource) else wall.resource
        asked_bytes = None if "atomics_cross_twice" in case.flags else case.levels["l2"].amount_bytes
        return advice.memory_moves(case.kernel, case.levels, level, at_roof=at_roof, asked_bytes=asked_bytes)
    return advice.compute_moves(case.kernel, wall.resource, wall.share, at_roof=at_roof)


def _confidence(case: Case, decision: Decision) -> Confidence:
    sides = (decision.wall, decision.memory, decision.compute)
    if decision.bound == "unknown" or any(side is not None and is_stand_in(case, side) for side in sides):
        return "low"
    if decision.is_provisional and _waiting(case) is None:
        return "low"
    doubts = len(_DOUBTS.intersection(case.flags)) + decision.full_for_a_while
    return _CONFIDENCE[min(doubts, len(_CONFIDENCE) - 1)]
