"""Findings about launches: kernels as short as their launch, and gaps between kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import duration, percent
from rooflens.model.findings.rule import LATENCY, FindingRule, Found
from rooflens.model.records import Evidence

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts


def short_kernel(facts: Facts) -> Found | None:
    """Say that the kernel is as short as its launch.

    A launch costs some microseconds of host time, and a kernel needs about as long to fill the GPU and to empty it.
    Tuning such a kernel gains little; launching fewer gains more. Counter: the GPU time of the launch. Confirm with
    an un-profiled timeline: gaps stand between such kernels. It does not show what could be fused with it.
    """
    time_ns = facts.kernel.duration_ns
    if time_ns is None or time_ns >= facts.limits.overhead_duration_ns:
        return None
    return Found(
        evidence=(facts.measured("duration_ns", "ns"),),
        move=f"fuse it with its neighbours, batch more work into it, or launch it from a CUDA graph: it runs "
        f"{duration(time_ns)}, as short as its launch",
        bears_on=frozenset({LATENCY}),
    )


def launch_gaps(facts: Facts) -> Found | None:
    """Say that no kernel runs for part of the program's time.

    It is a fact of the program and not of the kernel: the host launches too late, copies or waits. A kernel is bound by
    it only where its verdict says so; for the others it is a note. Source: a run without the profiler. Confirm
    on a timeline. It does not show what the host does in the gaps.
    """
    gaps = facts.gap_share
    if gaps is None or gaps <= facts.limits.overhead_gap_share:
        return None
    return Found(
        evidence=(Evidence("time without a kernel", gaps, "share", "a run without the profiler"),),
        move=f"capture the launches in a CUDA graph and keep the host from waiting: for {percent(gaps)} of the "
        f"un-profiled run no kernel ran",
        bears_on=frozenset({LATENCY}),
        severity="limiter" if facts.bound == "overhead" else "note",
    )


LAUNCH: tuple[FindingRule, ...] = (
    FindingRule("short_kernel", "as short as its launch", short_kernel, (("duration_ns",),)),
    FindingRule("launch_gaps", "gaps between kernels", launch_gaps, (("gap_share",),)),
)
