"""Where kernels and roofs stand in the roofline plane of one GPU: plain rows, SI base units, no drawing."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, TypeGuard

from rooflens.model.records import BOUNDS, LEVELS
from rooflens.model.roofline.roofs import level_roofs, pipe_roofs
from rooflens.model.roofline.work import main_work

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflens.model.launches import Launch
    from rooflens.model.records import Analysis, Bound, Level
    from rooflens.model.roofline.roofs import Roof


MIN_X_DECADES = 4

LEVEL_LABEL_PART = 0.14

PIPE_LABEL_PART = 0.3
"""Parts of the width that the names of diagonal roofs (left) and flat roofs (right) take."""

MIN_Y_DECADES = 3.5

Domain = tuple[float, float]
"""From the low end to the high end, in the units of the axis."""

HALF_DECADE = sqrt(10)

UNITS = {"FLOP": "FLOP", "op": "OP"}
"""Unit of the main work -> what people read."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kernel stands at one memory level, by its main work.

    Attributes:
        roof_flop_per_s: min(P, AI x BW) with the kernel's own peaks; None where its report holds neither.
        unit: `FLOP`, or `OP` where its main work is integer tensor operations: its numbers count those then.
    """

    level: str
    intensity_flop_per_byte: float
    flop_per_s: float
    roof_flop_per_s: float | None
    unit: str = "FLOP"


@dataclass(frozen=True, slots=True)
class RoofSet:
    """The roofs of several kernels: the diagonal ones, fastest first, and the flat ones, highest first.

    Attributes:
        clocks_hz: Lowest and highest SM clock of these kernels; None where no report states it.
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


@dataclass(frozen=True, slots=True)
class Point:
    """A launch at one memory level.

    Attributes:
        roof_flop_per_s: min(P, AI x BW) with the launch's own peaks; None where its report holds neither.
        unit: What is counted, as for `Place`.
        nearest: True at the level whose roof is the lowest above this launch.
    """

    launch: Launch
    level: str
    intensity_flop_per_byte: float
    flop_per_s: float
    roof_flop_per_s: float | None
    nearest: bool
    unit: str = "FLOP"

    @property
    def gap(self) -> float | None:
        """Factor between the launch and its roof at this level."""
        return None if self.roof_flop_per_s is None else self.roof_flop_per_s / self.flop_per_s


@dataclass(frozen=True, slots=True)
class StripPoint:
    """A launch without FLOPs: its share of one level's bandwidth."""

    launch: Launch
    level: str
    share: float
    nearest: bool


@dataclass(frozen=True, slots=True)
class Plane:
    """The roofline of one GPU.

    Attributes:
        clocks_hz: Lowest and highest SM clock of the launches in the plane; None where no report states it.
        unplaced: Launches with neither a position nor a bandwidth share.
        drawn: How many launches have a place in the plane or the strip.
        longest_share: Largest share of GPU time among them; 1 where no time is known.
    """

    gpu: str
    points: tuple[Point, ...]
    strip: tuple[StripPoint, ...]
    level_roofs: tuple[Roof, ...]
    pipe_roofs: tuple[Roof, ...]
    clocks_hz: tuple[float, float] | None
    unplaced: int
    drawn: int
    longest_share: float

    @property
    def placed(self) -> tuple[Point | StripPoint, ...]:
        """Everything that is drawn, in the plane and in the strip."""
        return (*self.points, *self.strip)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the work that is placed: FLOP, OP, or both; FLOP where nothing is."""
        present = {point.unit for point in self.points} or {"FLOP"}
        return tuple(unit for unit in UNITS.values() if unit in present)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Verdict classes of everything that is placed."""
        present = {p.launch.bound for p in self.placed}
        return tuple(bound for bound in BOUNDS if bound in present)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels at which anything is placed, far to near."""
        present = {p.level for p in self.placed}
        return tuple(level for level in LEVELS if level in present)

    @property
    def first_level(self) -> str:
        """Level shown first: the farthest one that has data; empty where nothing is placed."""
        return next(iter(self.levels), "")

    @property
    def top(self) -> float | None:
        """The highest flat roof, at which every diagonal ends."""
        return max((roof.peak for roof in self.pipe_roofs), default=None)

    def ridges(self, level: str) -> tuple[tuple[float, float], ...]:
        """List the corners where a level's slope meets the flat roofs: intensity and performance."""
        slope = next((roof.peak for roof in self.level_roofs if level in roof.keys), None)
        return tuple((pipe.peak / slope, pipe.peak) for pipe in self.pipe_roofs) if slope else ()

    def x_domain(self) -> tuple[float, float]:
        """Find the range of intensities: data and ridge points with half a decade of air."""
        ridges = [pipe.peak / level.peak for pipe in self.pipe_roofs for level in self.level_roofs]
        placed = [p.intensity_flop_per_byte for p in self.points]
        low, high = aired(placed + ridges, MIN_X_DECADES)
        # The names of the roofs stand at both ends: no point may lie under them, and no ridge.
        low = min(low, free_edge(min(placed, default=high), high, LEVEL_LABEL_PART))
        return (low, max(high, free_edge(max([*placed, *ridges], default=low), low, PIPE_LABEL_PART)))

    def y_domain(self) -> tuple[float, float]:
        """Find the range of performance: data, roofs over them and flat roofs, with half a decade of air."""
        reached = [v for p in self.points for v in (p.flop_per_s, p.roof_flop_per_s) if v]
        return aired(reached + [roof.peak for roof in self.pipe_roofs], MIN_Y_DECADES)


def plane(gpu: str, launches: Sequence[Launch]) -> Plane:
    """Place the launches of one GPU."""
    points = tuple(point for launch in launches for point in _points(launch))
    strip = tuple(point for launch in launches for point in _strip(launch))
    placed = {p.launch.key for p in points} | {p.launch.key for p in strip}
    roofs = roofs_over(launch.analysis for launch in launches)
    return Plane(
        gpu=gpu,
        points=points,
        strip=strip,
        level_roofs=roofs.levels,
        pipe_roofs=roofs.pipes,
        clocks_hz=roofs.clocks_hz,
        unplaced=sum(launch.key not in placed for launch in launches),
        drawn=len(placed),
        longest_share=max((launch.time_share or 0.0 for launch in launches if launch.key in placed), default=0.0)
        or 1.0,
    )


def _points(launch: Launch) -> list[Point]:
    found = places(launch.analysis)
    nearest = min(found, key=lambda place: place.roof_flop_per_s or inf, default=None)
    return [
        Point(
            launch,
            place.level,
            place.intensity_flop_per_byte,
            place.flop_per_s,
            place.roof_flop_per_s,
            nearest=place is nearest,
            unit=place.unit,
        )
        for place in found
    ]


def _drawable(value: float | None) -> TypeGuard[float]:
    """Return whether a logarithmic axis can place a value."""
    return value is not None and 0 < value < inf


def _roof(intensity: float, level: Level, flop_peak_per_s: float | None) -> float | None:
    """Work out min(P, AI x BW) of one launch, over what its report holds of the two."""
    slope = intensity * (level.peak_bytes_per_s or 0.0)
    return min((v for v in (slope, flop_peak_per_s) if v), default=None)


def _strip(launch: Launch) -> list[StripPoint]:
    """Keep a launch that has no place in the plane by its bandwidth shares."""
    if launch.failed or _points(launch):
        return []
    shares = {name: level.share for name, level in launch.analysis.levels.items() if level.share is not None}
    nearest = max(shares, key=lambda name: shares[name], default=None)
    return [StripPoint(launch, name, share, nearest=name == nearest) for name, share in shares.items()]


def _clocks(analyses: Iterable[Analysis]) -> Domain | None:
    clocks = [hz for analysis in analyses if (hz := analysis.kernel.counters.get("sm_clock_hz"))]
    return (min(clocks), max(clocks)) if clocks else None


def free_edge(value: float, opposite: float, part: float) -> float:
    """Find the edge of a logarithmic axis that leaves `part` of its length free between a value and this edge."""
    return float((value / opposite**part) ** (1 / (1 - part)))


def aired(values: Sequence[float], least_decades: float) -> Domain:
    """Put half a decade of air around values; a range that would be too short grows at its low end."""
    low, high = min(values, default=1.0) / HALF_DECADE, max(values, default=1000.0) * HALF_DECADE
    return min(low, high / 10**least_decades), high
