"""Where kernels and roofs stand in the roofline plane of one GPU: plain rows, SI base units, no drawing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, log10, sqrt
from types import MappingProxyType
from typing import TypeGuard

from msgspec import Struct, field
from msgspec.structs import asdict

from rooflens.model.records import LEVELS, Analysis, JudgedLoop, Level
from rooflens.model.roofline.roofs import BAND_FROM_RATIO, Roof, level_roofs, pipe_roofs
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import Launch
from rooflens.model.verdict.inside import LEAST_SHARE
from rooflens.model.verdict.sentences import resource_label
from rooflens.model.verdict_classes import SHOWN_CLASSES, ShownClass
from rooflens.report.words.labels import UNITS

MIN_X_DECADES = 2.5

LEVEL_LABEL_PART = 0.14

PIPE_LABEL_PART = 0.3
"""Parts of the width that the names of diagonal roofs (left) and flat roofs (right) take."""

MIN_Y_DECADES = 2.5

MAX_DECADES = 8
"""Longest axis: one false intensity must not push everything else into a corner."""

ALL = "all"
"""Stands for every level, shown together."""

OWN = "own"
"""Stands for the level that limits each launch, another one for each."""

Domain = tuple[float, float]
"""From the low end to the high end, in the units of the axis."""

HALF_DECADE = sqrt(10)

NEAR_ROOF_RATIO = 30.0
"""A flat roof farther than this over all that is drawn is not news: the whole plane has it."""

HELD_RATIO = 10.0 ** (MAX_DECADES - 1)
"""Between the farthest values that an axis holds with their air."""


class Place(Struct, frozen=True):
    """Where a kernel stands at one memory level, by its main work.

    Attributes:
        roof_flop_per_s: min(P, AI x BW) with the kernel's own peaks; None if its report holds neither.
        unit: `FLOP`, or `OP` where its main work is integer tensor operations: its numbers count those then.
    """

    level: str
    intensity_flop_per_byte: float
    flop_per_s: float
    roof_flop_per_s: float | None
    unit: str = "FLOP"


class RoofSet(Struct, frozen=True):
    """The roofs of several kernels: the diagonal ones, fastest first, and the flat ones, highest first.

    Attributes:
        clocks_hz: Lowest and highest SM clock of these kernels, both the median where they are alike; None if no
            report states it.
    """

    levels: tuple[Roof, ...]
    pipes: tuple[Roof, ...]
    clocks_hz: Domain | None


def places(analysis: Analysis) -> list[Place]:
    """Place a kernel at each level where it has an intensity."""
    work = main_work(analysis)
    if not _drawable(work.per_s):
        return []
    return [
        Place(name, intensity, work.per_s, _roof(intensity, level, work.peak_per_s), UNITS[work.unit])
        for name, level in analysis.levels.items()
        if _drawable(intensity := work.intensity(level))
    ]


def roofs_over(analyses: Iterable[Analysis]) -> RoofSet:
    """Find the roofs of those kernels that have a place; of all where none has."""
    known = list(analyses)
    # A short copy at an idle clock must not bend the roofs of the kernels that are drawn under them.
    drawn = [analysis for analysis in known if places(analysis)] or known
    return RoofSet(level_roofs(drawn), pipe_roofs(drawn), _clocks(drawn))


class Point(Place, frozen=True, kw_only=True):
    """A launch at one memory level.

    Attributes:
        nearest: True at the launch's own level: the one that limits it, else that whose roof is the lowest above it.
        peak_flop_per_s: The flat roof of its work; None if its report does not hold it.
    """

    launch: Launch
    nearest: bool
    peak_flop_per_s: float | None = None

    @property
    def at(self) -> tuple[float, float]:
        """Intensity and performance, as a plane places them."""
        return self.intensity_flop_per_byte, self.flop_per_s

    @property
    def gap(self) -> float | None:
        """Factor between the launch and its roof at this level."""
        return None if self.roof_flop_per_s is None else self.roof_flop_per_s / self.flop_per_s


class LoopPoint(Struct, frozen=True):
    """A loop of a launch at one memory level: FLOP/s while warps are in it, over the bytes that it moves there.

    DRAM bytes of a loop are not known: no loop stands at DRAM. Its part of the time is that of warps, and phases of
    different warps overlap: where that puts it over its roof, it stands on it.

    Attributes:
        at_roof: Whether it is held to its roof.
    """

    launch: Launch
    loop: JudgedLoop
    level: str
    at_roof: bool
    intensity_flop_per_byte: float
    flop_per_s: float

    @property
    def at(self) -> tuple[float, float]:
        """Intensity and performance, as a plane places them."""
        return self.intensity_flop_per_byte, self.flop_per_s


class LevelShare(Struct, frozen=True):
    """What a launch that has no place in the roofline takes of a level's peak bandwidth."""

    launch: Launch
    level: str
    share: float


class Plane(Struct, frozen=True):
    """The roofline of one GPU.

    Attributes:
        shares: Launches without a place in the plane, by level.
        clocks_hz: Lowest and highest SM clock of the launches in the plane; None if no report states it.
        unplaced: Launches with neither a position nor a bandwidth share.
        drawn: How many launches have a place in the plane or a share.
        longest_share: Largest share of GPU time among them; 1 where no time is known.
        reports: What sets each report's name apart, by digest, in the order of versions; empty if there is one.
        lines: What joins the versions of a kernel: a name by digest and kernel name; others are joined by their name.
        climbers: What the versions of the kernel that a ladder follows are called, by the same; the fastest first.
        loops: Loops of the launches in the plane whose machine code was looked into.
        numbered: Keys of launches whose points hold a number of the ranking, and are large enough for it.
    """

    gpu: str
    points: tuple[Point, ...]
    shares: tuple[LevelShare, ...]
    level_roofs: tuple[Roof, ...]
    pipe_roofs: tuple[Roof, ...]
    clocks_hz: tuple[float, float] | None
    unplaced: int
    drawn: int
    longest_share: float
    reports: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    climbers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    loops: tuple[LoopPoint, ...] = ()
    numbered: frozenset[str] = frozenset()

    @property
    def placed(self) -> tuple[Point | LevelShare, ...]:
        """Everything that is drawn, in the plane and below it."""
        return (*self.points, *self.shares)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the work that is placed: FLOP, OP, or both; FLOP where nothing is."""
        present = {point.unit for point in self.points} or {"FLOP"}
        return tuple(unit for unit in UNITS.values() if unit in present)

    @property
    def bounds(self) -> tuple[ShownClass, ...]:
        """Verdict classes of everything that is placed, as they are shown."""
        present = {p.launch.shown_class for p in self.placed}
        return tuple(shown for shown in SHOWN_CLASSES if shown in present)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels at which points stand, far to near; those of the shares where no launch has a point."""
        present = {p.level for p in self.points or self.shares}
        return tuple(level for level in LEVELS if level in present)

    @property
    def choices(self) -> tuple[str, ...]:
        """What can be shown: each launch at its own level where there are several, one level, or all levels."""
        own = (OWN,) if len({point.level for point in self.points if point.nearest}) > 1 else ()
        return (*own, *self.levels, ALL)

    @property
    def first_level(self) -> str:
        """Level shown first: the farthest one that has data; empty if nothing is placed."""
        return next(iter(self.levels), "")

    @property
    def level_names(self) -> dict[str, str]:
        """Names of all levels; DRAM is called by the kind that the GPU has."""
        return {level: resource_label(level, self.gpu) for level in LEVELS}

    @property
    def top(self) -> float | None:
        """The highest flat roof, at which every diagonal ends."""
        return max((roof.peak for roof in self.pipe_roofs), default=None)

    def ridges(self, level: str) -> tuple[tuple[float, float], ...]:
        """List the corners where a level's slope meets the flat roofs: intensity and performance."""
        slope = next((roof.peak for roof in self.level_roofs if level in roof.keys), None)
        return tuple((pipe.peak / slope, pipe.peak) for pipe in self.pipe_roofs) if slope else ()

    def points_at(self, level: str) -> tuple[Point, ...]:
        """List the points that are seen at a level."""
        if level == OWN:
            return tuple(point for point in self.points if point.nearest)
        return tuple(point for point in self.points if level in {ALL, point.level})

    def x_domain(self, level: str = ALL) -> Domain:
        """Find the range of intensities that is seen first at a level: what is drawn there, with half a decade of air.

        What it has no room for is left out where the least GPU time stands.
        """
        return _x_domain(self._news(level), ())

    def y_domain(self, level: str = ALL) -> Domain:
        """Find the range of performance at a level: what is drawn, near roofs over it, half a decade of air.

        What it has no room for is left out at the low end.
        """
        points = self._news(level)
        reached = [v for p in points for v in (p.flop_per_s, p.roof_flop_per_s) if v]
        peaks = {p.peak_flop_per_s for p in points if p.peak_flop_per_s}
        near = [peak for peak in peaks if peak <= max(reached, default=0.0) * NEAR_ROOF_RATIO]
        return _y_domain([*reached, *near, *(one.flop_per_s for one in self._loops_of_one())])

    @property
    def whole(self) -> tuple[Domain, Domain]:
        """Find the ranges of everything: all points at all levels, all roofs, and the ridges between them."""
        ridges = [pipe.peak / level_roof.peak for pipe in self.pipe_roofs for level_roof in self.level_roofs]
        peaks = [roof.peak for roof in self.pipe_roofs]
        reached = [v for p in self.points for v in (p.flop_per_s, p.roof_flop_per_s) if v]
        return _x_domain(self.points, ridges), _y_domain([*reached, *peaks])

    def _news(self, level: str) -> Sequence[Point]:
        """List what must be in sight at a level: its points, and of a single kernel its other levels too."""
        return self.points if self._has_one else self.points_at(level)

    def _loops_of_one(self) -> Sequence[LoopPoint]:
        """List the loops of a single kernel: of several none is seen before one is chosen."""
        return self.loops if self._has_one else ()

    @property
    def _has_one(self) -> bool:
        return len({point.launch.group_key for point in self.points}) == 1

    def beyond(self, level: str) -> bool:
        """Return whether the axes of a level have no room for one of its points."""
        (x_low, x_high), y_low = self.x_domain(level), self.y_domain(level)[0]
        return any(
            not x_low <= p.intensity_flop_per_byte <= x_high or p.flop_per_s < y_low for p in self.points_at(level)
        )


def plane(
    gpu: str,
    launches: Sequence[Launch],
    reports: Mapping[str, str] = MappingProxyType({}),
    lines: Mapping[tuple[str, str], str] = MappingProxyType({}),
    numbered: Collection[str] = (),
) -> Plane:
    """Place the launches of one GPU; `reports`, `lines` and `numbered` as in `Plane`."""
    points = tuple(point for launch in launches for point in _points(launch))
    shares = tuple(share for launch in launches for share in _shares(launch))
    placed = {p.launch.key for p in points} | {p.launch.key for p in shares}
    roofs = roofs_over(launch.analysis for launch in launches)
    return Plane(
        gpu=gpu,
        points=points,
        shares=shares,
        level_roofs=roofs.levels,
        pipe_roofs=roofs.pipes,
        clocks_hz=roofs.clocks_hz,
        unplaced=sum(launch.key not in placed for launch in launches),
        drawn=len(placed),
        longest_share=max((launch.time_share or 0.0 for launch in launches if launch.key in placed), default=0.0)
        or 1.0,
        reports=reports if len(reports) > 1 else {},
        lines=lines,
        loops=tuple(loop for launch in launches for loop in _loops(launch)),
        numbered=frozenset(placed).intersection(numbered),
    )


def _points(launch: Launch) -> list[Point]:
    found = places(launch.analysis)
    limits = [place for place in found if place.level == launch.analysis.verdict.resource]
    nearest = min(limits or found, key=lambda place: place.roof_flop_per_s or inf, default=None)
    peak = main_work(launch.analysis).peak_per_s if found else None
    return [Point(**asdict(place), launch=launch, nearest=place is nearest, peak_flop_per_s=peak) for place in found]


def _loops(launch: Launch) -> Iterator[LoopPoint]:
    """Place the loops of a launch that are shown: at L2, and at shared memory where they read that.

    Loops count FLOPs: they have no place where the launch is placed by its integer operations.
    """
    if not places(launch.analysis) or main_work(launch.analysis).unit != "FLOP":
        return
    for one in launch.analysis.loops:
        if one.loop.kind != "loop" or not _drawable(one.flop_per_s) or (one.share or 0.0) < LEAST_SHARE:
            continue
        for level, moved in (("l2", one.l2_bytes), ("smem", one.smem_bytes)):
            if moved and _drawable(intensity := (one.flop or 0.0) / moved):
                known = launch.analysis.levels.get(level)
                slope = intensity * (known.peak_bytes_per_s or inf) if known else inf
                roof = min(slope, launch.analysis.flop_peak_per_s or inf)
                yield LoopPoint(launch, one, level, one.flop_per_s >= roof, intensity, min(one.flop_per_s, roof))


def _drawable(value: float | None) -> TypeGuard[float]:
    """Return whether a logarithmic axis can place a value."""
    return value is not None and 0 < value < inf


def _roof(intensity: float, level: Level, flop_peak_per_s: float | None) -> float | None:
    """Work out min(P, AI x BW) of a launch, over what its report holds of the two."""
    slope = intensity * (level.peak_bytes_per_s or 0.0)
    return min((v for v in (slope, flop_peak_per_s) if v), default=None)


def _shares(launch: Launch) -> list[LevelShare]:
    """Keep a launch that has no place in the roofline by its bandwidth shares."""
    if launch.failed or places(launch.analysis):
        return []
    levels = launch.analysis.levels
    return [LevelShare(launch, name, level.share) for name, level in levels.items() if level.share is not None]


def _clocks(analyses: Iterable[Analysis]) -> Domain | None:
    """Find the range of clocks, or the median twice where no band is drawn: a line is at the median of the peaks."""
    from statistics import median  # noqa: PLC0415 - only where a plane is drawn

    clocks = [hz for analysis in analyses if (hz := analysis.kernel.counters.get("sm_clock_hz"))]
    if not clocks:
        return None
    low, high = min(clocks), max(clocks)
    middle = median(clocks)
    return (middle, middle) if high / low < BAND_FROM_RATIO else (low, high)


def _x_domain(points: Sequence[Point], ridges: Sequence[float]) -> Domain:
    """Find a range of intensities that holds points and ridges, and names of roofs at both ends."""
    times = [(p.intensity_flop_per_byte, p.launch.time_share or 0.0) for p in points]
    begin, end = _longest_held(times, ridges)
    placed = [x for x, _ in times if begin <= x <= end]
    held = [*placed, *(x for x in ridges if begin <= x <= end)]
    low, high = aired(held, MIN_X_DECADES)
    # The names of the roofs stand at both ends: no point may lie under them, and no ridge.
    first = min(low, free_edge(min(placed, default=high), high, LEVEL_LABEL_PART))
    last = max(high, free_edge(max(held, default=low), first, PIPE_LABEL_PART))
    return _grown((low, high), (first, last))


def _y_domain(values: Sequence[float]) -> Domain:
    """Find a range of performance that holds values; what it has no room for is left out at the low end."""
    lowest = max(values, default=1.0) / HELD_RATIO
    return aired([value for value in values if value >= lowest], MIN_Y_DECADES)


def _longest_held(times: Sequence[tuple[float, float]], ridges: Sequence[float]) -> Domain:
    """Choose the range that holds most GPU time, then most points, then most ridges; all of them where they fit.

    Args:
        times: Intensities of points with their shares of GPU time.
        ridges: Intensities of ridges.
    """
    values = sorted([*(x for x, _ in times), *ridges])
    if not values or values[-1] <= values[0] * HELD_RATIO:
        return (values[0], values[-1]) if values else (1.0, 1.0)

    def weight(low: float) -> tuple[float, int, int]:
        held = [time for x, time in times if low <= x <= low * HELD_RATIO]
        return sum(held), len(held), sum(low <= x <= low * HELD_RATIO for x in ridges)

    low = max(values, key=weight)
    return low, low * HELD_RATIO


def _grown(domain: Domain, wanted: Domain) -> Domain:
    """Grow a range to a wanted one, in proportion at both ends where that would be too long."""
    down, up = log10(domain[0] / wanted[0]), log10(wanted[1] / domain[1])
    room = MAX_DECADES - log10(domain[1] / domain[0])
    if down + up <= room:
        return wanted
    part = max(room, 0.0) / (down + up)
    return domain[0] / 10 ** (down * part), domain[1] * 10 ** (up * part)


def free_edge(value: float, opposite: float, part: float) -> float:
    """Find the edge of a logarithmic axis that leaves `part` of its length free between a value and this edge."""
    return float((value / opposite**part) ** (1 / (1 - part)))


def aired(values: Sequence[float], least_decades: float) -> Domain:
    """Put half a decade of air around values; a range that would be too short grows at its low end."""
    low, high = min(values, default=1.0) / HALF_DECADE, max(values, default=1000.0) * HALF_DECADE
    return min(low, high / 10**least_decades), high
