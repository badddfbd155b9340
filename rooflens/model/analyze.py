"""Analyze kernels: from resolved counters to positions, verdict and flags. Pure: no input, no output."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.model.findings.find import find_findings
from rooflens.model.findings.rule import Facts
from rooflens.model.keys import first_key
from rooflens.model.records import Analysis, Outside
from rooflens.model.roofline.attainable import attainable_roofs, with_attainable
from rooflens.model.roofline.flops import count_flops
from rooflens.model.roofline.levels import place_levels
from rooflens.model.roofline.pipes import place_pipes
from rooflens.model.roofline.work import placed_flop
from rooflens.model.verdict.bottleneck import Case
from rooflens.model.verdict.decide import decide, write_verdict
from rooflens.model.verdict.distances import find_distances
from rooflens.model.verdict.flags import find_flags
from rooflens.model.verdict.nvidia_rules import read_nvidia
from rooflens.model.verdict.phases import find_phases
from rooflens.model.verdict.thresholds import default_thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.records import Distances, Finding, Kernel, Level, Pipe, Verdict
    from rooflens.model.roofline.flops import Flops
    from rooflens.model.verdict.decide import Decision
    from rooflens.model.verdict.thresholds import Thresholds

MODEL_VERSION = 4
"""Raised whenever the same counters would give other numbers, verdicts or advice."""


def analyze(kernel: Kernel, limits: Thresholds | None = None, outside: Outside | None = None) -> Analysis:
    """Say everything the model knows of one kernel.

    Args:
        kernel: Its resolved counters.
        limits: Thresholds; the shipped ones by default.
        outside: What is known from outside the profile; nothing by default.
    """
    return analyze_all([kernel], limits or default_thresholds(), [outside or Outside()])[0]


def analyze_all(
    kernels: Sequence[Kernel], limits: Thresholds, outsides: Sequence[Outside], *, with_evidence: bool = True
) -> list[Analysis]:
    """Say everything the model knows of some kernels, each for itself.

    They go through each stage together, which takes a third less time than one kernel after the other: what a stage
    runs through then stays in the caches of the processor.

    Args:
        kernels: Their resolved counters.
        limits: Thresholds.
        outsides: What is known from outside the profile of each.
        with_evidence: Write the verdicts' lines of evidence, too.
    """
    flops = [count_flops(kernel) for kernel in kernels]
    pipes = [place_pipes(kernel, counted) for kernel, counted in zip(kernels, flops, strict=True)]
    placed = [_place(*one) for one in zip(kernels, outsides, flops, pipes, strict=True)]
    cases = [_case(one, limits) for one in placed]
    decisions = [decide(case) for case in cases]
    distances = [_distances(*one) for one in zip(placed, cases, decisions, strict=True)]
    findings = find_findings([_facts(*one) for one in zip(cases, decisions, distances, strict=True)])
    verdicts = [
        write_verdict(*one, with_evidence=with_evidence)
        for one in zip(cases, decisions, distances, findings, strict=True)
    ]
    return [_analysis(*one) for one in zip(placed, cases, findings, verdicts, strict=True)]


class _Placed(Struct, frozen=True):
    """Where a kernel stands.

    Attributes:
        flop_total: Operations that are FLOPs and counted; None where a part is unknown.
    """

    kernel: Kernel
    outside: Outside
    flops: Flops
    flop_total: float | None
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]


def _place(kernel: Kernel, outside: Outside, flops: Flops, pipes: dict[str, Pipe]) -> _Placed:
    counted = sum(work.ops for work in flops.work if work.is_float and work.is_counted)
    flop_total = counted if flops.complete else None
    levels = place_levels(kernel, placed_flop(pipes, flop_total))
    if outside.attainable is not None:
        levels, pipes = with_attainable(levels, pipes, attainable_roofs(kernel, outside.attainable))
    return _Placed(kernel, outside, flops, flop_total, levels, pipes)


def _case(placed: _Placed, limits: Thresholds) -> Case:
    kernel, outside = placed.kernel, placed.outside
    flags = find_flags(kernel, placed.levels, placed.pipes, placed.flops, limits)
    if outside.slowdown is not None and outside.slowdown > limits.slowdown:
        flags = tuple(sorted((*flags, "slower_while_profiled")))
    return Case(
        kernel,
        placed.levels,
        placed.pipes,
        flags,
        limits,
        outside.in_program,
        find_phases(kernel.series),
        outside.command_line,
        outside.compulsory_bytes,
    )


def _distances(placed: _Placed, case: Case, decision: Decision) -> Distances:
    return find_distances(case, decision.bound, decision.top_share, _math_ns(placed.flops, placed.kernel.duration_ns))


def _facts(case: Case, decision: Decision, distances: Distances) -> Facts:
    return Facts(
        kernel=case.kernel,
        levels=case.levels,
        pipes=case.pipes,
        flags=case.flags,
        bound=decision.bound,
        wall=decision.wall,
        at_roof=decision.at_roof,
        distances=distances,
        limits=case.limits,
        phases=case.phases,
        in_program=case.in_program,
        full_for_a_while=decision.full_for_a_while,
    )


def _analysis(placed: _Placed, case: Case, findings: tuple[Finding, ...], verdict: Verdict) -> Analysis:
    kernel, outside, flop_total = placed.kernel, placed.outside, placed.flop_total
    duration_ns = kernel.duration_ns
    flop, flop_source = _by_dtype(placed.flops)
    return Analysis(
        kernel=kernel,
        levels=placed.levels,
        pipes=placed.pipes,
        flop=flop,
        flop_source=flop_source,
        flop_total=flop_total,
        flop_per_s=flop_total / duration_ns * 1e9 if flop_total is not None and duration_ns else None,
        flop_peak_per_s=_mixed_peak(placed.flops),
        verdict=verdict,
        nvidia=read_nvidia(kernel.rules),
        flags=case.flags,
        launches=outside.launches,
        findings=findings,
        phases=case.phases,
        key=outside.key or first_key(kernel),
    )


def _by_dtype(flops: Flops) -> tuple[dict[str, float], dict[str, str]]:
    amounts: dict[str, float] = defaultdict(float)
    sources: dict[str, str] = {}
    for work in flops.work:
        amounts[work.dtype_key] += work.ops
        sources[work.dtype_key] = work.source
    return dict(amounts), sources


def _math_ns(flops: Flops, duration_ns: float | None) -> float | None:
    """Return what the arithmetic needs at its peaks; None where a part of it or of its peaks is unknown."""
    parts = [work for work in flops.work if work.ops and work.is_counted]
    if duration_ns is None or not flops.complete or any(not work.peak_ops_per_s for work in parts):
        return None
    return sum(work.ops / work.peak_ops_per_s for work in parts if work.peak_ops_per_s) * 1e9


def _mixed_peak(flops: Flops) -> float | None:
    """Return the roof of a mix of precisions: total FLOP over the time each part needs at its own peak.

    None when a part's peak is unknown, or when there is no floating-point work.
    """
    parts = [work for work in flops.work if work.is_float and work.ops and work.is_counted]
    if not parts or any(not work.peak_ops_per_s for work in parts):
        return None
    time_s = sum(work.ops / work.peak_ops_per_s for work in parts if work.peak_ops_per_s)
    return sum(work.ops for work in parts) / time_s
