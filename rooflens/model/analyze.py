"""Analyze kernels: from resolved counters to positions, verdict and flags. Pure: no input, no output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from rooflens.model.findings.does import find_what_it_does
from rooflens.model.findings.find import find_findings
from rooflens.model.findings.stalls import stall_shares
from rooflens.model.keys import first_key, short_names
from rooflens.model.records import Analysis, Finding, JudgedLoop, Kernel, Outside, Pipe, held_once, mapping_of
from rooflens.model.roofline.attainable import attainable_roofs, with_attainable
from rooflens.model.roofline.flops import Flops, count_flops
from rooflens.model.roofline.levels import place_levels, shares_of
from rooflens.model.roofline.pipes import place_pipes
from rooflens.model.roofline.work import main_unit
from rooflens.model.verdict.decide import decide, make_verdict
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.flags import find_flags
from rooflens.model.verdict.library import library_of, role_of
from rooflens.model.verdict.nvidia_rules import read_nvidia
from rooflens.model.verdict.phases import find_phases
from rooflens.model.verdict.thresholds import Thresholds, default_thresholds

MODEL_VERSION = 10
"""Raised whenever the same counters would give other numbers, verdicts or advice."""


def analyze(kernel: Kernel, limits: Thresholds | None = None, outside: Outside | None = None) -> Analysis:
    """Say everything the model knows of a kernel.

    Args:
        kernel: Its resolved counters.
        limits: Thresholds; the shipped ones by default.
        outside: What is known from outside the profile; nothing by default.
    """
    return analyze_all([kernel], limits or default_thresholds(), [outside or Outside()])[0]


def analyze_all(kernels: Sequence[Kernel], limits: Thresholds, outsides: Sequence[Outside]) -> list[Analysis]:
    """Say everything the model knows of some kernels, each for itself.

    They go through each stage together, which takes a third less time than one kernel after the other: what a stage
    runs through then stays in the caches of the processor.

    Args:
        kernels: Their resolved counters.
        limits: Thresholds.
        outsides: What is known from outside the profile of each.
    """
    flops = [count_flops(kernel) for kernel in kernels]
    pipes = [place_pipes(kernel, counted) for kernel, counted in zip(kernels, flops, strict=True)]
    placed = [_kernel_facts(limits, *one) for one in zip(kernels, outsides, flops, pipes, strict=True)]
    decided = [
        decide(replace(facts, flags=flags)) for facts, flags in zip(placed, map(find_flags, placed), strict=True)
    ]
    findings = find_findings(decided)
    return [analysis_of(*one) for one in zip(decided, findings, strict=True)]


def _kernel_facts(limits: Thresholds, kernel: Kernel, outside: Outside, flops: Flops, pipes: dict[str, Pipe]) -> Facts:
    # Intensities are made of FLOPs, unless these are the minority of the work.
    levels = place_levels(kernel, flops.total if main_unit(pipes.values()) == "FLOP" else None)
    if outside.attainable is not None:
        levels, pipes = with_attainable(levels, pipes, attainable_roofs(kernel, outside.attainable))
    return Facts(
        kernel,
        levels,
        pipes,
        shares_of(levels, pipes),
        stall_shares(kernel),
        limits,
        library=library_of(kernel.name, kernel.function_name),
        flops=flops,
        phases=find_phases(kernel.series),
        outside=outside,
        does=find_what_it_does(kernel),
    )


def analysis_of(facts: Facts, findings: tuple[Finding, ...]) -> Analysis:
    """Put what is known of a decided kernel together, with its verdict."""
    kernel, flops = facts.kernel, facts.flops
    loops: tuple[JudgedLoop, ...] = ()
    if kernel.inside is not None:
        from rooflens.model.verdict.inside import judged  # noqa: PLC0415 - few kernels are looked into

        loops = judged(facts, kernel.inside)
    by_dtype: dict[str, float] = defaultdict(float)
    for work in flops.work:
        by_dtype[work.dtype_key] += work.ops
    verdict, key = make_verdict(facts, findings), facts.outside.key or first_key(kernel)
    if kernel.sources:
        from rooflens.model.source.edits import with_edits  # noqa: PLC0415 - few kernels have their source

        verdict = replace(verdict, moves=with_edits(kernel, verdict.moves, findings, key))
    return Analysis(
        kernel=kernel,
        levels=facts.levels,
        pipes=facts.pipes,
        flop=mapping_of(tuple(by_dtype.items())),
        flop_source=mapping_of(tuple({work.dtype_key: work.source for work in flops.work}.items())),
        flop_total=flops.total and held_once(flops.total),
        flop_uncounted=flops.uncounted,
        flop_per_s=kernel.per_s(flops.total),
        flop_peak_per_s=flops.peak_per_s,
        verdict=verdict,
        nvidia=read_nvidia(kernel.rules),
        flags=facts.flags,
        launches=facts.outside.launches,
        findings=findings,
        phases=facts.phases,
        key=key,
        in_program=facts.outside.in_program,
        short_name=facts.outside.short_name or short_names([kernel.name])[kernel.name],
        role=role_of(kernel.name, kernel.function_name, facts.library),
        library=facts.library,
        loops=loops,
    )
