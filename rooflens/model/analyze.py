"""Analyze kernels: from resolved counters to positions, verdict and flags. Pure: no input, no output."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rooflens.model.findings.find import find_findings
from rooflens.model.findings.rule import Facts
from rooflens.model.keys import first_key
from rooflens.model.records import Analysis, Outside
from rooflens.model.roofline.attainable import attainable_roofs, with_attainable
from rooflens.model.roofline.flops import Flops, count_flops
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
    from rooflens.model.records import Kernel
    from rooflens.model.verdict.thresholds import Thresholds

MODEL_VERSION = 2
"""Raised whenever the same counters would give other numbers or verdicts."""


def analyze(kernel: Kernel, limits: Thresholds | None = None, outside: Outside | None = None) -> Analysis:
    """Say everything the model knows of one kernel.

    Args:
        kernel: Its resolved counters.
        limits: Thresholds; the shipped ones by default.
        outside: What is known from outside the profile; nothing by default.
    """
    outside = outside or Outside()
    limits = limits or default_thresholds()
    flops = count_flops(kernel)
    pipes = place_pipes(kernel, flops)
    flop, flop_source = _by_dtype(flops)
    counted = sum(work.ops for work in flops.work if work.is_float and work.is_counted)
    flop_total = counted if flops.complete else None
    levels = place_levels(kernel, placed_flop(pipes, flop_total))
    if outside.attainable is not None:
        levels, pipes = with_attainable(levels, pipes, attainable_roofs(kernel, outside.attainable))
    flags = find_flags(kernel, levels, pipes, flops, limits)
    if outside.slowdown is not None and outside.slowdown > limits.slowdown:
        flags = tuple(sorted((*flags, "slower_while_profiled")))
    duration_ns = kernel.duration_ns
    phases = find_phases(kernel.series)
    case = Case(
        kernel, levels, pipes, flags, limits, outside.in_program, phases, outside.command_line, outside.compulsory_bytes
    )
    decision = decide(case)
    distances = find_distances(case, decision.bound, decision.top_share, _math_ns(flops, duration_ns))
    findings = find_findings(
        Facts(
            kernel=kernel,
            levels=levels,
            pipes=pipes,
            flags=flags,
            bound=decision.bound,
            wall=decision.wall,
            at_roof=decision.at_roof,
            distances=distances,
            limits=limits,
            phases=phases,
            in_program=outside.in_program,
            full_for_a_while=decision.full_for_a_while,
        )
    )
    return Analysis(
        kernel=kernel,
        levels=levels,
        pipes=pipes,
        flop=flop,
        flop_source=flop_source,
        flop_total=flop_total,
        flop_per_s=flop_total / duration_ns * 1e9 if flop_total is not None and duration_ns else None,
        flop_peak_per_s=_mixed_peak(flops),
        verdict=write_verdict(case, decision, distances, findings),
        nvidia=read_nvidia(kernel.rules),
        flags=flags,
        launches=outside.launches,
        findings=findings,
        phases=phases,
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
