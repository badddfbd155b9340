"""Upright boxes on the screen, lines between them, and how wide words are: what placing text needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import floor
from typing import NamedTuple

FONT_PX = 12

WIDTH_MARGIN = 1.06
"""System fonts differ by a few per cent from the widths below; words may not run into each other in any of them."""

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

WIDER = 0.41
"""How much wider a plane may be than the one that its text was placed in."""

BAND_PX = 16
"""Height of a band: about that of a line of text."""


class Line(NamedTuple):
    """A straight line from one pixel to another."""

    x0: float
    y0: float
    x1: float
    y1: float


class Box(NamedTuple):
    """An upright rectangle by its centre, in pixels, y downwards; it moves with `anchor` when the plane grows wider."""

    x: float
    y: float
    half_width: float
    half_height: float
    anchor: float

    def inside(self, width_px: float, height_px: float, air_px: float) -> bool:
        """Return whether it lies between the origin and a lower right corner, with some air on every side."""
        wide, high = self.half_width + air_px, self.half_height + air_px
        return wide <= self.x <= width_px - wide and high <= self.y <= height_px - high


class Boxes:
    """Boxes by the bands of the screen that they reach into: only those of its own bands are compared with a box."""

    def __init__(self, boxes: Iterable[Box] = ()) -> None:
        """Hold some boxes."""
        self._boxes: list[Box] = []
        self._bands: dict[int, list[Box]] = {}
        self.extend(boxes)

    def __iter__(self) -> Iterator[Box]:
        """List them in the order in which they came."""
        return iter(self._boxes)

    def extend(self, boxes: Iterable[Box]) -> None:
        """Hold more boxes."""
        for box in boxes:
            self._boxes.append(box)
            for band in _bands(box.y - box.half_height, box.y + box.half_height):
                self._bands.setdefault(band, []).append(box)

    def hits(self, box: Box) -> bool:
        """Return whether any of them overlaps a box, or would in a plane that is a little wider.

        Touching is not overlapping. Written out without a call for each box, as a page asks a million times.
        """
        x, y, half_width, half_height, anchor = box
        for band in _bands(y - half_height, y + half_height):
            for other_x, other_y, other_width, other_height, other_anchor in self._bands.get(band, ()):
                if abs(y - other_y) >= half_height + other_height:
                    continue
                if x <= other_x:
                    room, lean = other_x - other_width - x - half_width, anchor - other_anchor
                else:
                    room, lean = x - half_width - other_x - other_width, other_anchor - anchor
                # Heights stay as a plane grows wider: only boxes whose anchors lie the other way round can meet.
                if room < 0 or room < WIDER * lean:
                    return True
        return False

    def crossed_by(self, line: Line) -> bool:
        """Return whether a line passes through any of them."""
        edge = Edge.of(line)
        return any(crossed(self._bands.get(band, ()), (edge,)) for band in _bands(edge.top, edge.bottom))


class Edge(NamedTuple):
    """A line with its bounds and its direction: worked out once for the many boxes that are held against it."""

    x0: float
    y0: float
    left: float
    right: float
    top: float
    bottom: float
    across: float
    down: float

    @classmethod
    def of(cls, line: Line) -> Edge:
        """Work them out."""
        x0, y0, x1, y1 = line
        return cls(x0, y0, min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1), x1 - x0, y1 - y0)


def crossed(boxes: Sequence[Box], edges: Iterable[Edge]) -> bool:
    """Return whether a line passes through any of the boxes; written out, as for `Boxes.hits`."""
    for x0, y0, left, right, top, bottom, across, down in edges:
        for x, y, half_width, half_height, _ in boxes:
            # Where the bounds of a line reach into a box, the line misses it if all corners lie on one side.
            if (
                top < y + half_height
                and bottom > y - half_height
                and left < x + half_width
                and right > x - half_width
                and abs(across * (y - y0) - down * (x - x0)) < abs(across) * half_height + abs(down) * half_width
            ):
                return True
    return False


def _bands(top: float, bottom: float) -> range:
    return range(floor(top / BAND_PX), floor(bottom / BAND_PX) + 1)


@lru_cache(maxsize=4096)
def text_px(text: str) -> float:
    """Estimate how wide a text is drawn at most, in the usual fonts without serifs."""
    ems = sum(_EM_OF.get(char, _EM_WIDE if ord(char) >= _FIRST_WIDE else _EM_USUAL) for char in text)
    return ems * FONT_PX * WIDTH_MARGIN
