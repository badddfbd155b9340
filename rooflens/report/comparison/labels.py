"""Text of a comparison's plane: roofs, ridges, and the kernels with the biggest differences; nothing overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens import format as fmt
from rooflens.report.plane.geometry import segment
from rooflens.report.plane.placement import Canvas, Spot, Wish, place, spots_around
from rooflens.report.plane.roof_names import Drawing, Flat, Slope, name_flat, name_slope
from rooflens.report.plane.short_names import LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.viewport import point_box
from rooflens.report.roofline.labels import ridge_spots, ridge_text
from rooflens.report.roofline.rows import flat_names, slope_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.model.launches import Launch
    from rooflens.report.comparison.plane import Move, Moves
    from rooflens.report.plane.geometry import Box
    from rooflens.report.plane.roof_names import Along
    from rooflens.report.plane.viewport import Sheet, SizeClass

LONG_LABEL_WIDTH = 40
ARROW_PX = 4
ROOF_OF_SHARES = "100 % of the kernel's own roof"
FOOT_SPOTS = tuple(Spot(side * 6, -10 - 16 * line, side) for line in (0, 1, 2) for side in (1, -1))
"""Places of a ridge's words beside the foot of its line."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words at a place of the plane.

    Attributes:
        key: The kernel's key; empty for ridges.
        spot: None where it does not fit.
    """

    key: str
    text: str
    x: float
    y: float
    spot: Spot | None


@dataclass(frozen=True, slots=True)
class Placed:
    """All text at one level and one class of sizes.

    Attributes:
        slope: Where the name of the diagonal roof stands along it.
        flats: Names of flat roofs with their spots at the right edge; None where there is no room.
    """

    slope: Along | None
    flats: tuple[tuple[str, Spot] | None, ...]
    names: tuple[Text, ...]
    ridges: tuple[Text, ...]


def place_text(found: Moves, level: str, size: SizeClass) -> Placed:
    """Place the text of one level at the smallest and the largest usual width of a class of sizes."""
    here = [move for move in found.moves if move.level == level]
    drawn = [_drawing(found, here, level, found.sheet(width, size.height_px)) for width in size.widths_px]
    dots = [list(_dots(here, one.sheet)) for one in drawn]
    flats = tuple(name_flat(flat, drawn, dots) for flat in _flats(found, size))
    wanted = _slope(found, level)
    slope = name_slope(wanted, drawn, [dots]) if wanted else None
    canvases = [one.canvas for one in drawn]
    for canvas, boxes in zip(canvases, dots, strict=True):
        canvas.taken.extend(boxes)
    names = tuple(_names(found, here, canvases, size))
    return Placed(slope, flats, names, tuple(_ridges(found, level, canvases)))


def _drawing(found: Moves, here: Sequence[Move], level: str, sheet: Sheet) -> Drawing:
    """Begin with the lines of roofs and arrows, which words should not cross."""
    lines = [*_roof_lines(found, level, sheet), *_arrows(here, sheet)]
    return Drawing(sheet, Canvas(sheet.at, sheet.width_px, sheet.height_px, lines=lines))


def _roof_lines(found: Moves, level: str, sheet: Sheet) -> Iterator[Box]:
    low, high = sheet.x_domain
    if found.in_shares:
        yield segment(sheet.at(low, 1), sheet.at(high, 1))
        for _, x in found.ridges(level):
            yield segment(sheet.at(x, 0), sheet.at(x, 1))
        return
    slope = found.slope(level)
    top = max((pipe.peak for pipe in found.pipes), default=None)
    if slope and (seen := sheet.visible(slope.peak, top)):
        low_end, high_end = (sheet.at(x, x * slope.peak) for x in seen)
        yield segment(low_end, high_end)
    for pipe in found.pipes:
        start = max(low, pipe.peak / slope.peak) if slope else low
        yield segment(sheet.at(min(start, high), pipe.peak), sheet.at(high, pipe.peak))


def _arrows(here: Iterable[Move], sheet: Sheet) -> Iterator[Box]:
    for move in here:
        if move.before and move.after:
            ends = [sheet.at(one.x, one.y) for one in (move.before, move.after)]
            yield segment(ends[0], ends[1], ARROW_PX)


def _dots(here: Iterable[Move], sheet: Sheet) -> Iterator[Box]:
    for move in here:
        for one in move.places:
            yield point_box(sheet.at(one.x, one.y), one.radius_px)


def _flats(found: Moves, size: SizeClass) -> list[Flat]:
    if found.in_shares:
        return [Flat("roof", 1.0, (ROOF_OF_SHARES, "its own roof"))]
    named = [(roof, flat_names(roof, found.clocks_hz)) for roof in found.pipes]
    return [Flat(roof.keys[0], roof.peak, names[-1:] if size.narrow else names) for roof, names in named]


def _slope(found: Moves, level: str) -> Slope | None:
    roof = found.slope(level)
    top = max((pipe.peak for pipe in found.pipes), default=None)
    return Slope(level, roof.peak, top, slope_names(roof)) if roof else None


def _names(found: Moves, here: Sequence[Move], canvases: Sequence[Canvas], size: SizeClass) -> Iterator[Text]:
    """Name the kernels with the biggest differences: whole where there is room, else cut short."""
    widths = (NARROW_LABEL_WIDTH,) if size.narrow else (LONG_LABEL_WIDTH, LABEL_WIDTH)
    named = [short_names(_launches(found), width) for width in widths]
    for move in here[: size.names]:
        texts = dict.fromkeys(names[move.row.key] + _mark(move) for names in named)
        tries = (_try(move, text, canvases) for text in texts)
        if name := next((one for one in tries if one), None):
            yield name


def _mark(move: Move) -> str:
    return "" if move.row.is_matched else f" ({move.row.change.how})"


def _try(move: Move, text: str, canvases: Sequence[Canvas]) -> Text | None:
    """Place a name at the dot after, else at the one before."""
    for one in reversed(move.places):
        if spot := place(Wish(text, one.x, one.y, spots_around(one.radius_px)), canvases):
            return Text(move.row.key, text, one.x, one.y, spot)
    return None


def _launches(found: Moves) -> list[Launch]:
    """List one launch for each kernel of the plane, by its name after the change where there is one."""
    by_key = {point.launch.key: point.launch for side in (found.base, found.head) for point in side.points}
    return list(by_key.values())


def _ridges(found: Moves, level: str, canvases: Sequence[Canvas]) -> Iterator[Text]:
    for text, x, y, spots in _ridge_wishes(found, level):
        spot = place(Wish(text, x, y, spots), canvases)
        yield Text("", text, x, y, spot)


def _ridge_wishes(found: Moves, level: str) -> Iterator[tuple[str, float, float, Sequence[Spot]]]:
    if found.in_shares:
        for name, x in found.ridges(level):
            yield f"{name} {fmt.intensity(x)}", x, 0.0, FOOT_SPOTS
        return
    slope = found.slope(level)
    for pipe in found.pipes if slope else ():
        x = pipe.peak / slope.peak if slope else 0.0
        yield ridge_text(x), x, pipe.peak, ridge_spots()
