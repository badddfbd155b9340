"""Which records are one kernel, and the sums of their launches where a page holds too many to draw one by one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rooflens.model.aggregate import aggregate, longest_launch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflens.model.records import Analysis

UNKNOWN_GPU = "unknown GPU"


def gpu_name(analysis: Analysis) -> str:
    """Name the GPU it ran on; never empty."""
    return analysis.kernel.gpu or UNKNOWN_GPU


def kernel_name(analysis: Analysis) -> str:
    """Name the kernel; never empty."""
    return analysis.kernel.name or "(no name)"


def identity(analysis: Analysis) -> tuple[str, str]:
    """Tell kernels apart: by GPU and name."""
    return gpu_name(analysis), kernel_name(analysis)


def timed(analyses: Iterable[Analysis]) -> list[Analysis]:
    """Leave out what failed while it was profiled: it counts in no sum."""
    return [analysis for analysis in analyses if analysis.kernel.status != "failed"]


def group_keys(analyses: Iterable[Analysis]) -> dict[tuple[str, str], str]:
    """Number the kernels in order of falling time: `g0` takes most."""
    times_ns: defaultdict[tuple[str, str], float] = defaultdict(float)
    for analysis in timed(analyses):
        times_ns[identity(analysis)] += analysis.gpu_time_ns or 0.0
    return {kernel: f"g{i}" for i, kernel in enumerate(sorted(times_ns, key=lambda kernel: -times_ns[kernel]))}


def keyed(analyses: Sequence[Analysis]) -> list[tuple[str, Analysis]]:
    """Number the records as they were given."""
    return [(f"k{i}", analysis) for i, analysis in enumerate(analyses)]


def added_up(analyses: Sequence[Analysis]) -> list[tuple[str, Analysis]]:
    """Add launches up by kernel and verdict, under the key of the longest one; failed ones stay by themselves.

    A verdict stands for its own launches only, so that time by verdict stays what it was; so do times, where a launch
    without one would leave its whole sum without.
    """
    parts: defaultdict[tuple[str, ...], list[tuple[str, Analysis]]] = defaultdict(list)
    for key, analysis in keyed(analyses):
        apart = key if analysis.kernel.status == "failed" else str(analysis.gpu_time_ns is None)
        parts[(*identity(analysis), analysis.verdict.bound, apart)].append((key, analysis))
    return [_sum(part) for part in parts.values()]


def _sum(part: Sequence[tuple[str, Analysis]]) -> tuple[str, Analysis]:
    members = [analysis for _, analysis in part]
    longest = longest_launch(members)
    return next(key for key, analysis in part if analysis is longest), aggregate(members)
