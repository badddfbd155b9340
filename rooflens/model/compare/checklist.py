"""A checklist for optimizing a kernel: the best of several runs, their stability, a plateau, a rating.

A run is one launch. Launches are runs of one kernel where they have one name, GPU, launch shape and version of the
program, and do the same FLOPs: what differs in them is noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from rooflens.errors import InputError
from rooflens.format import count, cut_name, percent, plain_name, printable, si
from rooflens.model.compare.pairing import program_name, version_name
from rooflens.model.records import Analysis, AnalyzedReport, timed
from rooflens.model.verdict.sentences import resource_label
from rooflens.model.verdict.thresholds import Thresholds

SAME_WORK = 0.01
"""FLOPs of two launches that differ by no more are the same work."""

NAME_WIDTH = 60


class Asked(Struct, frozen=True, kw_only=True):
    """Requirements on every kernel; shares are 0 to 1, and None requires nothing.

    Attributes:
        level: Memory level or pipe whose share of its peak is meant; by default the busiest unit.
        min_share: Smallest share that the best run must reach.
        best_of: How many runs there must be.
        stable: Smallest rate of the slowest run, as a share of the best one's.
        plateau: Largest gain that each of the last steps may still have, 0.05 for 5 %.
        steps: How many of the last steps are judged for that.
    """

    level: str | None = None
    min_share: float | None = None
    best_of: int | None = None
    stable: float | None = None
    plateau: float | None = None
    steps: int = 2


class Point(Struct, frozen=True):
    """All runs of one kernel in one version, with one amount of work.

    Attributes:
        version: Version of its program, as the file names it.
        runs: Its launches, the best first.
        share: Share of the peak that the best one reaches, 0 to 1; None where it was not measured.
        unit: What that peak is called.
        rating: What the share is called; None without one.
        unmet: The requirements that do not hold, in words.
    """

    name: str
    gpu: str | None
    version: str
    runs: tuple[Analysis, ...]
    share: float | None
    unit: str
    rating: str | None
    unmet: tuple[str, ...] = ()

    @property
    def best_ns(self) -> float:
        """Time of the best run."""
        return self.runs[0].kernel.duration_ns or 0.0

    @property
    def stability(self) -> float:
        """Rate of the slowest run over that of the best: 1 where all take as long."""
        return self.best_ns / (self.runs[-1].kernel.duration_ns or self.best_ns)

    @property
    def flop(self) -> float | None:
        """FLOPs of a run; None where they are not known."""
        return self.runs[0].flop_total


class Climb(Struct, frozen=True):
    """How the rate of a program, or of a kernel, grew from version to version or from size to size.

    Attributes:
        of: The program, or the kernel.
        labels: Versions in the order of their recording, or amounts of work.
        gains: Growth of each step as a share: 0.1 for 10 %.
        unmet: Why there is no plateau, where one is required.
    """

    of: str
    labels: tuple[str, ...]
    gains: tuple[float, ...]
    unmet: tuple[str, ...] = ()


class Checklist(Struct, frozen=True):
    """Everything that was looked at."""

    points: tuple[Point, ...]
    climbs: tuple[Climb, ...]
    failed: tuple[str, ...] = ()

    @property
    def unmet(self) -> tuple[str, ...]:
        """One sentence for each requirement that is not met."""
        of_points = (f"{point_name(point)}: {text}" for point in self.points for text in point.unmet)
        of_climbs = (f"{climb.of}: {text}" for climb in self.climbs for text in climb.unmet)
        return (*self.failed, *of_points, *of_climbs)


def point_name(point: Point) -> str:
    """Name a kernel for a sentence."""
    return _named(point.name)


def _named(name: str) -> str:
    return printable(cut_name(plain_name(name), NAME_WIDTH))


def check(reports: Sequence[AnalyzedReport], asked: Asked, thresholds: Thresholds) -> Checklist:
    """Check the kernels of reports against requirements.

    Raises:
        InputError: No kernel was timed, or no kernel has the unit that `asked.level` names.
    """
    points = tuple(_points(reports, asked, thresholds))
    if not points:
        raise InputError("the reports hold no kernel with a duration", "choose others, or record them again")
    if asked.level and not any(asked.level in run.levels or asked.level in run.pipes for p in points for run in p.runs):
        known = sorted({name for point in points for run in point.runs for name in (*run.levels, *run.pipes)})
        raise InputError(f"no kernel has a unit called `{asked.level}`", f"they have {', '.join(known)}")
    failed = tuple(
        f"{_named(one.kernel.name)}: failed while it was profiled"
        for report in reports
        for one in report.analyses
        if one.kernel.failed
    )
    return Checklist(points, tuple(_climbs(points, reports, asked)), failed)


def _points(reports: Sequence[AnalyzedReport], asked: Asked, thresholds: Thresholds) -> Iterator[Point]:
    for version, runs in _same(reports):
        best_first = tuple(sorted(runs, key=lambda run: run.kernel.duration_ns or 0.0))
        share, unit = _share(best_first[0], asked.level)
        kernel = best_first[0].kernel
        point = Point(kernel.name, kernel.gpu, version, best_first, share, unit, rating(share, thresholds))
        yield replace(point, unmet=tuple(_unmet(point, asked)))


def _same(reports: Iterable[AnalyzedReport]) -> Iterator[tuple[str, list[Analysis]]]:
    """Group launches that are runs of one kernel, with their version."""
    groups: defaultdict[tuple[object, ...], list[list[Analysis]]] = defaultdict(list)
    for report in reports:
        version = version_name(report.run)
        for one in timed(report.analyses):
            kernel = one.kernel
            group = groups[version, kernel.name, kernel.gpu, kernel.grid, kernel.block]
            like = next((runs for runs in group if _same_work(runs[0], one)), None)
            if like is None:
                group.append([one])
            else:
                like.append(one)
    for key, found in groups.items():
        yield from ((str(key[0]), runs) for runs in found)


def _same_work(one: Analysis, other: Analysis) -> bool:
    if one.flop_total is None or other.flop_total is None:
        return one.flop_total is other.flop_total
    return abs(one.flop_total - other.flop_total) <= SAME_WORK * max(one.flop_total, other.flop_total)


def _share(run: Analysis, level: str | None) -> tuple[float | None, str]:
    if level is None:
        nearest = run.verdict.bottleneck
        if nearest is None:
            return None, "its busiest unit"
        return nearest.share, _label(nearest.resource, run)
    place = run.levels.get(level) or run.pipes.get(level)
    return (place.share if place else None), _label(level, run)


def _label(unit: str | None, run: Analysis) -> str:
    return resource_label(unit, run.kernel.gpu) if unit else "its busiest unit"


def rating(share: float | None, thresholds: Thresholds) -> str | None:
    """Rate a share of a roof in words; None without one."""
    if share is None:
        return None
    if share >= thresholds.rating_near_share:
        return "near its roof"
    return "room left" if share >= thresholds.rating_room_share else "far from its roof"


def _unmet(point: Point, asked: Asked) -> Iterator[str]:
    runs = len(point.runs)
    if asked.best_of is not None and runs < asked.best_of:
        yield f"{count(runs, 'run')}; the best of {asked.best_of} is required"
    if asked.min_share is not None and point.share is None:
        yield f"was not measured at {point.unit}, of which {percent(asked.min_share)} is required"
    elif asked.min_share is not None and point.share is not None and point.share < asked.min_share:
        yield f"{_exact(point.share)} of {point.unit} at best; {percent(asked.min_share)} is required"
    if asked.stable is not None and point.stability < asked.stable:
        yield (
            f"the slowest of {count(runs, 'run')} has {_exact(point.stability)} of the rate of the best; "
            f"{percent(asked.stable)} is required"
        )


def _exact(share: float) -> str:
    """Write a share with a decimal, so that it does not round to the limit it is below."""
    return f"{100 * share:.1f} %"


def _climbs(points: Sequence[Point], reports: Sequence[AnalyzedReport], asked: Asked) -> Iterator[Climb]:
    """Follow the rates of programs with several versions, and of kernels with several amounts of work."""
    series = [*_versions(points, reports), *_sizes(points)]
    for of, steps in series:
        rates = [rate for _, rate in steps]
        gains = tuple(after / before - 1 for before, after in pairwise(rates))
        labels = tuple(label for label, _ in steps)
        yield Climb(of, labels, gains, tuple(_still_climbing(labels, gains, asked)))
    if asked.plateau is not None and not series:
        hint = "a plateau needs versions (gemm_v1, gemm_v2 in the names of reports) or launches of several sizes"
        yield Climb("plateau", (), (), (hint,))


def _versions(
    points: Sequence[Point], reports: Sequence[AnalyzedReport]
) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Take the versions of each program in the order of their recording; a rate is one over the time of best runs."""
    first: dict[str, defaultdict[str, bool]] = {}
    for report in sorted(reports, key=lambda one: one.run.created_unix_s or 0):
        whole = first.setdefault(program_name(report.run), defaultdict(lambda: True))
        # The time of a version is not known where a kernel of it failed.
        whole[version_name(report.run)] &= not any(one.kernel.failed for one in report.analyses)
    for program, versions in first.items():
        times_ns = {name: sum(p.best_ns for p in points if p.version == name) for name, ok in versions.items() if ok}
        steps = [(name, 1 / time_ns) for name, time_ns in times_ns.items() if time_ns]
        if len(steps) > 1:
            yield program, steps


def _sizes(points: Sequence[Point]) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Take the amounts of work of each kernel of a version, the smallest first; its rate is FLOP a second."""
    kernels: defaultdict[tuple[str, str, str | None], list[Point]] = defaultdict(list)
    for point in points:
        if point.flop and point.best_ns:
            kernels[point.version, point.name, point.gpu].append(point)
    for found in kernels.values():
        if len(found) > 1:
            ordered = sorted(found, key=lambda point: point.flop or 0.0)
            yield point_name(found[0]), [(si(p.flop, "FLOP"), (p.flop or 0.0) / p.best_ns) for p in ordered]


def _still_climbing(labels: Sequence[str], gains: Sequence[float], asked: Asked) -> Iterator[str]:
    if asked.plateau is None:
        return
    if len(gains) < asked.steps:
        yield f"{count(len(gains), 'step')}, and the last {asked.steps} are asked for a plateau"
        return
    for label, gain in list(zip(labels[1:], gains, strict=True))[-asked.steps :]:
        if gain > asked.plateau:
            yield f"still climbs: {label} gained {_exact(gain)}, and at most {percent(asked.plateau)} is a plateau"
