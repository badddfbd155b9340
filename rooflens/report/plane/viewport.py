"""A plane as it is drawn at one size: where a value stands in pixels, and how large its point is.

Text is placed in Python for a few sizes of the plane. The chart uses the placement of the class its width falls into.
"""

from __future__ import annotations

from math import log10, sqrt

from msgspec import Struct

from rooflens.report.plane.geometry import Box
from rooflens.report.plane.plane import Domain, DrawnLaunch, Plane, Point

CROWD = 40
"""With more launches than this, large points would bury their neighbours and letters would fill the plane."""

POINT_AIR_PX = 2

NUMBERED_PX2 = 324
"""Smallest area of a point that holds its number in the ranking."""


class SizeClass(Struct, frozen=True):
    """A class of drawings: from how wide a plane it holds, the smallest usual width, and the height."""

    from_px: int
    width_px: int
    height_px: int
    names: int

    @property
    def narrow(self) -> bool:
        """True at the width of a telephone, where levels are shown by letter instead of name."""
        return self.from_px == 0


WIDE = SizeClass(from_px=690, width_px=700, height_px=440, names=12)
MIDDLE = SizeClass(from_px=480, width_px=490, height_px=440, names=8)
NARROW = SizeClass(from_px=0, width_px=250, height_px=320, names=4)
SIZES = (WIDE, MIDDLE, NARROW)
"""Classes of sizes, the widest first, with how many names of kernels each may hold."""

SLOT = " : ".join(f"w >= {size.from_px} ? {i}" for i, size in enumerate(SIZES[:-1])) + f" : {len(SIZES) - 1}"
"""Expression of the size class at hand, by the signal `w`."""


class Sheet(Struct, frozen=True):
    """A logarithmic plane drawn at one size; pixels count from the upper left corner."""

    x_domain: Domain
    y_domain: Domain
    width_px: float
    height_px: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Give the pixels of an intensity and a performance."""
        right = log10(x / self.x_domain[0]) / decades(self.x_domain) * self.width_px
        up = log10(y / self.y_domain[0]) / decades(self.y_domain) * self.height_px
        return right, self.height_px - up


def decades(domain: Domain) -> float:
    """Measure a logarithmic range."""
    return log10(domain[1] / domain[0])


def areas_px2(plane: Plane) -> tuple[float, float]:
    """Choose the smallest and the largest area of a point; many large ones would bury their neighbours."""
    smallest, largest = (64, 800) if plane.drawn <= CROWD else (48, 320)
    return smallest * plane.dot_part, largest * plane.dot_part


def radius_px(plane: Plane, launch: DrawnLaunch) -> float:
    """Work out half the width of a launch's point."""
    smallest, largest = areas_px2(plane)
    area_px2 = smallest + (largest - smallest) * launch.time_share / plane.longest_share
    return sqrt(max(area_px2, NUMBERED_PX2 if launch.rank else 0.0)) / 2


def dot_box(plane: Plane, point: Point, view: Sheet) -> Box:
    """Make the box of a launch's point in a plane at one size."""
    return point_box(view.at(*point.at), radius_px(plane, point.launch))


def point_box(place: tuple[float, float], radius: float) -> Box:
    """Make the box of a point, whatever its shape, with some air around it."""
    return Box(*place, radius + POINT_AIR_PX, radius + POINT_AIR_PX, place[0])
