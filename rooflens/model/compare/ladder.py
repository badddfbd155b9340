"""A program over its versions, in order: the ladder that `compare`, `report` and `history` show.

From one version to the next kernels are matched like the two sides of a comparison, so a re-tiled or renamed kernel
goes on. The ladder follows the kernel that takes most of the time; the whole program where no kernel takes half of it.
Nothing is added up over versions, and a time is compared only with that of the same work on the same GPU.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import natural
from rooflens.model.compare.causes import Cause, causes
from rooflens.model.compare.compare import (
    DEFAULT_THRESHOLD,
    OTHER_WORK,
    Comparison,
    Side,
    Spread,
    Timing,
    added,
    asked_alike,
    times,
    under_wave,
)
from rooflens.model.compare.gate import Compared
from rooflens.model.compare.matching import match_launches
from rooflens.model.compare.pairing import Pair, Unpaired, program_name
from rooflens.model.records import Analysis, AnalyzedReport, Run, timed
from rooflens.model.same_work import UnitTime, Work, same_work, time_per_work
from rooflens.model.summary import median_launch

FOLLOWED = 0.5
"""Part of the time of a version that a kernel takes to be followed alone."""


class Point(Struct, frozen=True):
    """One kernel in one version.

    Attributes:
        at: Number of its version, from 0.
        run: Its first recording.
        analysis: Its median launch there.
        launches: How many launches the profiled ones of a recording stand for.
        spread: GPU time of all of them in each recording.
        each: Time of the median launch in each recording.
        under_wave: As in `Timing`.
        is_mean: Launch counts differ between the versions, so that its mean launch is followed.
    """

    at: int
    run: Run
    analysis: Analysis
    launches: int
    spread: Spread
    each: Spread
    under_wave: float
    is_mean: bool = False

    @property
    def gpu_time_ns(self) -> float | None:
        """GPU time of all its launches."""
        return self.spread.median_ns

    @property
    def launch(self) -> Spread:
        """Time of one launch in each recording: the median one, or the mean one where launch counts differ."""
        return self.spread.per(self.launches) if self.is_mean else self.each

    @property
    def followed(self) -> Spread:
        """The time that a series follows: of all its launches, or of the mean one."""
        return self.spread.per(self.launches) if self.is_mean else self.spread

    @property
    def time_ns(self) -> float | None:
        """The median of what is followed."""
        return self.followed.median_ns


class Series(Struct, frozen=True):
    """One kernel over the versions in which it was recorded, in order; at least one point."""

    program: str
    gpu: str | None
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """Its name in the last version."""
        return self.points[-1].analysis.kernel.name

    @property
    def is_mean(self) -> bool:
        """True where its mean launch is followed, because launch counts differ between versions."""
        return self.points[-1].is_mean

    @property
    def factor(self) -> float | None:
        """Time of the first version over that of the last: above 1 it became faster."""
        first, last = self.points[0].time_ns, self.points[-1].time_ns
        return first / last if len(self.points) > 1 and first and last else None

    def within(self, sides: int) -> tuple[Point | None, ...]:
        """Return its point in each of so many versions; None where one lacks it."""
        found = {point.at: point for point in self.points}
        return tuple(found.get(at) for at in range(sides))


class Rung(Struct, frozen=True):
    """One version of a ladder.

    Attributes:
        time: Time of one launch of the followed kernel in each recording, or of the whole program.
        launches: Launches of the followed kernel; of all kernels where the whole program is followed.
        analysis: Median launch of the followed kernel, or of the longest one; None where no kernel was timed.
        to_first: Its time against that of the first version; None where there is nothing to compare.
        to_previous: The same against `previous`.
        previous: Number of the version before it that did the same work on the same GPU.
        changed: What changed since then, the most telling first.
        changed_kernel: The kernel that changed most, where the whole program is followed.
        apart: Why its time is compared with none: `GPU`, `work`, or empty.
        work: Whether it did the work that most versions did; None where no kernel was timed.
        per_work: Its time for a unit of that work; None where no amount is known.
        is_fastest: True for the version to go on from.
    """

    side: Side
    time: Spread
    launches: int
    analysis: Analysis | None
    to_first: Timing | None = None
    to_previous: Timing | None = None
    previous: int | None = None
    changed: tuple[Cause, ...] = ()
    changed_kernel: str = ""
    apart: str = ""
    work: Work | None = None
    per_work: UnitTime | None = None
    is_fastest: bool = False

    @property
    def label(self) -> str:
        """What the version is called."""
        return self.side.label


class Ladder(Struct, frozen=True):
    """A program over its versions.

    Attributes:
        totals: GPU time of the whole program in each version, with the under-wave part of the first.
        series: Its kernels, by their longest time in any version, longest first.
        followed: The kernel that the ladder is about; None where it is about the whole program.
        threshold: Smaller changes count as no change.
    """

    program: str
    rungs: tuple[Rung, ...]
    total: Timing
    totals: tuple[Spread, ...]
    series: tuple[Series, ...]
    followed: Series | None
    threshold: float

    @property
    def labels(self) -> tuple[str, ...]:
        """What the versions are called."""
        return tuple(rung.label for rung in self.rungs)

    @property
    def fastest(self) -> Rung | None:
        """The version to go on from; None where no time is known."""
        return next((rung for rung in self.rungs if rung.is_fastest), None)


class Sides(Struct, frozen=True):
    """What concerns all sides of a comparison together, besides each pair of them.

    Attributes:
        ladders: Each program over its sides.
        unpaired: Programs that not every side has.
    """

    ladders: tuple[Ladder, ...] = ()
    unpaired: tuple[Unpaired, ...] = ()

    @property
    def climbed(self) -> tuple[Ladder, ...]:
        """The ladders of more than two sides: two are said by their pair."""
        return tuple(ladder for ladder in self.ladders if len(ladder.rungs) > 2)

    def climbs(self, comparison: Comparison) -> bool:
        """Return whether a pair of sides is part of a ladder of more than two."""
        return any(ladder.rungs[0].side.digests == comparison.base.digests for ladder in self.climbed)


NO_SIDES = Sides()


def set_sides(pairs: Sequence[Pair], compared: Sequence[Compared]) -> Iterator[Ladder]:
    """Set the sides of each program upon one another: pairs of one base are the sides of one program."""
    found: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        found[pair.base.digests].append(i)
    for of in found.values():
        names = dict.fromkeys(pairs[i].program for i in of)
        name = next(iter(names)) if len(names) == 1 else pairs[of[0]].base.label
        sides = (pairs[of[0]].base, *(pairs[i].head for i in of))
        yield ladder(name, sides, compared[of[0]].comparison.threshold)


def ladder(program: str, sides: Sequence[Side], threshold: float = DEFAULT_THRESHOLD) -> Ladder:
    """Set the versions of a program upon one another, the first one first."""
    gpu = next((one.kernel.gpu for side in sides for one in side.timed), None)
    longest = sorted(_series(program, gpu, sides), key=lambda one: -max(p.gpu_time_ns or 0.0 for p in one.points))
    totals = [Spread(times(map(timed, side.recordings))) for side in sides]
    followed = next((one for one in longest if _is_main(one, totals)), None)
    rungs = _kernel_rungs(sides, followed) if followed else list(_program_rungs(sides, longest))
    return Ladder(
        program,
        rungs=tuple(_compared(rungs, () if followed else longest)),
        total=Timing(totals[0], totals[-1], under_wave(sides[0].timed)),
        totals=tuple(totals),
        series=tuple(longest),
        followed=followed,
        threshold=threshold,
    )


def _is_main(series: Series, totals: Sequence[Spread]) -> bool:
    """Return whether most versions have a kernel, and it takes half of the time of one."""
    shares = [(point.gpu_time_ns or 0.0) / (totals[point.at].median_ns or float("inf")) for point in series.points]
    return len(shares) > len(totals) / 2 and max(shares) >= FOLLOWED


def _kernel_rungs(sides: Sequence[Side], series: Series) -> list[Rung]:
    points = zip(sides, series.within(len(sides)), strict=True)
    return [
        Rung(side, point.launch, point.launches, point.analysis) if point else Rung(side, Spread(()), 0, None)
        for side, point in points
    ]


def _program_rungs(sides: Sequence[Side], series: Sequence[Series]) -> Iterator[Rung]:
    """Make a rung of each whole program, at one number of launches of each kernel; the longest speaks for it."""
    for at, side in enumerate(sides):
        points = [(one, point) for one in series for point in one.points if point.at == at]
        evened = [point.launch.of(one.points[0].launches) if one.is_mean else point.spread for one, point in points]
        main = max((point for _, point in points), key=lambda point: point.gpu_time_ns or 0.0, default=None)
        launches = sum(point.launches for _, point in points)
        yield Rung(side, added(evened), launches, main.analysis if main else None)


def _compared(rungs: Sequence[Rung], series: Sequence[Series]) -> Iterator[Rung]:
    """Compare each rung with the first one and the one before that did the same, and mark the fastest.

    Args:
        rungs: The versions in order.
        series: All kernels where the whole program is followed, else none.
    """
    usual, works = _works(rungs, series)
    apart = _apart(rungs, works)
    known = [at for at, rung in enumerate(rungs) if not apart[at] and rung.time.median_ns]
    fastest = min(known, key=lambda at: rungs[at].time.median_ns or 0.0, default=None)
    beside = rungs[usual].analysis if rungs and not series else None
    for at, rung in enumerate(rungs):
        unit_time = time_per_work(rung.analysis, rung.time.median_ns, beside) if rung.analysis and beside else None
        judged = replace(
            rung,
            apart=apart[at],
            is_fastest=at == fastest and len(known) > 1,
            work=works[at],
            per_work=unit_time,
        )
        earlier = [other for other in known if other < at]
        if earlier and rung.analysis and apart[at] != "work":
            before = earlier[-1]
            old, new = _most_changed(series, before, at) or (rungs[before].analysis, rung.analysis)
            judged = replace(
                judged,
                previous=before,
                changed=causes(old, new) if old and new else (),
                changed_kernel=new.kernel.name if series and new else "",
            )
        if earlier and at in known:
            first, previous = (_timing(rungs[other], rung) for other in (earlier[0], earlier[-1]))
            judged = replace(judged, to_first=first, to_previous=previous)
        yield judged


def _works(rungs: Sequence[Rung], series: Sequence[Series]) -> tuple[int, list[Work | None]]:
    """Find the version whose work most others did, and whether each did the same.

    A whole program did the same where kernels that did other work take next to none of its time.
    """
    gpu = _usual_gpu(rungs)
    own = [at for at, rung in enumerate(rungs) if rung.analysis and rung.analysis.kernel.gpu_model == gpu]
    if not own:
        return 0, [None] * len(rungs)
    if series:
        return own[0], [_work_of_all(rungs, series, own[0], at) for at in range(len(rungs))]
    found = {(one, other): _work(rungs[one], rungs[other]) for one in own for other in own}
    usual = max(own, key=lambda one: sum(bool((work := found[one, other]) and work.same) for other in own))
    return usual, [_work(rungs[usual], rung) for rung in rungs]


def _work(one: Rung, other: Rung) -> Work | None:
    if one.analysis is None or other.analysis is None:
        return None
    return same_work(one.analysis, other.analysis, asked_alike(one.side.runs[0], other.side.runs[0]))


def _work_of_all(rungs: Sequence[Rung], series: Sequence[Series], usual: int, at: int) -> Work | None:
    asked = asked_alike(rungs[usual].side.runs[0], rungs[at].side.runs[0])
    points = [(one.within(len(rungs))[usual], one.within(len(rungs))[at]) for one in series]
    works = [(now, same_work(old.analysis, now.analysis, asked)) for old, now in points if old and now]
    others = [(now.gpu_time_ns or 0.0, work) for now, work in works if not work.same]
    whole_ns = sum(now.gpu_time_ns or 0.0 for _, now in points if now)
    if sum(time_ns for time_ns, _ in others) > OTHER_WORK * whole_ns:
        return max(others, key=lambda one: one[0])[1]
    why = "kernels that did the same work" if works else "no kernel is on both sides"
    return Work(same=bool(works) or None, why=why)


def _usual_gpu(rungs: Sequence[Rung]) -> str | None:
    gpus = Counter(rung.analysis.kernel.gpu_model for rung in rungs if rung.analysis)
    return gpus.most_common(1)[0][0] if gpus else None


def _apart(rungs: Sequence[Rung], works: Sequence[Work | None]) -> list[str]:
    """Say of each version why its time is compared with none: another GPU or other work than most have.

    Versions that ran on a GPU each are a comparison of GPUs.
    """
    gpus = Counter(rung.analysis.kernel.gpu_model for rung in rungs if rung.analysis)
    usual = _usual_gpu(rungs)
    found = []
    for rung, work in zip(rungs, works, strict=True):
        is_else = rung.analysis is not None and rung.analysis.kernel.gpu_model != usual and max(gpus.values()) > 1
        found.append("GPU" if is_else else "work" if work and not work.same else "")
    return found


def _timing(before: Rung, after: Rung) -> Timing:
    return Timing(before.time, after.time, under_wave([before.analysis]) if before.analysis else 0.0)


def _most_changed(series: Sequence[Series], before: int, after: int) -> tuple[Analysis, Analysis] | None:
    """Return the kernel whose time changed most between two versions, in both; None where no kernel is in both."""
    pairs = [(one.within(after + 1)[before], one.within(after + 1)[after]) for one in series]
    known = [(old, new) for old, new in pairs if old and new]
    old, new = max(known, key=lambda p: abs((p[1].time_ns or 0.0) - (p[0].time_ns or 0.0)), default=(None, None))
    return (old.analysis, new.analysis) if old and new else None


def rungs_of(series: Series) -> tuple[Rung, ...]:
    """Set the versions of one kernel upon one another."""
    sides = [Side(point.run.source, (AnalyzedReport(point.run, (point.analysis,)),)) for point in series.points]
    dense = replace(series, points=tuple(replace(point, at=at) for at, point in enumerate(series.points)))
    return tuple(_compared(_kernel_rungs(sides, dense), ()))


def histories(reports: Sequence[AnalyzedReport]) -> tuple[Series, ...]:
    """Follow every kernel over the runs of each program on each GPU, in the order of recording.

    Kernels are in the order of their time in their newest run, longest first; failed ones are left out.
    """
    programs: defaultdict[tuple[str, str | None], list[AnalyzedReport]] = defaultdict(list)
    for report in sorted(reports, key=lambda one: (one.run.created_unix_s or 0, natural(one.run.source))):
        if well := timed(report.analyses):
            programs[program_name(report.run), well[0].kernel.gpu].append(report)
    series = [
        one
        for (program, gpu), recorded in programs.items()
        for one in _series(program, gpu, [Side(report.run.source, (report,)) for report in recorded])
    ]
    return tuple(sorted(series, key=lambda one: -(one.points[-1].gpu_time_ns or 0.0)))


def _series(program: str, gpu: str | None, sides: Sequence[Side]) -> list[Series]:
    """Follow each kernel from side to side, by the launches of their first recordings."""
    points: list[list[Point]] = []
    before: Sequence[Analysis] = ()
    lines: dict[str, int] = {}
    known: dict[str, int] = {}
    for at, side in enumerate(sides):
        recordings = [timed(recording) for recording in side.recordings]
        lines = _continued(before, recordings[0], lines)
        taken = set(lines.values())
        for name in dict.fromkeys(analysis.kernel.name for analysis in recordings[0]):
            if name not in lines:
                # A kernel that some versions did without goes on where it comes back under its name.
                earlier = known.get(name)
                lines[name] = len(points) if earlier is None or earlier in taken else earlier
                taken.add(lines[name])
            if lines[name] == len(points):
                points.append([])
            known[name] = lines[name]
            points[lines[name]].append(_point(at, side, name, recordings))
        before = recordings[0]
    return [Series(program, gpu, _evened(one)) for one in points]


def _point(at: int, side: Side, name: str, recordings: Sequence[Sequence[Analysis]]) -> Point:
    """Sum up the launches of a kernel in each recording that has as many of them as the first."""
    found = [[analysis for analysis in recording if analysis.kernel.name == name] for recording in recordings]
    launches = sum(analysis.launches for analysis in found[0])
    whole = [one for one in found if sum(analysis.launches for analysis in one) == launches]
    medians = [median_launch(one) for one in whole]
    return Point(
        at=at,
        run=side.runs[0],
        analysis=medians[0],
        launches=launches,
        spread=Spread(times(whole)),
        each=Spread(tuple(one.kernel.duration_ns for one in medians if one.kernel.duration_ns is not None)),
        under_wave=under_wave([analysis for one in whole for analysis in one]),
    )


def _evened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Follow the mean launch where launch counts differ between versions."""
    is_mean = len({point.launches for point in points}) > 1
    return tuple(replace(point, is_mean=is_mean) for point in points)


def _continued(before: Sequence[Analysis], after: Sequence[Analysis], lines: dict[str, int]) -> dict[str, int]:
    """Return the series that each kernel name of a version continues: that of the name it shares most launches with."""
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
