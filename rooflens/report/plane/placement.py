"""Words beside points, placed so that nothing overlaps: each text takes its first free spot, or is dropped.

Texts are placed in the order of their importance, in a plane as wide as the narrowest one of its class of sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import hypot, log10
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rooflens.report.plane.geometry import Box, Boxes, Edge, Line, crossed, text_px
from rooflens.report.plane.viewport import Sheet

Row = list[Any]

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

_RADII_KEPT = 1024

INSIDE_PX = 2

MARK_PX = 3
"""Distance of a level's letter from its point."""

SAME_PLACE_DECADES = 0.1
"""Points nearer than this are one place with one mark."""


class Spot(NamedTuple):
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
    def lead_part(self) -> float:
        """Part of the way from the anchor to the words at which the thin line begins."""
        return (self.lead or 0.0) / hypot(self.dx, self.dy)

    def row(self, words: str) -> Row:
        """Write words at it as the chart's data hold them: offsets, side, and the part of the way where a line begins.

        The chart takes the text of the row itself for words that are empty.
        """
        place: Row = [words, round(self.dx), round(self.dy), self.side]
        return place if self.lead is None else [*place, round(self.lead_part, 2)]


class PlacedWords(NamedTuple):
    """Words at one place: as the chart's data hold them, the boxes that cover them, and the thin line to them."""

    row: Row
    boxes: Sequence[Box]
    lead: Line | None = None


class Text(Struct, frozen=True):
    """Words that ask for a place.

    Attributes:
        words: The text, then shorter ones.
        x: Place of its anchor in the units of the data.
        spots: Where it may stand, the best first.
        own: Boxes that only this text has to avoid.
    """

    words: tuple[str, ...]
    x: float
    y: float
    spots: Sequence[Spot]
    own: Sequence[Box] = ()

    def places(self, view: Sheet) -> Iterator[PlacedWords]:
        """List where it may stand: the whole words at all their spots, then shorter ones."""
        right, down = view.at(self.x, self.y)
        for words in self.words:
            # Widths come from a table of glyphs: no browser is here to measure them.
            half = text_px(words) / 2
            for spot in self.spots:
                box = Box(right + spot.dx + spot.side * half, down + spot.dy, half, LINE_PX / 2, right)
                yield PlacedWords(spot.row(words), (box,), _lead(right, down, spot))


def _lead(right: float, down: float, spot: Spot) -> Line | None:
    """Make the thin line to words that stand away from their point."""
    if spot.lead is None:
        return None
    begin, end = spot.lead_part, LEAD_TO_PART
    return Line(right + spot.dx * begin, down + spot.dy * begin, right + spot.dx * end, down + spot.dy * end)


class Canvas(Struct, frozen=True):
    """A plane at one size, and the room already taken in it.

    Attributes:
        taken: What text may never overlap; what is placed is added.
        leads: Thin lines to texts, which no text may cross either.
        lines: What text crosses only where there is no other place.
    """

    view: Sheet
    taken: Boxes = field(default_factory=Boxes)
    lines: list[Line] = field(default_factory=list)
    leads: list[Edge] = field(default_factory=list)

    def copy(self) -> Canvas:
        """Copy the canvas with what is taken now."""
        return replace(self, taken=Boxes(self.taken), leads=list(self.leads))

    def without(self, line: Line) -> Canvas:
        """Return the same plane for words that may cross a line of it; what is placed there is taken here too."""
        return replace(self, lines=[other for other in self.lines if other != line])

    def place(self, text: Text) -> Row | None:
        """Place a text at the best of its spots that is free, and take that; None if there is none."""
        return self.take(text.places(self.view), Boxes(text.own))

    def take(self, places: Iterable[PlacedWords], more: Boxes | None = None) -> Row | None:
        """Take the first place that is free and crosses no line, else the first free one, clear of `more` boxes too."""
        best = self.find(places, more)
        if best is None:
            return None
        self.taken.extend(best.boxes)
        if best.lead is not None:
            self.leads.append(Edge.of(best.lead))
        return best.row

    def find(self, places: Iterable[PlacedWords], more: Boxes | None = None) -> PlacedWords | None:
        """Find the place that `take` would take."""
        taken = (self.taken,) if more is None else (more, self.taken)
        edges = [Edge.of(line) for line in self.lines]
        best = None
        for place in places:
            if best is None:
                if not self._is_free(place, taken):
                    continue
                best = place
                if not crossed(place.boxes, edges):
                    break
            elif not crossed(place.boxes, edges) and self._is_free(place, taken):
                return place
        return best

    def _is_free(self, place: PlacedWords, taken: Sequence[Boxes]) -> bool:
        for box in place.boxes:
            if not box.inside(self.view.width_px, self.view.height_px, INSIDE_PX):
                return False
            if any(boxes.hits(box) for boxes in taken):
                return False
        # A word across another's lead line would look as if it were the one pointed at.
        if crossed(place.boxes, self.leads):
            return False
        # It may cross what is the text's own: that is of the same launch.
        return place.lead is None or not self.taken.crossed_by(place.lead)


def beside(radius: float) -> list[Spot]:
    """List the places at a point: beside it, above, below, and at its corners."""
    r, corner = radius + NEAR_PX, 0.75 * radius + NEAR_PX
    straight = [Spot(r, 0, 1), Spot(-r, 0, -1), Spot(0, -r - LINE_PX / 2, 0), Spot(0, r + LINE_PX / 2, 0)]
    down = corner + LINE_PX / 4
    return [*straight, *(Spot(side * corner, y, side) for side in (1, -1) for y in (-down, down))]


@lru_cache(maxsize=_RADII_KEPT)
def around(radius: float) -> tuple[Spot, ...]:
    """List the places at a point, and those away from it with a line to them."""
    away = [
        Spot(right * distance, height * distance, 1 if right > 0 else -1, radius + LEAD_FROM_PX)
        for distance in (radius + px for px in AWAY_PX)
        for right, height in DIRECTIONS
    ]
    return (*beside(radius), *away)


def mark_spots(radius: float) -> list[Spot]:
    """List the places of a letter that marks the level of a point: under it, over it, beside it."""
    side = radius + MARK_PX
    r = side + LINE_PX / 2 - 1
    return [Spot(0, r, 0), Spot(0, -r, 0), Spot(side, 0, 1), Spot(-side, 0, -1)]


class Placed(Protocol):
    """A point of a plane at one memory level, such as a launch or a loop."""

    @property
    def at(self) -> tuple[float, float]:
        """Intensity and performance."""

    @property
    def level(self) -> str:
        """The memory level whose bytes its intensity counts."""


Mark = TypeVar("Mark", bound=Placed)


def apart(points: Iterable[Mark], *, by_level: bool = False) -> list[Mark]:
    """Leave out points that lie almost where one before them does; `by_level` only those of the same level."""
    kept: list[Mark] = []
    for point in points:
        if not any(_are_near(point, other) and (not by_level or point.level == other.level) for other in kept):
            kept.append(point)
    return kept


def _are_near(placed: Placed, other: Placed) -> bool:
    """Return whether two places are one to the eye."""
    return all(abs(log10(a / b)) < SAME_PLACE_DECADES for a, b in zip(placed.at, other.at, strict=True))


def ridge_spots() -> list[Spot]:
    """List the places of a ridge's intensity: over the corner to its left, then under it to its right, then farther."""
    above, below = -LINE_PX / 2 - 4, LINE_PX / 2 + 4
    near = [Spot(-4, above, -1), Spot(8, below, 1), Spot(0, above, 0), Spot(4, above, 1)]
    return [*near, Spot(-4, above - LINE_PX, -1), Spot(4, above - LINE_PX, 1), Spot(14, below + LINE_PX, 1)]
