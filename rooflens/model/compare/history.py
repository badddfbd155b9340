"""Each kernel over the runs of a store: its launches added up in each run, followed from run to run.

Runs of one program are put in the order in which they were recorded. From one to the next kernels are matched like the
two sides of a comparison, so a re-tiled or renamed kernel keeps its line. Runs on different GPUs are kept separate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import natural
from rooflens.model.compare.matching import match_launches
from rooflens.model.compare.pairing import program_name
from rooflens.model.records import Analysis, AnalyzedReport, Run, timed
from rooflens.model.summary import median_launch


class Point(Struct, frozen=True):
    """One kernel in one run.

    Attributes:
        analysis: Its median launch.
        launches: How many launches the profiled ones stand for.
        gpu_time_ns: GPU time of all of them; None where one was not timed.
        is_mean: Launch counts differ between the runs of its series, so that its mean launch is followed.
    """

    run: Run
    analysis: Analysis
    launches: int
    gpu_time_ns: float | None
    is_mean: bool = False

    @property
    def time_ns(self) -> float | None:
        """The time that is followed: of all its launches, or of the mean one."""
        total_ns = self.gpu_time_ns
        return total_ns / self.launches if self.is_mean and total_ns is not None else total_ns


class Series(Struct, frozen=True):
    """One kernel over the runs in which it was recorded, oldest first; at least one point."""

    program: str
    gpu: str | None
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """Its name in the newest run."""
        return self.points[-1].analysis.kernel.name

    @property
    def is_mean(self) -> bool:
        """True where its mean launch is followed, because launch counts differ between its runs."""
        return self.points[-1].is_mean

    @property
    def factor(self) -> float | None:
        """Time of the first run over that of the last: above 1 it became faster."""
        first, last = self.points[0].time_ns, self.points[-1].time_ns
        return first / last if len(self.points) > 1 and first and last else None


def histories(reports: Sequence[AnalyzedReport]) -> tuple[Series, ...]:
    """Follow every kernel over the runs, longest in its newest run first; failed kernels are left out."""
    programs: defaultdict[tuple[str, str | None], list[AnalyzedReport]] = defaultdict(list)
    for report in reports:
        well = tuple(timed(report.analyses))
        if well:
            programs[program_name(report.run), well[0].kernel.gpu].append(AnalyzedReport(report.run, well))
    series = [one for (program, gpu), recorded in programs.items() for one in _followed(program, gpu, recorded)]
    return tuple(sorted(series, key=lambda one: -(one.points[-1].gpu_time_ns or 0.0)))


def _followed(program: str, gpu: str | None, reports: Sequence[AnalyzedReport]) -> list[Series]:
    ordered = sorted(reports, key=lambda report: (report.run.created_unix_s or 0, natural(report.run.source)))
    points: list[list[Point]] = []
    before: tuple[Analysis, ...] = ()
    lines: dict[str, int] = {}
    known: dict[str, int] = {}
    for report in ordered:
        kernels = defaultdict(list)
        for analysis in report.analyses:
            kernels[analysis.kernel.name].append(analysis)
        lines = _continued(before, report.analyses, lines)
        taken = set(lines.values())
        for name, launches in kernels.items():
            if name not in lines:
                # A kernel that some runs did without goes on where it comes back under its name.
                earlier = known.get(name)
                lines[name] = len(points) if earlier is None or earlier in taken else earlier
                taken.add(lines[name])
            if lines[name] == len(points):
                points.append([])
            known[name] = lines[name]
            points[lines[name]].append(_point(report.run, launches))
        before = report.analyses
    return [Series(program, gpu, _evened(one)) for one in points]


def _point(run: Run, launches: Sequence[Analysis]) -> Point:
    times = [analysis.gpu_time_ns for analysis in launches]
    known = [time_ns for time_ns in times if time_ns is not None]
    total_ns = sum(known) if len(known) == len(times) else None
    return Point(run, median_launch(launches), sum(analysis.launches for analysis in launches), total_ns)


def _evened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Follow the mean launch where launch counts differ between runs."""
    is_mean = len({point.launches for point in points}) > 1
    return tuple(replace(point, is_mean=is_mean) for point in points)


def _continued(before: Sequence[Analysis], after: Sequence[Analysis], lines: dict[str, int]) -> dict[str, int]:
    """Return the series that each kernel name of a run continues: that of the name it shares most launches with."""
    pairs: Counter[tuple[str, str]] = Counter()
    for match in match_launches([a.kernel for a in before], [a.kernel for a in after]):
        if match.base is not None and match.head is not None:
            pairs[before[match.base].kernel.name, after[match.head].kernel.name] += 1
    found: dict[str, int] = {}
    taken: set[int] = set()
    for (old, new), _ in sorted(pairs.items(), key=lambda item: (item[0][0] != item[0][1], -item[1])):
        if new not in found and lines[old] not in taken:
            found[new] = lines[old]
            taken.add(lines[old])
    return found
