"""Add to the kernels of a timeline what reports beside it have counted."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rooflens.format import count
from rooflens.model.program.kernels import OfShape, ProgramKernel, in_order
from rooflens.model.program.matching import Matching
from rooflens.model.program.program import Program
from rooflens.model.records import Analysis
from rooflens.model.summary import median_launch


def refined(program: Program, analyses: Sequence[Analysis]) -> Program:
    """Add verdict and gain from the reports to each kernel that they hold.

    Kernels match by name, grid and block, as for a timeline beside a report; if several launches match, the median one
    counts. The gain applies to the time in the timeline, and never goes below a known floor.

    Args:
        program: The timeline.
        analyses: All launches of the reports; failed ones match nothing.

    Returns:
        The same program; a note says if the reports hold none of its kernels.
    """
    sound = [analysis for analysis in analyses if not analysis.kernel.failed]
    beside = _LaunchMatcher(sound)
    known = {id(one): beside.measured(one) for one in program.every}
    notes = program.notes
    if not any(one.measured for one in known.values()):
        named = count(len({analysis.kernel.name for analysis in sound}), "kernel")
        notes = (*notes, f"none of the reports' {named} is in it: are they of the same program?")
    return replace(
        program,
        kernels=in_order([known[id(one)] for one in program.kernels]),
        every=in_order([*known.values()]),
        notes=notes,
    )


class _LaunchMatcher:
    """Finds the launches of reports that match a launch of a timeline."""

    def __init__(self, analyses: Sequence[Analysis]) -> None:
        self._analyses = analyses
        self._matching = Matching(analysis.kernel for analysis in analyses)

    def measured(self, kernel: ProgramKernel) -> ProgramKernel:
        """Return a row with the counters' verdict and gain; unchanged if no report has the kernel."""
        found = [(shape, self._analysis_of(kernel.name, shape)) for shape in kernel.shapes]
        known = [(shape, analysis) for shape, analysis in found if analysis is not None]
        if not known or kernel.is_communication:
            return kernel
        _, first = known[0]
        verdict = first.verdict
        won = [_won_ns(shape, analysis) for shape, analysis in known]
        gain_ns = kernel.gain_ns
        if any(one is not None for one in won):
            gain_ns = sum(one for one in won if one is not None)
            if kernel.gain_ns is not None and kernel.time_ns:
                rest_ns = kernel.time_ns - sum(shape.time_ns for shape, _ in known)
                gain_ns += kernel.gain_ns * rest_ns / kernel.time_ns
            if kernel.floor_ns is not None:
                gain_ns = min(gain_ns, kernel.time_ns - kernel.floor_ns)
        return replace(kernel, measured=first, bound=verdict.bound, or_bound=verdict.or_bound, gain_ns=gain_ns)

    def _analysis_of(self, name: str, shape: OfShape) -> Analysis | None:
        alike = self._matching.alike(name, shape.grid, shape.block)
        return median_launch([self._analyses[place] for place in alike]) if alike else None


def _won_ns(shape: OfShape, analysis: Analysis) -> float | None:
    """Return what the best move wins in some launches, else the time above the limit; None if neither is known."""
    verdict = analysis.verdict
    factor = verdict.gain.factor if verdict.gain else verdict.limit.over_floor
    return None if factor is None else shape.time_ns * (1 - 1 / factor)
