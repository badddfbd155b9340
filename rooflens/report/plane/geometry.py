"""Boxes on the screen, upright or turned, and how wide words are: what a chart needs to place text by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import atan2, cos, hypot, sin
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH_MARGIN = 1.06
"""System fonts differ by a few per cent from the widths below; words may not run into one another in any of them."""

BOLD_MARGIN = 1.08

_EMS = {
    0.28: "ijl'|ft.,:;/\\!I[] \u00a0\u2009",
    0.36: 'r()-{}"*\u00b7',
    0.52: "kcsvxyzJ?",
    0.67: "ABEKPSVXY<>=+~_&\u00b5",
    0.73: "CDHNRUwZTFL",
    0.79: "GOQ\u00d7",
    1.0: "mMW@%\u2026\u2013",
}
_EM_OF = {char: em for em, chars in _EMS.items() for char in chars}
_EM_USUAL = 0.56
_EM_WIDE = 1.05
"""Width of what is not Latin."""

_FIRST_WIDE = 0x2500


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels, y downwards, turned by `angle` radians about its centre."""

    x: float
    y: float
    half_width: float
    half_height: float
    angle: float = 0.0

    @property
    def reach(self) -> float:
        """Distance from the centre to a corner."""
        return hypot(self.half_width, self.half_height)

    def hits(self, other: Box) -> bool:
        """Tell whether two boxes overlap; boxes that only touch do not."""
        right, down = other.x - self.x, other.y - self.y
        if hypot(right, down) >= self.reach + other.reach:
            return False
        if not self.angle and not other.angle:
            wide, high = self.half_width + other.half_width, self.half_height + other.half_height
            return abs(right) < wide and abs(down) < high
        axes = (axis for box in (self, other) for axis in box.axes())
        # Two convex shapes are apart if and only if a side of one of them parts them.
        return all(abs(right * ax + down * ay) < self.extent(ax, ay) + other.extent(ax, ay) for ax, ay in axes)

    def axes(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Give the directions of its sides as unit vectors."""
        c, s = cos(self.angle), sin(self.angle)
        return (c, s), (-s, c)

    def extent(self, ax: float, ay: float) -> float:
        """Measure half its length along a direction."""
        (ux, uy), (vx, vy) = self.axes()
        return self.half_width * abs(ux * ax + uy * ay) + self.half_height * abs(vx * ax + vy * ay)

    def grown(self, px: float) -> Box:
        """Make it larger on every side."""
        return Box(self.x, self.y, self.half_width + px, self.half_height + px, self.angle)

    def inside(self, width_px: float, height_px: float) -> bool:
        """Tell whether all of it lies between the origin and a lower right corner."""
        wide, high = self.extent(1, 0), self.extent(0, 1)
        return wide <= self.x <= width_px - wide and high <= self.y <= height_px - high


def segment(start: tuple[float, float], end: tuple[float, float], width_px: float = 2.0) -> Box:
    """Make the box that a straight line covers."""
    right, down = end[0] - start[0], end[1] - start[1]
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    return Box(*middle, hypot(right, down) / 2, width_px / 2, atan2(down, right))


def hits_any(box: Box, others: Iterable[Box]) -> bool:
    """Tell whether a box overlaps any of the others; pages ask this a million times, and most boxes are far away."""
    x, y = box.x, box.y
    wide, high = _bounds(box)
    for other in others:
        other_wide, other_high = _bounds(other) if other.angle else (other.half_width, other.half_height)
        if abs(other.x - x) < wide + other_wide and abs(other.y - y) < high + other_high and box.hits(other):
            return True
    return False


def _bounds(box: Box) -> tuple[float, float]:
    """Give half of the width and the height that no box of these sides and this angle reaches beyond."""
    if not box.angle:
        return box.half_width, box.half_height
    most = box.half_width + box.half_height
    return most, most


@lru_cache(maxsize=4096)
def text_px(text: str, size_px: float = 12, *, bold: bool = False) -> float:
    """Estimate how wide a text is drawn at most, in the usual fonts without serifs."""
    ems = sum(_EM_OF.get(char, _EM_WIDE if ord(char) >= _FIRST_WIDE else _EM_USUAL) for char in text)
    return ems * size_px * WIDTH_MARGIN * (BOLD_MARGIN if bold else 1.0)
