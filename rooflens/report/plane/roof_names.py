"""Where the names of roofs stand: along their diagonal or at the right end of a flat roof, never over one another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from math import cos, hypot, sin
from typing import TYPE_CHECKING

from rooflens.report.plane.geometry import Box, hits_any, segment, text_px
from rooflens.report.plane.placement import FONT_PX, INSIDE_PX, LINE_PX, Canvas, Spot, Wish, place, text_box
from rooflens.report.plane.viewport import plane_sheet, point_box, radius_px

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.report.plane.plane import Plane, Point
    from rooflens.report.plane.viewport import Sheet, SizeClass

LIFT_PX = 3
"""Distance of the words from their line."""

STEP_PX = 6
EDGE_PX = 4
CORNER_PX = 4
"""Half the width of the dot at a ridge, with air."""

SLIDE_PX = 16
SLIDE_PART = 0.4
"""The name of a flat roof moves left in such steps, over no more than this part of the plane."""

ABOVE, BELOW = 1, -1


@dataclass(frozen=True, slots=True)
class Slope:
    """A diagonal roof that wants its name beside it: performance = slope x intensity, up to `top`.

    Attributes:
        texts: The name, then shorter ones for a line that is too short for it.
        step_px: How far apart the places are that are tried.
    """

    key: str
    slope: float
    top: float | None
    texts: tuple[str, ...]
    step_px: float = STEP_PX


@dataclass(frozen=True, slots=True)
class Flat:
    """A flat roof that wants its name at its right end; `texts` are tried in order.

    Attributes:
        begin: Intensity where the line begins; its name begins no farther left.
    """

    key: str
    peak: float
    texts: tuple[str, ...]
    begin: float | None = None


@dataclass(frozen=True, slots=True)
class Along:
    """A place along a diagonal: words, at which part of its visible length they begin, and on which side of it."""

    text: str
    part: float
    side: int

    @property
    def row(self) -> list[str | float]:
        """Write it as the chart's data hold it."""
        return [self.text, self.part, self.side]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plane drawn at one size, and what text has to keep clear of there.

    Attributes:
        soft: What the names of roofs keep clear of where they can: the gap that is drawn from the start.
    """

    sheet: Sheet
    canvas: Canvas
    soft: tuple[Box, ...] = ()


@dataclass(slots=True)
class RoofNames:
    """The places found at one class of sizes; a name without one is not drawn."""

    slopes: dict[str, Along] = field(default_factory=dict)
    flats: dict[str, tuple[str, Spot]] = field(default_factory=dict)


def drawings(plane: Plane, size: SizeClass) -> list[Drawing]:
    """Draw a plane at the smallest and the largest usual width of a class."""
    return [drawing(plane_sheet(plane, width_px, size.height_px), plane) for width_px in size.widths_px]


def drawing(sheet: Sheet, plane: Plane) -> Drawing:
    """Begin a drawing with the lines of the plane's roofs."""
    canvas = Canvas(sheet.at, sheet.width_px, sheet.height_px, lines=list(_lines(sheet, plane)))
    return Drawing(sheet, canvas)


def top_of(plane: Plane) -> float | None:
    """Give the highest flat roof, at which every diagonal ends."""
    return max((roof.peak for roof in plane.pipe_roofs), default=None)


def _lines(sheet: Sheet, plane: Plane) -> Iterator[Box]:
    for roof in plane.level_roofs:
        if seen := sheet.visible(roof.peak, top_of(plane)):
            yield segment(sheet.at(seen[0], seen[0] * roof.peak), sheet.at(seen[1], seen[1] * roof.peak))
    fastest = max((roof.peak for roof in plane.level_roofs), default=None)
    for roof in plane.pipe_roofs:
        start = max(sheet.x_domain[0], roof.peak / fastest) if fastest else sheet.x_domain[0]
        begin, end = min(start, sheet.x_domain[1]), sheet.x_domain[1]
        yield segment(sheet.at(begin, roof.peak), sheet.at(end, roof.peak))
    yield from (Box(*sheet.at(x, y), CORNER_PX, CORNER_PX) for x, y in plane.ridges(plane.first_level))


def name_roofs(plane: Plane, slopes: Iterable[Slope], flats: Iterable[Flat], drawn: Sequence[Drawing]) -> RoofNames:
    """Place the names of a plane's own roofs; the drawings then hold them as taken."""
    names = RoofNames()
    far = at_level(plane, plane.first_level)
    points = [point_boxes(plane, plane.points, one.sheet) for one in drawn]
    for flat in flats:
        if found := name_flat(flat, drawn, points):
            names.flats[flat.key] = found
    everything, first_seen = (
        [[*point_boxes(plane, some, one.sheet), *one.soft] for one in drawn] for some in (plane.points, far)
    )
    for slope in slopes:
        if along := name_slope(slope, drawn, [everything, first_seen]):
            names.slopes[slope.key] = along
    return names


def at_level(plane: Plane, level: str) -> list[Point]:
    """List the points that are seen at a level; `all` shows those of every level."""
    return [point for point in plane.points if level in {"all", point.level}]


def point_boxes(plane: Plane, points: Iterable[Point], sheet: Sheet) -> list[Box]:
    """Make the boxes of points on a sheet."""
    return [point_box(sheet.at(p.intensity_flop_per_byte, p.flop_per_s), radius_px(plane, p.launch)) for p in points]


def name_flat(flat: Flat, drawn: Sequence[Drawing], points: Sequence[list[Box]]) -> tuple[str, Spot] | None:
    """Find the place of a flat roof's name: at its right end over or under the line, else farther left or farther off.

    A roof keeps its name where it has to cross other lines, or lie over points; over words it is dropped.
    """
    near, far = LIFT_PX + LINE_PX / 2, LIFT_PX + 1.5 * LINE_PX
    slides = range(EDGE_PX + SLIDE_PX, int(SLIDE_PART * drawn[0].sheet.width_px), SLIDE_PX)
    at_end = [Spot(-EDGE_PX, dy, -1) for dy in (-near, near, -far, far)]
    slid = [Spot(-dx, dy, -1) for dx in slides for dy in (-near, near)]
    choices = [
        [_keeping_clear(one, boxes, points_too=points_too) for one, boxes in zip(drawn, points, strict=True)]
        for points_too in (True, False)
    ]
    for canvases, spots, text in product(choices, (at_end, slid), flat.texts):
        wish = Wish(text, drawn[0].sheet.x_domain[1], flat.peak, [s for s in spots if _on_line(flat, text, s, drawn)])
        if spot := place(wish, canvases):
            for one in drawn:
                one.canvas.taken.append(text_box(wish, spot, one.sheet.at))
            return text, spot
    return None


def _on_line(flat: Flat, text: str, spot: Spot, drawn: Iterable[Drawing]) -> bool:
    """Tell whether a name lies beside its own line at every width; at the edge it may be longer than the line."""
    if flat.begin is None or spot.dx == -EDGE_PX:
        return True
    begin, wide = flat.begin, text_px(text, FONT_PX)
    return all(one.sheet.width_px + spot.dx - wide >= one.sheet.at(begin, flat.peak)[0] for one in drawn)


def _keeping_clear(drawn: Drawing, points: Iterable[Box], *, points_too: bool) -> Canvas:
    """Make a canvas on which words keep clear of other words, and of points or only where there is another place."""
    canvas, over = drawn.canvas, list(points)
    taken = [*canvas.taken, *drawn.soft, *(over if points_too else ())]
    return replace(canvas, taken=taken, lines=canvas.lines if points_too else [*canvas.lines, *over])


def name_slope(slope: Slope, drawn: Sequence[Drawing], points: Sequence[Sequence[list[Box]]]) -> Along | None:
    """Find the place of a diagonal roof's name: clear of lines and of all points, else of those that are seen first.

    Args:
        slope: The roof.
        drawn: The plane at each width.
        points: What to keep clear of, the stricter choice first; for each of it the boxes at each width.
    """
    lines = [one.canvas.lines for one in drawn]
    strictest = [[*boxes, *more] for boxes, more in zip(points[0], lines, strict=True)] if points else lines
    places = list(_free_places(slope, drawn))
    choices = [(text, avoid) for text in slope.texts for avoid in (strictest, *points, [[] for _ in drawn])]
    for text, avoid in choices:
        for along, boxes in places:
            if along.text == text and not any(hits_any(box, more) for box, more in zip(boxes, avoid, strict=True)):
                for box, one in zip(boxes, drawn, strict=True):
                    one.canvas.taken.append(box)
                return along
    return None


def _free_places(slope: Slope, drawn: Sequence[Drawing]) -> Iterator[tuple[Along, list[Box]]]:
    """List the places along a line that are inside the plane and clear of other words, at every width."""
    for along in _along(slope, drawn[0].sheet):
        boxes = [box for one in drawn if (box := along_box(slope, along, one.sheet)) and _is_free(box, one)]
        if len(boxes) == len(drawn):
            yield along, boxes


def _along(slope: Slope, sheet: Sheet) -> Iterator[Along]:
    """Try places from the line's lower end to its upper one, over the line before under it."""
    seen = sheet.visible(slope.slope, slope.top)
    if seen is None:
        return
    (x0, y0), (x1, y1) = (sheet.at(x, x * slope.slope) for x in seen)
    steps = max(1, int(hypot(x1 - x0, y1 - y0) / slope.step_px))
    for text in slope.texts:
        for side in (ABOVE, BELOW):
            for step in range(steps):
                yield Along(text, round(step / steps, 3), side)


def along_box(slope: Slope, along: Along, sheet: Sheet) -> Box | None:
    """Make the box of words along a diagonal; None where they would run over its end."""
    seen = sheet.visible(slope.slope, slope.top)
    if seen is None:
        return None
    x = seen[0] * (seen[1] / seen[0]) ** along.part
    right, down = sheet.at(x, x * slope.slope)
    angle, half = sheet.angle, text_px(along.text, FONT_PX) / 2
    end, _ = sheet.at(seen[1], seen[1] * slope.slope)
    if right + 2 * half * cos(angle) > end:
        return None
    off = along.side * (LIFT_PX + LINE_PX / 2)
    return Box(
        right + half * cos(angle) + off * sin(angle),
        down + half * sin(angle) - off * cos(angle),
        half,
        LINE_PX / 2,
        angle,
    )


def _is_free(box: Box, drawn: Drawing) -> bool:
    inside = box.grown(INSIDE_PX).inside(drawn.sheet.width_px, drawn.sheet.height_px)
    return inside and not hits_any(box.grown(1), drawn.canvas.taken)


def name_boxes(slopes: Iterable[Slope], flats: Iterable[Flat], names: RoofNames, sheet: Sheet) -> list[Box]:
    """Make the boxes of names that were placed elsewhere, as they stand on another sheet."""
    along = [along_box(slope, names.slopes[slope.key], sheet) for slope in slopes if slope.key in names.slopes]
    boxes = [box for box in along if box]
    for flat in flats:
        if flat.key in names.flats:
            text, spot = names.flats[flat.key]
            boxes.append(text_box(Wish(text, sheet.x_domain[1], flat.peak, ()), spot, sheet.at))
    return boxes
