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

    Try:
    - replay many launches as one with a CUDA graph (`cudaGraphLaunch`, `torch.compile(mode="reduce-overhead")`)
    - fuse it with its neighbours: `torch.compile`, one Triton kernel, an epilogue of CUTLASS
    - batch: one launch over all inputs, as grouped products and optimizers with `foreach=True` or `fused=True` do
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

    Try:
    - look at what the host does in the gap with `nsys profile` or `torch.profiler`
    - take out what makes it wait: `.item()`, `.cpu()`, `cudaDeviceSynchronize`, copies from memory that is not pinned
    - launch ahead or all at once: a CUDA graph (`torch.cuda.graph`, `torch.compile(mode="reduce-overhead")`)
    - load the next input meanwhile: `pin_memory=True`, `non_blocking=True`, more workers of the loader
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
