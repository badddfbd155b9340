"""The roofline plane of one GPU: the launches and roofs in it, and its axes. SI base units, no drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10, sqrt

from msgspec import Struct

from rooflens.model.records import LEVELS, Bottleneck, Confidence, Gain, ratio
from rooflens.model.roofline.roofs import RoofLine, RoofSet
from rooflens.model.roofline.standing import Standing
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict_classes import SHOWN_CLASSES, ShownClass
from rooflens.report.words.labels import UNITS

MIN_X_DECADES = 3.0
"""Holds three powers of ten, wherever it begins: a narrow plane labels no others."""

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

LEVEL_MARKS: Mapping[str, str] = {"dram": "D", "l2": "L2", "l1": "L1", "smem": "S"}
"""Marks that tell the levels apart where several are shown; none can be taken for a number of the ranking."""

Domain = tuple[float, float]
"""From the low end to the high end, in the units of the axis."""

HALF_DECADE = sqrt(10)

NEAR_ROOF_RATIO = 30.0
"""A flat roof farther than this over all that is drawn is not news: the whole plane has it."""

HELD_RATIO = 10.0 ** (MAX_DECADES - 1)
"""Between the farthest values that an axis holds with their air."""


class PhasePoint(Struct, frozen=True):
    """A kernel's position in one phase of its run.

    Attributes:
        part: Of the run, 0 to 1.
    """

    phase: str
    part: float
    intensity_flop_per_byte: float
    flop_per_s: float


class DrawnLaunch(Struct, frozen=True, kw_only=True):
    """A launch as the roofline draws it: what is the same at all its levels, and the words of its popup.

    Attributes:
        key: Its key within the page, and `group_key` that of its kernel.
        name: Name of its kernel; `shown` is the short one, with how many launches it stands for.
        report: What sets its report's name apart; empty if there is one.
        line: What joins it with the other versions of its kernel: a name.
        called: What its version is called in the ladder that the page follows; empty if it is not in it.
        rank: Number of the ranking that its point holds.
        estimated: A part of its FLOPs is estimated and not counted.
        time_share: Fraction of the GPU time; 0 where that is not known.
        launches: How many launches it stands for.
        work: Its operations in the unit of its points; None if a part is unknown.
        gains: Place and gain of those of its moves whose gain is known.
        counts_limiter: Its limiter is a pipe whose operations are its FLOPs: fewer instructions there are fewer FLOPs.
        phases: Its path through the plane while it ran; empty where that cannot be told.
    """

    key: str
    group_key: str
    name: str
    shown: str
    report: str
    line: str
    called: str
    rank: int | None
    shown_class: ShownClass
    estimated: bool
    time_share: float
    launches: int
    work: float | None
    gains: tuple[tuple[int, Gain], ...]
    counts_limiter: bool
    phases: tuple[PhasePoint, ...]
    time_words: str
    verdict_words: str
    limiter_words: str
    confidence: Confidence
    flag_words: str


class BarredLaunch(DrawnLaunch, frozen=True, kw_only=True):
    """A launch without a place in the plane, which has bars below it.

    Attributes:
        why: Why it has none.
        is_median: It is the median of those launches of its kernel that have bars.
        bottleneck: Its busiest unit.
        leading: Level whose bar is that unit's; `unit` for one that is no level's.
    """

    why: str
    is_median: bool
    bottleneck: Bottleneck | None
    leading: str | None


class Point(Standing, frozen=True, kw_only=True):
    """A launch at one memory level.

    Attributes:
        nearest: True where the launch stands: at the level that limits it, else that whose roof is the lowest above it.
        peak_per_s: The flat roof of its work; None if its report does not hold it.
    """

    launch: DrawnLaunch
    nearest: bool
    peak_per_s: float | None = None

    @property
    def at(self) -> tuple[float, float]:
        """Intensity and performance, as a plane places them."""
        return self.intensity, self.per_s

    @property
    def counts(self) -> str:
        """What its numbers count: `FLOP` or `OP`."""
        return UNITS[self.unit]

    @property
    def gap(self) -> float | None:
        """Roof over achieved rate at this level; None if either is unknown."""
        return ratio(self.limit_per_s, self.per_s)

    @property
    def traffic_bytes(self) -> float | None:
        """Bytes that the launch moved at this level."""
        return ratio(self.launch.work, self.intensity)

    @property
    def bytes_per_s(self) -> float:
        """Rate at which it moved them."""
        return self.per_s / self.intensity

    @property
    def bandwidth_share(self) -> float | None:
        """Fraction of the level's peak bandwidth, whatever its stages do; None if that is unknown."""
        return ratio(self.bytes_per_s, self.slope.value) if self.slope else None


class LoopPoint(Struct, frozen=True):
    """A loop of a launch at one memory level: FLOP/s while warps are in it, over the bytes that it moves there.

    DRAM bytes of a loop are not known: no loop stands at DRAM. Its part of the time is that of warps, and phases of
    different warps overlap: where that puts it over its roof, it stands on it.

    Attributes:
        number: Of the loop in its kernel, and `place` its line or address.
        at_roof: Whether it is held to its roof.
    """

    launch: DrawnLaunch
    number: int
    place: str
    level: str
    at_roof: bool
    intensity_flop_per_byte: float
    flop_per_s: float


class LevelShare(Struct, frozen=True):
    """What a launch that has no place in the roofline takes of a level's peak bandwidth.

    Attributes:
        bytes_per_s: Its rate; None if the bytes or the time are unknown.
    """

    launch: BarredLaunch
    level: str
    share: float
    bytes_per_s: float | None = None


class Plane(Struct, frozen=True):
    """The roofline of one GPU.

    Attributes:
        shares: Launches without a place in the plane, by level.
        roofs: Those of its launches, or of all launches of a page, so that its planes share them.
        unplaced: Launches with neither a position nor a bandwidth share.
        drawn: How many launches have a place in the plane or a share.
        longest_share: Largest share of GPU time among them; 1 where no time is known.
        reports: What sets each report's name apart, in the order of versions; empty if there is one.
        climbers: What the versions of the kernel that a ladder follows are called, the fastest first.
        loops: Loops of the launches in the plane whose machine code was looked into.
        dot_part: Areas of dots as a part of the usual ones: a small figure has small dots.
    """

    gpu: str
    points: tuple[Point, ...]
    shares: tuple[LevelShare, ...]
    roofs: RoofSet
    unplaced: int
    drawn: int
    longest_share: float
    reports: tuple[str, ...]
    climbers: tuple[str, ...]
    loops: tuple[LoopPoint, ...]
    dot_part: float = 1.0

    @property
    def level_roofs(self) -> tuple[RoofLine, ...]:
        """The diagonal roofs, the fastest first."""
        return self.roofs.levels

    @property
    def pipe_roofs(self) -> tuple[RoofLine, ...]:
        """The flat roofs, the highest first."""
        return self.roofs.pipes

    @property
    def placed(self) -> tuple[Point | LevelShare, ...]:
        """Everything that is drawn, in the plane and below it."""
        return (*self.points, *self.shares)

    @property
    def launches(self) -> tuple[DrawnLaunch, ...]:
        """The launches in the plane, each once."""
        return tuple({point.launch.key: point.launch for point in self.points}.values())

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the work that is placed: FLOP, OP, or both; FLOP where nothing is."""
        present = {point.counts for point in self.points} or {"FLOP"}
        return tuple(unit for unit in UNITS.values() if unit in present)

    @property
    def bounds(self) -> tuple[ShownClass, ...]:
        """Verdict classes of everything that is placed, as they are shown."""
        present = {p.launch.shown_class for p in self.placed}
        return tuple(shown for shown in SHOWN_CLASSES if shown in present)

    @property
    def legend_bounds(self) -> tuple[ShownClass, ...]:
        """Verdict classes that a legend tells apart: none where there is one."""
        return self.bounds if len(self.bounds) > 1 else ()

    def bounds_at(self, level: str) -> tuple[ShownClass, ...]:
        """Verdict classes of the points that are seen at a level."""
        present = {point.launch.shown_class for point in self.points_at(level)}
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
        reached = [v for p in points for v in (p.per_s, p.roof_per_s) if v]
        peaks = {p.peak_per_s for p in points if p.peak_per_s}
        near = [peak for peak in peaks if peak <= max(reached, default=0.0) * NEAR_ROOF_RATIO]
        return _y_domain([*reached, *near, *(one.flop_per_s for one in self._loops_of_single())])

    @property
    def whole(self) -> tuple[Domain, Domain]:
        """Find the ranges of everything: all points at all levels, all roofs, and the ridges between them."""
        ridges = [pipe.peak / level_roof.peak for pipe in self.pipe_roofs for level_roof in self.level_roofs]
        peaks = [roof.peak for roof in self.pipe_roofs]
        reached = [v for p in self.points for v in (p.per_s, p.roof_per_s) if v]
        return _x_domain(self.points, ridges), _y_domain([*reached, *peaks])

    def _news(self, level: str) -> Sequence[Point]:
        """List what must be in sight at a level: its points, and of a single kernel its other levels too."""
        return self.points if self._has_single else self.points_at(level)

    def _loops_of_single(self) -> Sequence[LoopPoint]:
        """List the loops of a single kernel: of several none is seen before one is chosen."""
        return self.loops if self._has_single else ()

    @property
    def _has_single(self) -> bool:
        return len({point.launch.group_key for point in self.points}) == 1

    def beyond(self, level: str) -> bool:
        """Return whether the axes of a level have no room for one of its points."""
        (x_low, x_high), y_low = self.x_domain(level), self.y_domain(level)[0]
        return any(not x_low <= p.intensity <= x_high or p.per_s < y_low for p in self.points_at(level))


def _x_domain(points: Sequence[Point], ridges: Sequence[float]) -> Domain:
    """Find a range of intensities that holds points and ridges, and names of roofs at both ends."""
    times = [(p.intensity, p.launch.time_share) for p in points]
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
