"""A ladder: versions of one program, each beside the library that does the same, and the unit that each keeps busiest.

The units stand in the order of the pyramid, from DRAM up to the pipes, so that the busiest one of each rung
moves to the right as the rungs get faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rooflens.model.records import LEVELS, Analysis, AnalyzedReport, ratio, timed
from rooflens.report.content import Content
from rooflens.report.page.sweeps import LADDERS, Step, Sweep

_ISSUE = "issue"


class Unit(Struct, frozen=True):
    """A memory level, the issue slots, or a pipe: one column of a ladder."""

    name: str
    is_memory: bool


class Rung(Struct, frozen=True):
    """One version of the program.

    Attributes:
        cublas_share: Speed as a part of cuBLAS's at the same type, both without the profiler; None where not timed.
        time_ns: Kernel time of one iteration without the profiler; None where not timed.
        step_up: How much faster it is than the rung before, without the profiler; None for the first.
        shares: Busy part of each unit by its name, weighted by time; None where the report does not tell.
        busiest: The unit that its longest kernel is said to keep busiest; None where no share is known.
        roof: The unit whose roof is above it in the plane.
    """

    step: Step
    cublas_share: float | None
    time_ns: float | None
    step_up: float | None
    shares: Mapping[str, float | None]
    busiest: str | None
    roof: str | None


class Ladder(Struct, frozen=True):
    """All versions of one program, in order."""

    units: tuple[Unit, ...]
    rungs: tuple[Rung, ...]

    @property
    def has_cublas(self) -> bool:
        """True where cuBLAS was timed for a rung."""
        return any(rung.cublas_share is not None for rung in self.rungs)

    @property
    def longest_share(self) -> float:
        """The largest part of cuBLAS's speed, at least 1: the length of the longest bar."""
        return max(1.0, *(rung.cublas_share or 0.0 for rung in self.rungs))

    @property
    def way(self) -> tuple[str, ...]:
        """The busiest units in the order in which they take over."""
        busiest = [rung.busiest for rung in self.rungs if rung.busiest is not None]
        return tuple(name for at, name in enumerate(busiest) if at == 0 or busiest[at - 1] != name)


def ladder_of(sweep: Sweep, content: Content) -> Ladder | None:
    """Read a sweep as a ladder; None if its cases are not versions of one program."""
    if sweep.varied not in LADDERS:
        return None
    reports = {report.run.digest: report for report in content.reports}
    mine = [reports[step.checked.digest] for step in sweep.steps]
    units = _units([analysis for report in mine for analysis in timed(report.analyses)])
    rungs: list[Rung] = []
    for step, report in zip(sweep.steps, mine, strict=True):
        rungs.append(_rung(step, report, units, sweep, rungs[-1] if rungs else None))
    return Ladder(units, tuple(rungs))


def _units(analyses: Sequence[Analysis]) -> tuple[Unit, ...]:
    """Choose the columns: levels from the far one to the near one, issue slots, what is busiest, what did the work."""
    memory = [Unit(name, is_memory=True) for name in LEVELS if any(a.levels[name].share is not None for a in analyses)]
    busiest = [a.verdict.bottleneck.resource for a in analyses if a.verdict.bottleneck is not None]
    work = [name for a in analyses for name, pipe in a.pipes.items() if pipe.is_arithmetic and pipe.amount]
    issue = [_ISSUE] if any(_share(a, _ISSUE) is not None for a in analyses) else []
    others = [name for name in busiest if name is not None and name not in LEVELS and name not in work]
    return (*memory, *(Unit(name, is_memory=False) for name in dict.fromkeys([*issue, *others, *work])))


def _rung(step: Step, report: AnalyzedReport, units: Sequence[Unit], sweep: Sweep, before: Rung | None) -> Rung:
    run = report.unprofiled
    time_ns = run.kernel_ns / run.iterations if run is not None and run.kernel_ns else None
    shares = {unit.name: _mean(timed(report.analyses), unit.name) for unit in units}
    return Rung(
        step=step,
        cublas_share=run.cublas_share if run is not None else None,
        time_ns=time_ns,
        step_up=ratio(before.time_ns, time_ns) if before is not None else None,
        shares=shares,
        busiest=_busiest(timed(report.analyses)),
        roof=_roof(step, sweep),
    )


def _mean(analyses: Iterable[Analysis], name: str) -> float | None:
    """Weight a unit's share by the time of the kernels; None where one of them does not tell."""
    parts = [(_share(analysis, name), analysis.gpu_time_ns or 0.0) for analysis in analyses]
    total_ns = sum(time_ns for _, time_ns in parts)
    if not total_ns or any(share is None for share, _ in parts):
        return None
    return sum((share or 0.0) * time_ns for share, time_ns in parts) / total_ns


def _busiest(analyses: Iterable[Analysis]) -> str | None:
    longest = max(analyses, key=lambda analysis: analysis.gpu_time_ns or 0.0, default=None)
    found = longest.verdict.bottleneck if longest is not None else None
    return found.resource if found is not None else None


def _share(analysis: Analysis, name: str) -> float | None:
    if name in analysis.levels:
        return analysis.levels[name].share
    return analysis.pipes[name].share if name in analysis.pipes else None


def _roof(step: Step, sweep: Sweep) -> str | None:
    """Name what bounds it at its intensity: DRAM left of the ridge of its pipe, that pipe right of it."""
    roof, times = step.roof_at(step.intensity_flop_per_byte), step.checked.times
    if roof is None or sweep.memory is None:
        return None
    return "dram" if roof != times.peak_per_s else times.pipe
