"""Findings about launches: kernels as short as their launch, and gaps around launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.format import duration
from rooflens.model.findings.rule import LATENCY, FindingRule, Found
from rooflens.model.records import Evidence

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts


def short_kernel(facts: Facts) -> Found | None:
    """Say that the kernel is as short as its launch.

    A launch costs a few microseconds of host time, and a kernel takes about as long to fill the GPU and to drain it.
    Tuning such a kernel gains little; launching fewer gains more. Counter: the GPU time of the launch. Confirm with
    an un-profiled timeline: there are gaps between such kernels. It does not show what could be fused with it.

    Try:
    - replay many launches as one with a CUDA graph (`cudaGraphLaunch`, `torch.compile(mode="reduce-overhead")`)
    - fuse it with its neighbours: `torch.compile`, one Triton kernel, a CUTLASS epilogue
    - batch: one launch over all inputs, as grouped GEMMs and optimizers with `foreach=True` or `fused=True` do
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
    """Say that the GPU is idle around a launch of this kernel for longer than the kernel runs.

    The host launches too late, copies or waits. Half of each gap counts for the launch before it and half for the one
    after it; the median launch counts, so that one long pause changes nothing. How much of the whole program's time is
    gaps is stated for the program, not for its kernels. Source: a trace of a run without the profiler. Confirm on a
    timeline. It does not show what the host does in the gaps.

    Try:
    - look at what the host does in the gap with `nsys profile` or `torch.profiler`
    - remove what makes it wait: `.item()`, `.cpu()`, `cudaDeviceSynchronize`, copies from pageable memory
    - launch ahead or all at once: a CUDA graph (`torch.cuda.graph`, `torch.compile(mode="reduce-overhead")`)
    - load the next input in the meantime: `pin_memory=True`, `non_blocking=True`, more data-loader workers
    """
    launch = facts.in_program
    if launch is None or not launch.gap_outweighs:
        return None
    source = "a trace without the profiler, median of the launches"
    return Found(
        evidence=(
            Evidence("gap around a launch", launch.gap_ns, "ns", source),
            Evidence("duration of a launch", launch.time_ns, "ns", source),
        ),
        move="capture the launches in a CUDA graph and do not make the host wait: the GPU is idle for "
        f"{duration(launch.gap_ns)} around a launch of {duration(launch.time_ns)}",
        bears_on=frozenset({LATENCY}),
    )


LAUNCH: tuple[FindingRule, ...] = (
    FindingRule("short_kernel", "as short as its launch", short_kernel, (("duration_ns",),)),
    FindingRule("launch_gaps", "gaps around its launches", launch_gaps, (("in_program",),)),
)
