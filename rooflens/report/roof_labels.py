"""Where the names of diagonal roofs stand: along their line, clear of the axis, of points and of one another."""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, log10, sin, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.report.roofline_data import Plane, Point

CROWD = 40
"""With more launches than this, large points would bury their neighbours and letters would fill the plane."""

CHAR_PX = 6.6
LIFT_PX = 4
"""Distance of the words from their line."""

TALL_PX = 16
AIR_PX = 6
STEP_PX = 6


@dataclass(frozen=True, slots=True)
class Box:
    """Words along a line, in pixels: `along` from the line's start, `off` as the line's distance from the origin."""

    along: float
    length: float
    off: float

    def hits(self, other: Box) -> bool:
        """Tell whether two words on parallel lines overlap."""
        if abs(self.off - other.off) > TALL_PX + LIFT_PX:
            return False
        return self.along < other.along + other.length + AIR_PX and other.along < self.along + self.length + AIR_PX


@dataclass(frozen=True, slots=True)
class Sheet:
    """A plane drawn at one size; `turn` maps to pixels along and across the diagonal roofs."""

    x_domain: tuple[float, float]
    y_domain: tuple[float, float]
    width_px: float
    height_px: float

    @property
    def angle(self) -> float:
        """Slope of a diagonal roof on the screen."""
        return atan2(self.height_px / _decades(self.y_domain), self.width_px / _decades(self.x_domain))

    def turn(self, x: float, y: float) -> tuple[float, float]:
        """Give the pixels of a place along and across the roofs, from the lower left corner."""
        right = log10(x / self.x_domain[0]) / _decades(self.x_domain) * self.width_px
        up = log10(y / self.y_domain[0]) / _decades(self.y_domain) * self.height_px
        return right * cos(self.angle) + up * sin(self.angle), up * cos(self.angle) - right * sin(self.angle)

    def x_at(self, along: float, off: float) -> float:
        """Give the intensity of a place that is so far along and across."""
        right = along * cos(self.angle) - off * sin(self.angle)
        return float(self.x_domain[0] * 10 ** (right / self.width_px * _decades(self.x_domain)))

    def first_along(self, off: float) -> float:
        """Find how far along words must begin so that their upper left corner stays inside."""
        return (AIR_PX + (off + LIFT_PX + TALL_PX) * sin(self.angle)) / cos(self.angle)


def areas_px2(plane: Plane) -> tuple[int, int]:
    """Choose the smallest and the largest area of a point; many large ones would bury their neighbours."""
    launches = {p.launch.key for p in plane.placed}
    return (64, 800) if len(launches) <= CROWD else (48, 320)


def longest(plane: Plane) -> float:
    """Find the largest share of time in the plane; 1 where no time is known."""
    return max((p.launch.time_share or 0.0 for p in plane.placed), default=0.0) or 1.0


def label_places(
    plane: Plane, lines: Mapping[str, tuple[tuple[float, float], str]], width_px: float, height_px: float
) -> dict[str, float]:
    """Choose the intensity at which each roof's name begins.

    Args:
        plane: The points to keep clear of.
        lines: By roof, the intensities where its line begins and ends, and its name.
        width_px: Width of the plane as drawn.
        height_px: Its height.
    """
    sheet = Sheet(plane.x_domain(), plane.y_domain(), width_px, height_px)
    slopes = {roof.keys[0]: roof.peak for roof in plane.level_roofs}
    taken: list[Box] = []
    places = {}
    for key, ((start, stop), words) in lines.items():
        (begin, off), (end, _) = (sheet.turn(x, x * slopes[key]) for x in (start, stop))
        begin = max(begin, sheet.first_along(off))
        length = len(words) * CHAR_PX
        boxes = [Box(begin, length, off), *_steps(begin, end, length, off)]
        box = _clear(boxes, taken, [_points_near(off, sheet, plane, points) for points in _preferences(plane)])
        taken.append(box)
        places[key] = sheet.x_at(box.along, off)
    return places


def _steps(begin: float, end: float, length: float, off: float) -> Iterator[Box]:
    for step in range(1, max(1, int((end - begin - length) / STEP_PX))):
        yield Box(begin + step * STEP_PX, length, off)


def _preferences(plane: Plane) -> tuple[Sequence[Point], Sequence[Point]]:
    """Keep clear of the points at every level, or at least of those that are shown first."""
    first = next(iter(plane.levels), "")
    return plane.points, [point for point in plane.points if point.level == first]


def _points_near(off: float, sheet: Sheet, plane: Plane, points: Iterable[Point]) -> list[tuple[float, float]]:
    """List where points reach into the words' strip along a line: from and to."""
    smallest, largest = areas_px2(plane)
    most = longest(plane)
    spans = []
    for point in points:
        along, across = sheet.turn(point.intensity_flop_per_byte, point.flop_per_s)
        reach = sqrt(smallest + (largest - smallest) * (point.launch.time_share or 0.0) / most) / 2 + AIR_PX
        if -reach < across - off < LIFT_PX + TALL_PX + reach:
            spans.append((along - reach, along + reach))
    return spans


def _clear(boxes: Sequence[Box], taken: Sequence[Box], spans: Sequence[Sequence[tuple[float, float]]]) -> Box:
    """Take the first place that is clear of other words and of points; at worst the beginning of the line."""
    apart = [box for box in boxes if not any(box.hits(other) for other in taken)] or [boxes[0]]
    for near in spans:
        for box in apart:
            if all(box.along > stop or box.along + box.length < start for start, stop in near):
                return box
    return apart[0]


def _decades(domain: tuple[float, float]) -> float:
    return log10(domain[1] / domain[0])
