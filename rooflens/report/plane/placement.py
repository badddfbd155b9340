"""Text beside points, placed so that nothing overlaps: each wish takes its first free spot, or is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot
from typing import TYPE_CHECKING

from rooflens.report.plane.geometry import Box, hits_any, segment, text_px

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Place = Callable[[float, float], tuple[float, float]]

FONT_PX = 12
BOLD_PX = 13
LINE_PX = 14
"""Height that a line of text takes on the screen."""

NEAR_PX = 6
"""Distance of words from their point."""

AWAY_PX = (26, 44, 64, 90)
"""Distances of words that a thin line leads to, where there is no room beside their point."""

LEAD_FROM_PX = 5
LEAD_TO_PART = 0.97
"""Where the line begins, from the rim of the point, and where on the way to the words it ends."""

SLANTS = ((0.87, 0.5), (0.87, -0.5), (0.5, 0.87), (0.5, -0.87), (0.2, 0.98), (0.2, -0.98))
DIRECTIONS = tuple((right * side, down) for right, down in SLANTS for side in (1, -1))

INSIDE_PX = 2


@dataclass(frozen=True, slots=True)
class Spot:
    """A place for text: pixels from its anchor, y downwards, and the side of the words that stands there.

    Attributes:
        side: -1 when the words end there, 1 when they begin there, 0 when they are centred.
        lead: How far from the anchor a thin line to the words begins; None for words that need none.
    """

    dx: float
    dy: float
    side: int
    lead: float | None = None

    @property
    def row(self) -> list[float]:
        """Write it as the chart's data hold it: offsets, side, and the part of the way where a line begins."""
        place: list[float] = [round(self.dx), round(self.dy), self.side]
        return place if self.lead is None else [*place, round(self.lead / hypot(self.dx, self.dy), 2)]


@dataclass(frozen=True, slots=True)
class Wish:
    """A text that wants a place.

    Attributes:
        x: Place of its anchor in the units of the data.
        spots: Where it may stand, the best one first.
        own: Makes the boxes that only this text has to avoid, at a size.
    """

    text: str
    x: float
    y: float
    spots: Sequence[Spot]
    bold: bool = False
    own: Callable[[Place], Iterable[Box]] | None = None


@dataclass(slots=True)
class Canvas:
    """A drawing at one size.

    Attributes:
        at: Gives the pixels of a place in the units of the data.
        taken: What text may never overlap; what is placed is added.
        lines: What text should not cross where there is another place.
    """

    at: Place
    width_px: float
    height_px: float
    taken: list[Box] = field(default_factory=list)
    lines: list[Box] = field(default_factory=list)


def place(wish: Wish, canvases: Sequence[Canvas]) -> Spot | None:
    """Place a text at the first of its spots that is free on every canvas, and take that; None where there is none.

    Spots that cross no line are taken before those that do.
    """
    own = [list(wish.own(canvas.at)) if wish.own else [] for canvas in canvases]
    crossing = None
    for spot in wish.spots:
        boxes = [[text_box(wish, spot, canvas.at), *_lead_box(wish, spot, canvas.at)] for canvas in canvases]
        if any(_blocked(some, canvas, mine) for some, canvas, mine in zip(boxes, canvases, own, strict=True)):
            continue
        if not any(hits_any(some[0], canvas.lines) for some, canvas in zip(boxes, canvases, strict=True)):
            return _take(spot, boxes, canvases)
        crossing = crossing or (spot, boxes)
    return _take(*crossing, canvases) if crossing else None


def _lead_box(wish: Wish, spot: Spot, at: Place) -> list[Box]:
    """Make the box of the thin line to words that stand away from their point."""
    if spot.lead is None:
        return []
    right, down = at(wish.x, wish.y)
    part = spot.lead / hypot(spot.dx, spot.dy)
    begin, end = ((right + spot.dx * along, down + spot.dy * along) for along in (part, LEAD_TO_PART))
    return [segment(begin, end)]


def _blocked(boxes: Sequence[Box], canvas: Canvas, own: Iterable[Box]) -> bool:
    if not boxes[0].grown(INSIDE_PX).inside(canvas.width_px, canvas.height_px):
        return True
    return any(hits_any(box, canvas.taken) or hits_any(box, own) for box in boxes)


def _take(spot: Spot, boxes: Iterable[Sequence[Box]], canvases: Iterable[Canvas]) -> Spot:
    for some, canvas in zip(boxes, canvases, strict=True):
        canvas.taken.extend(some)
    return spot


def text_box(wish: Wish, spot: Spot, at: Place) -> Box:
    """Make the box that a text covers at a spot."""
    right, down = at(wish.x, wish.y)
    half = text_px(wish.text, BOLD_PX if wish.bold else FONT_PX, bold=wish.bold) / 2
    return Box(right + spot.dx + spot.side * half, down + spot.dy, half, LINE_PX / 2)


def spots_around(radius: float) -> list[Spot]:
    """List the places around a point: beside, above, below, at its corners, and away from it with a line to them."""
    r, corner = radius + NEAR_PX, 0.75 * radius + NEAR_PX
    beside = [Spot(r, 0, 1), Spot(-r, 0, -1), Spot(0, -r - LINE_PX / 2, 0), Spot(0, r + LINE_PX / 2, 0)]
    down = corner + LINE_PX / 4
    corners = [Spot(side * corner, y, side) for side in (1, -1) for y in (-down, down)]
    away = [
        Spot(right * distance, height * distance, 1 if right > 0 else -1, radius + LEAD_FROM_PX)
        for distance in (radius + px for px in AWAY_PX)
        for right, height in DIRECTIONS
    ]
    return [*beside, *corners, *away]


def rank_spots(radius: float) -> list[Spot]:
    """List the places of a number at a point: its lower left corner first, then round it."""
    r, low = radius + NEAR_PX, 0.6 * radius + LINE_PX / 2
    around = [Spot(-r, low, -1), Spot(-r, -low, -1), Spot(r, low, 1), Spot(r, -low, 1), Spot(-r, 0, -1), Spot(r, 0, 1)]
    return [*around, Spot(0, r + LINE_PX / 2, 0), Spot(0, -r - LINE_PX / 2, 0)]
