"""A plane or a strip as it is drawn at one size: where a value stands in pixels, and how large its point is.

Text is placed in Python for a few sizes of the plane. The chart uses the placement of the class its width falls into.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10, sqrt
from typing import TYPE_CHECKING, Protocol

from rooflens.report.plane.geometry import Box

if TYPE_CHECKING:
    from rooflens.model.launches import Launch
    from rooflens.report.plane.plane import Domain, Plane

CROWD = 40
"""With more launches than this, large points would bury their neighbours and letters would fill the plane."""

STRIP_LANES = 3
STRIP_LANES_ALONE = 9
"""Lanes of the strip below a plane, and where it has the picture to itself."""

LANE_PX = 24
LANE_PX_ALONE = 32
"""Height of a lane; where the strip is all there is, text has room between them."""

LANE_AIR = (0.8, 0.8)
"""Room below the lowest lane and above the highest one, in lanes."""

POINT_AIR_PX = 2


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A class of drawings: from how wide a plane it holds, the smallest usual width, and the height."""

    from_px: int
    width_px: int
    height_px: int
    names: int

    @property
    def narrow(self) -> bool:
        """Return whether it is a telephone's: levels have letters there and no names."""
        return self.from_px == 0


WIDE = SizeClass(from_px=690, width_px=700, height_px=440, names=12)
MIDDLE = SizeClass(from_px=480, width_px=490, height_px=440, names=8)
NARROW = SizeClass(from_px=0, width_px=250, height_px=320, names=4)
SIZES = (WIDE, MIDDLE, NARROW)
"""Classes of sizes, the widest first, with how many names of kernels each may hold."""

SLOT = " : ".join(f"w >= {size.from_px} ? {i}" for i, size in enumerate(SIZES[:-1])) + f" : {len(SIZES) - 1}"
"""Expression of the size class at hand, by the signal `w`."""


class Viewport(Protocol):
    """A drawing at one size: where its data stand in pixels, counted from the upper left corner."""

    @property
    def width_px(self) -> float:
        """Width."""
        ...

    @property
    def height_px(self) -> float:
        """Height."""
        ...

    def at(self, x: float, y: float, /) -> tuple[float, float]:
        """Give the pixels of a place in the units of the data."""
        ...


@dataclass(frozen=True, slots=True)
class Sheet:
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


@dataclass(frozen=True, slots=True)
class StripSheet:
    """The strip of launches without FLOPs drawn at one size."""

    widest: float
    lanes: int
    width_px: float
    height_px: float

    def at(self, share: float, lane: float) -> tuple[float, float]:
        """Give the pixels of a share and a lane."""
        low, high = strip_domain(self.lanes)
        return share / self.widest * self.width_px, self.height_px * (1 - (lane - low) / (high - low))


def strip_sheet(plane: Plane, width_px: float) -> StripSheet:
    """Draw the strip of a plane at one width."""
    return StripSheet(widest_share(plane), lane_count(plane), width_px, strip_height_px(plane))


def decades(domain: Domain) -> float:
    """Measure a logarithmic range."""
    return log10(domain[1] / domain[0])


def strip_domain(lanes: int) -> Domain:
    """Give the range of lanes with the air around them."""
    return -LANE_AIR[0], lanes - 1 + LANE_AIR[1]


def widest_share(plane: Plane) -> float:
    """Find where the axis of the strip ends: at all of the bandwidth, or at the largest share over it."""
    return max([1.0, *(p.share for p in plane.strip)])


def lane_count(plane: Plane) -> int:
    """Choose how many lanes spread the strip."""
    launches = len({point.launch.key for point in plane.strip})
    return min(STRIP_LANES if plane.points else STRIP_LANES_ALONE, max(launches, 2))


def strip_height_px(plane: Plane) -> int:
    """Choose the height of all lanes."""
    return lane_count(plane) * (LANE_PX if plane.points else LANE_PX_ALONE)


def strip_lanes(plane: Plane) -> dict[str, int]:
    """Spread the launches of the strip over its lanes, so that they do not cover each other."""
    return {key: i % lane_count(plane) for i, key in enumerate(dict.fromkeys(p.launch.key for p in plane.strip))}


def areas_px2(plane: Plane) -> tuple[int, int]:
    """Choose the smallest and the largest area of a point; many large ones would bury their neighbours."""
    return (64, 800) if plane.drawn <= CROWD else (48, 320)


def radius_px(plane: Plane, launch: Launch) -> float:
    """Work out half the width of a launch's point."""
    smallest, largest = areas_px2(plane)
    return sqrt(smallest + (largest - smallest) * (launch.time_share or 0.0) / plane.longest_share) / 2


def point_box(place: tuple[float, float], radius: float) -> Box:
    """Make the box of a point, whatever its shape, with some air around it."""
    return Box(*place, radius + POINT_AIR_PX, radius + POINT_AIR_PX, place[0])
