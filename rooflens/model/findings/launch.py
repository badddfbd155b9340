"""Findings about launches: kernels as short as their launch, and gaps beside launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import duration
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
        f"{duration(time_ns)}, no longer than a launch takes",
        bears_on=frozenset({LATENCY}),
    )


def launch_gaps(facts: Facts) -> Found | None:
    """Say that the GPU waits longer beside a launch of this kernel than the kernel runs.

    The host launches too late, copies or waits. Each gap is half that of the launch before it and half that of the one
    after it; the typical launch counts, so that one long pause says nothing. How much of the whole program is gaps
    is said of the program and not of its kernels. Source: a trace of a run without the profiler. Confirm on a
    timeline. It does not show what the host does in the gaps.
    """
    launch = facts.in_program
    if launch is None or not launch.gap_outweighs:
        return None
    source = "a trace without the profiler, median of the launches"
    return Found(
        evidence=(
            Evidence("gap beside a launch", launch.gap_ns, "ns", source),
            Evidence("time of a launch", launch.time_ns, "ns", source),
        ),
        move=f"capture the launches in a CUDA graph and keep the host from waiting: the GPU waits "
        f"{duration(launch.gap_ns)} beside a launch of {duration(launch.time_ns)}",
        bears_on=frozenset({LATENCY}),
    )


LAUNCH: tuple[FindingRule, ...] = (
    FindingRule("short_kernel", "as short as its launch", short_kernel, (("duration_ns",),)),
    FindingRule("launch_gaps", "gaps beside its launches", launch_gaps, (("in_program",),)),
)
