"""Where each kernel of a comparison stood and stands: in the roofline plane, and in a strip without FLOPs.

On one GPU at one clock both sides share their roofs: heights are FLOP/s, under the roofs of the head. Where GPUs or
clocks differ no set of roofs holds for both, and FLOP/s would move with the hardware: heights are then shares of each
kernel's own roof min(P, AI x BW), which say on either side how far the limit is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log10, sqrt
from typing import Literal

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.bounds import BOUNDS, Bound
from rooflens.model.compare.pairing import mean_clock_hz
from rooflens.model.records import LEVELS, Analysis
from rooflens.model.roofline.roofs import Roof
from rooflens.model.summary import gpu_name
from rooflens.report.comparison.conditions import unlike
from rooflens.report.comparison.rows import Program, Row
from rooflens.report.plane.plane import Domain, RoofSet, aired, free_edge, roofs_over
from rooflens.report.plane.plane import Place as Point
from rooflens.report.plane.plane import places as points
from rooflens.report.plane.viewport import Sheet, decades

MAX_DRAWN = 32
"""Kernels with a place in the plane, those with the biggest differences."""

MAX_LANES = 10
"""Kernels with a lane in the strip."""

CROWD = 24
LARGEST_PX2, LARGEST_IN_CROWD_PX2, SMALLEST_PX2 = 280, 160, 40
"""Areas of the longest kernel's dot and of the shortest one's: small, for it is the way between two that counts."""

NAMES_PART = 0.25
"""Part of the width that is kept for the names of flat roofs."""

TOP_SHARE = 1.08
"""Height of a plane of shares: a little over the roof."""


class Place(Struct, frozen=True):
    """Where a kernel is on one side at one level.

    Attributes:
        x: FLOP/B in the plane, share of the level's bandwidth in the strip.
        y: FLOP/s, or share of its own roof; 0 in the strip.
        radius_px: Half the width of its dot.
        unit: What x and y count: FLOP, or OP for integer tensor work.
    """

    x: float
    y: float
    radius_px: float
    bound: Bound
    unit: str = "FLOP"


class Move(Struct, frozen=True):
    """A kernel at one level: where it was and where it is; None on a side that lacks it."""

    row: Row
    level: str
    before: Place | None
    after: Place | None

    @property
    def places(self) -> tuple[Place, ...]:
        """The dots that are drawn."""
        return tuple(place for place in (self.before, self.after) if place)

    @property
    def anchor(self) -> Place:
        """The dot that stands for it: the one after, where there is one."""
        return self.places[-1]


class ShareSheet(Sheet, frozen=True):
    """A plane of shares drawn at one size: logarithmic across, linear up."""

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Give the pixels of an intensity and a share."""
        right = log10(x / self.x_domain[0]) / decades(self.x_domain) * self.width_px
        low, high = self.y_domain
        return right, self.height_px * (1 - (y - low) / (high - low))


class Side(Struct, frozen=True):
    """The kernels of one side by their keys, and their roofs."""

    analyses: Mapping[str, Analysis]
    roofs: RoofSet

    @property
    def gpu(self) -> str:
        """Names of its GPUs."""
        return ", ".join(dict.fromkeys(gpu_name(analysis) for analysis in self.analyses.values())) or "no kernel"

    def slope(self, level: str) -> Roof | None:
        """Give the diagonal roof of a level."""
        return next((roof for roof in self.roofs.levels if level in roof.keys), None)

    def places(self) -> Mapping[str, Mapping[str, Point]]:
        """Place its kernels: by key and level."""
        return {key: {point.level: point for point in points(analysis)} for key, analysis in self.analyses.items()}

    def ridge(self, level: str) -> float | None:
        """Find the ridge of the pipe that does most FLOPs."""
        work: defaultdict[str, float] = defaultdict(float)
        for analysis in self.analyses.values():
            for name, flop in analysis.counted_flop.items() if points(analysis) else ():
                work[name] += flop * analysis.launches
        slope = self.slope(level)
        main = max(work, key=lambda name: work[name], default="")
        pipe = next((roof for roof in self.roofs.pipes if main in roof.keys), None)
        return pipe.peak / slope.peak if pipe and slope else None


class Moves(Struct, frozen=True):
    """The plane of one program, and the strip of its kernels without FLOPs.

    Attributes:
        slides: Places in the strip.
        why_shares: Why heights are shares of roofs; empty where they are FLOP/s.
        base: The kernels of the base and their roofs; likewise `head`.
        unplaced: Drawn kernels that have neither FLOPs nor a share of bandwidth on a side that has them.
        left_out: Kernels beyond `MAX_DRAWN` or `MAX_LANES`.
    """

    why_shares: str
    gpu: str
    clock: str
    moves: tuple[Move, ...]
    slides: tuple[Move, ...]
    base: Side
    head: Side
    unplaced: int
    left_out: int

    @property
    def in_shares(self) -> bool:
        """True where heights are shares."""
        return bool(self.why_shares)

    @property
    def drawable(self) -> bool:
        """True when anything has a place."""
        return bool(self.moves or self.slides)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels at which anything stands, far to near."""
        present = {move.level for move in (*self.moves, *self.slides)}
        return tuple(level for level in LEVELS if level in present)

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Verdict classes of all dots."""
        dots = [place for move in (*self.moves, *self.slides) for place in (move.before, move.after) if place]
        present = {place.bound for place in dots}
        return tuple(bound for bound in BOUNDS if bound in present)

    @property
    def pipes(self) -> tuple[Roof, ...]:
        """Flat roofs: those of the head, and those that only the base used; a plane of shares has none."""
        return () if self.in_shares else _both(self.head.roofs.pipes, self.base.roofs.pipes)

    @property
    def clocks_hz(self) -> Domain | None:
        """Lowest and highest SM clock of the side whose roofs are drawn."""
        return self.head.roofs.clocks_hz or self.base.roofs.clocks_hz

    def slope(self, level: str) -> Roof | None:
        """Give the diagonal roof of a level; a plane of shares has none."""
        return None if self.in_shares else self.head.slope(level) or self.base.slope(level)

    def ridges(self, level: str) -> list[tuple[str, float]]:
        """Name the intensities at which the roof of the main pipe turns flat, on each side of a plane of shares."""
        sides = (("before", self.base), ("after", self.head))
        found = [(f"ridge {name}", side.ridge(level)) for name, side in sides if self.in_shares]
        return [(name, x) for name, x in found if x is not None]

    def x_domain(self) -> Domain:
        """Find the range of intensities: dots and ridges of all levels with half a decade of air."""
        ridges = [x for level in self.levels for _, x in self.ridges(level)]
        slopes = [roof.peak for level in self.levels if (roof := self.slope(level))]
        ridges += [pipe.peak / slope for pipe in self.pipes for slope in slopes]
        low, high = aired([place.x for move in self.moves for place in move.places] + ridges, 3)
        # The names of flat roofs stand at their right end, clear of the diagonals.
        free = free_edge(max(ridges), low, NAMES_PART) if ridges and self.pipes else high
        return low, max(high, free)

    def y_domain(self) -> Domain:
        """Find the range of heights."""
        heights = [place.y for move in self.moves for place in move.places]
        if self.in_shares:
            return 0.0, max([TOP_SHARE, *(1.04 * height for height in heights)])
        return aired(heights + [pipe.peak for pipe in self.pipes] + self._slope_heights(), 3)

    def _slope_heights(self) -> list[float]:
        """List the heights of the diagonals over the dots: without a flat roof they are all there is."""
        return [
            slope.peak * place.x
            for move in self.moves
            for place in move.places
            if not self.pipes and (slope := self.slope(move.level))
        ]

    def sheet(self, width_px: float, height_px: float) -> Sheet:
        """Draw the plane at one size."""
        kind = ShareSheet if self.in_shares else Sheet
        return kind(self.x_domain(), self.y_domain(), width_px, height_px)


def moves(program: Program) -> Moves:
    """Place the kernels of a program on both sides."""
    comparison = program.comparison
    why = unlike(comparison)
    drawn = program.rows[:MAX_DRAWN]
    before, after = _side(drawn, "base"), _side(drawn, "head")
    radii = _Radii(drawn)
    found = tuple(_moves(drawn, before, after, radii, shares=bool(why)))
    moving = {move.row.key for move in found}
    still = [row for row in drawn if row.key not in moving]
    lanes = [row for row in still if any(_slides(row, radii))]
    clock = mean_clock_hz(comparison.head)
    return Moves(
        why_shares=why,
        gpu=before.gpu if before.gpu == after.gpu else f"{before.gpu} \u2192 {after.gpu}",
        clock=fmt.si(clock, "Hz") if clock and not why else "",
        moves=found,
        slides=tuple(slide for row in lanes[:MAX_LANES] for slide in _slides(row, radii)),
        base=before,
        head=after,
        unplaced=len(still) - len(lanes),
        left_out=len(comparison.changes) - len(drawn) + len(lanes[MAX_LANES:]),
    )


class _Radii:
    """Sizes of dots: their area grows with GPU time, on one scale for both sides."""

    def __init__(self, rows: Sequence[Row]) -> None:
        times = [t for row in rows for t in (row.timing.base.median_ns, row.timing.head.median_ns) if t]
        self._longest_ns = max(times, default=1.0)
        self._largest = LARGEST_PX2 if len(rows) <= CROWD else LARGEST_IN_CROWD_PX2

    def of(self, time_ns: float | None) -> float:
        """Work out half the width of a dot."""
        part = (time_ns or 0.0) / self._longest_ns
        return sqrt(SMALLEST_PX2 + (self._largest - SMALLEST_PX2) * part) / 2


def _side(rows: Iterable[Row], name: Literal["base", "head"]) -> Side:
    """Take the kernels of one side."""
    analyses = {row.key: analysis for row in rows if (analysis := getattr(row.change, name)) is not None}
    return Side(analyses, roofs_over(analyses.values()))


def _moves(rows: Iterable[Row], base: Side, head: Side, radii: _Radii, *, shares: bool) -> Iterator[Move]:
    """Place each kernel at each level where every side that has it has a place."""
    before, after = base.places(), head.places()
    for row in rows:
        old, new = before.get(row.key, {}), after.get(row.key, {})
        for level in LEVELS:
            was = _place(row.change.base, old.get(level), radii.of(row.timing.base.median_ns), shares=shares)
            now = _place(row.change.head, new.get(level), radii.of(row.timing.head.median_ns), shares=shares)
            if _is_whole(row, was, now):
                yield Move(row, level, was, now)


def _is_whole(row: Row, was: Place | None, now: Place | None) -> bool:
    """Return whether every side that has the kernel has a place: half a kernel would look new or gone."""
    return (was is not None) == (row.change.base is not None) and (now is not None) == (row.change.head is not None)


def _place(analysis: Analysis | None, point: Point | None, radius_px: float, *, shares: bool) -> Place | None:
    if analysis is None or point is None or (shares and not point.roof_flop_per_s):
        return None
    height = point.flop_per_s / (point.roof_flop_per_s or 1.0) if shares else point.flop_per_s
    return Place(point.intensity_flop_per_byte, height, radius_px, analysis.verdict.bound, point.unit)


def _slides(row: Row, radii: _Radii) -> list[Move]:
    """Place a kernel by its shares of bandwidth, at each level where every side that has it has one."""
    found = []
    for level in LEVELS:
        was = _shared(row.change.base, level, row.timing.base.median_ns, radii)
        now = _shared(row.change.head, level, row.timing.head.median_ns, radii)
        if _is_whole(row, was, now):
            found.append(Move(row, level, was, now))
    return found


def _shared(analysis: Analysis | None, level: str, time_ns: float | None, radii: _Radii) -> Place | None:
    share = analysis.levels[level].share if analysis else None
    if analysis is None or share is None:
        return None
    return Place(share, 0.0, radii.of(time_ns), analysis.verdict.bound)


def _both(mine: Sequence[Roof], others: Sequence[Roof]) -> tuple[Roof, ...]:
    known = {key for roof in mine for key in roof.keys}
    roofs = (*mine, *(roof for roof in others if not known & set(roof.keys)))
    return tuple(sorted(roofs, key=lambda roof: -roof.peak))
