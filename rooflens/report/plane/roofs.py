"""The roofs of a plane: their lines, and their names at fixed places, moved only where two would collide.

The name of a slope stands along the lower end of what is seen of it, that of a flat roof over its right end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot
from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.plane.geometry import Box, Line, text_px
from rooflens.report.plane.marks import QUIET, Rows, at_spot, expr, place, placed, words, written
from rooflens.report.plane.placement import FONT_PX, INSIDE_PX, LINE_PX, Spot, Text, text_box

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflens.report.plane.marks import Layer
    from rooflens.report.plane.placement import Canvas
    from rooflens.report.plane.viewport import Viewport

    Row = list[Any]

LIFT_PX = 3
"""Distance of the words from their line."""

STEP_PX = 12
EDGE_PX = 4
CORNER_PX = 4
"""Half the width of the dot at a ridge, with air."""

SLIDE_PX = 16
SLIDE_PART = 0.4
"""The name of a flat roof moves left in such steps, over no more than this part of the plane."""

LINK_PX = 10
"""Distance between the boxes that cover the words along a slope."""

TURN_PART = 0.07
"""So much of their distance from the begin of a slope's words may letters move as the plane grows wider."""

ABOVE, BELOW = 1, -1

BEYOND = 1e4
"""Lines go so much farther than what is seen: a reader who pans must not find their ends."""


@dataclass(frozen=True, slots=True)
class Slope:
    """A diagonal roof: performance = `per_byte` x intensity, up to `top`; `names` are its name and shorter ones."""

    key: str
    per_byte: float
    top: float | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flat:
    """A flat roof with its name and shorter ones; `begin` is the intensity where its line begins."""

    key: str
    peak: float
    names: tuple[str, ...]
    begin: float | None = None


@dataclass(frozen=True, slots=True)
class Roofs:
    """The roofs of a plane over a range of intensities and of performance."""

    slopes: tuple[Slope, ...]
    flats: tuple[Flat, ...]
    x_domain: tuple[float, float]
    y_domain: tuple[float, float]

    def lines(self, view: Viewport) -> Iterator[Line]:
        """Give what is seen of them."""
        for slope in self.slopes:
            if seen := self.visible(slope):
                yield Line(*(px for x in seen for px in view.at(x, x * slope.per_byte)))
        low, high = self.x_domain
        for flat in self.flats:
            begin = min(max(low, flat.begin or low), high)
            yield Line(*view.at(begin, flat.peak), *view.at(high, flat.peak))

    def visible(self, slope: Slope) -> tuple[float, float] | None:
        """Find the intensities between which a slope is seen; None where it is not."""
        low = max(self.x_domain[0], self.y_domain[0] / slope.per_byte)
        high = min(self.x_domain[1], min(self.y_domain[1], slope.top or self.y_domain[1]) / slope.per_byte)
        return (low, high) if low < high else None

    def name(self, canvas: Canvas, avoid: Sequence[Box] = ()) -> dict[str, Row]:
        """Place the names of all roofs by their keys; the canvas then holds them as taken.

        Names keep clear of one another, and where they can of the boxes to avoid, then of lines.
        """
        found = {flat.key: self._name_flat(flat, canvas, avoid) for flat in self.flats}
        found |= {slope.key: self._name_slope(slope, canvas, avoid) for slope in self.slopes}
        return {key: row for key, row in found.items() if row}

    def _name_flat(self, flat: Flat, canvas: Canvas, avoid: Sequence[Box]) -> Row | None:
        """Place a name at the right end over or under the line, else farther off, else shorter, else farther left."""
        view, high = canvas.view, self.x_domain[1]
        begin_px = view.at(flat.begin, flat.peak)[0] if flat.begin else 0.0
        choices: list[tuple[int, str, Spot, Box]] = []
        for slid, spot in _flat_spots(view.width_px):
            for shorter, name in enumerate(flat.names):
                box = text_box(view, Text((), high, flat.peak, ()), name, spot)
                on_line = not slid or box.x - box.half_width >= begin_px
                if on_line and _is_free(box, canvas):
                    cost = 2 * _cost(box, canvas, avoid) + 4 * slid + shorter
                    choices.append((cost, name, spot, box))
        if not choices:
            return None
        _, name, spot, box = min(choices, key=lambda choice: choice[0])
        canvas.taken.append(box)
        return spot.row(name)

    def _name_slope(self, slope: Slope, canvas: Canvas, avoid: Sequence[Box]) -> Row | None:
        """Place a name along what is seen of a slope: over the line before under it, the lower end first."""
        seen = self.visible(slope)
        if seen is None:
            return None
        line = Line(*(px for x in seen for px in canvas.view.at(x, x * slope.per_byte)))
        near = replace(canvas, taken=[box for box in canvas.taken if _is_near(box, line)])
        points = [box for box in avoid if _is_near(box, line)]
        for name in slope.names:
            choices = []
            for side in (ABOVE, BELOW):
                for part, boxes in _along(line, text_px(name, FONT_PX), side):
                    if all(_is_free(box, near) for box in boxes):
                        cost = max(_cost(box, near, points) for box in boxes)
                        choices.append((cost, part, side, boxes))
                        if not cost:
                            break
            if choices:
                _, part, side, boxes = min(choices, key=lambda choice: choice[0])
                canvas.taken.extend(boxes)
                return [name, part, side]
        return None


def _is_near(box: Box, line: Line) -> bool:
    """Return whether words beside a line may reach a box."""
    right, down = line.x1 - line.x0, line.y1 - line.y0
    off = abs((box.x - line.x0) * down - (box.y - line.y0) * right) / hypot(right, down)
    return off < box.half_width + box.half_height + 3 * LINE_PX


def _flat_spots(width_px: float) -> Iterator[tuple[bool, Spot]]:
    near, far = LIFT_PX + LINE_PX / 2, LIFT_PX + 1.5 * LINE_PX
    yield from ((False, Spot(-EDGE_PX, dy, -1)) for dy in (-near, near, -far, far))
    for dx in range(EDGE_PX + SLIDE_PX, int(SLIDE_PART * width_px), SLIDE_PX):
        yield from ((True, Spot(-dx, dy, -1)) for dy in (-near, near))


def _along(line: Line, length_px: float, side: int) -> Iterator[tuple[float, list[Box]]]:
    """List the places of words beside a line from its lower end on: part of the line, and boxes that cover them."""
    whole = hypot(line.x1 - line.x0, line.y1 - line.y0)
    right, down = (line.x1 - line.x0) / whole, (line.y1 - line.y0) / whole
    off = side * (LIFT_PX + LINE_PX / 2)
    count = max(1, round(length_px / LINK_PX))
    for step in range(max(1, int((whole - length_px) / STEP_PX))):
        part = round(step * STEP_PX / whole, 3)
        boxes = []
        for link in range(count + 1):
            along = length_px * link / count
            x = line.x0 + right * (part * whole + along) + off * down
            y = line.y0 + down * (part * whole + along) - off * right
            half = LINE_PX / 2 - 1
            boxes.append(Box(x, y, half, half + TURN_PART * along, x))
        yield part, boxes


def _is_free(box: Box, canvas: Canvas) -> bool:
    if not box.grown(INSIDE_PX).inside(canvas.view.width_px, canvas.view.height_px):
        return False
    return not any(box.hits(other) for other in canvas.taken)


def _cost(box: Box, canvas: Canvas, avoid: Iterable[Box]) -> int:
    """Weigh what a name lies over: a point more than a line."""
    return 4 * any(box.hits(other) for other in avoid) + any(box.crossed_by(line) for line in canvas.lines)


def flat_names(keys: Iterable[str], peak: float, *, mark: str = "", clock: str = "") -> tuple[str, ...]:
    """Name a flat roof with value and clock, then shorter; the shortest is for planes whose axis has no unit either."""
    name = f"{joined(keys)}{mark}  {fmt.si(peak, 'FLOP/s')}"
    short = name.removesuffix("FLOP/s")
    return (f"{name} at {clock}", name, short) if clock else (name, short)


def slope_names(keys: Iterable[str], peak: float) -> tuple[str, str]:
    """Name a diagonal roof with its value, then shorter."""
    name = joined(keys)
    return f"{name}  {fmt.si(peak, 'B/s')}", name


def joined(keys: Iterable[str]) -> str:
    """Name the resources that share a roof."""
    return ", ".join(resource_label(key) for key in keys)


def ridge_text(flop_per_byte: float) -> str:
    """Name a ridge by its intensity."""
    return f"ridge {fmt.intensity(flop_per_byte)}"


def slope_ends(rows: Rows, value: str = "v", top: str = "datum.e") -> Rows:
    """Find the ends of diagonal roofs: far to the left, and at the highest flat roof."""
    high = f"{top} ? {top} / datum.{value} : x1 * {BEYOND:g}"
    rows = rows.having(xa=f"x0 / {BEYOND:g}", xb=high)
    return rows.having(ya=f"datum.xa * datum.{value}", yb=f"datum.xb * datum.{value}")


def flat_ends(rows: Rows, begin: str = "datum.c") -> Rows:
    """Find the ends of flat roofs: where they meet a slope, or far to the left, and far to the right."""
    return rows.having(xa=f"{begin} || x0 / {BEYOND:g}", xb=f"x1 * {BEYOND:g}")


def line_layers(slopes: Rows, flats: Rows) -> list[Layer]:
    """Draw roofs from rows of their values `v`, where they end `e` and where they begin `c`."""
    return [
        slope_ends(slopes).mark("rule", place("xa", "ya", "xb", "yb"), style="roof", **QUIET),
        flat_ends(flats).mark("rule", place("xa", "v", "xb"), style="roof", **QUIET),
    ]


def slope_name_layers(rows: Rows, top: str = "datum.e", style: str = "label", **look: Any) -> list[Layer]:
    """Write names along diagonals on cleared ground, at the part of the visible line that was chosen for them."""
    end = f"min(x1, ({top} ? min(y1, {top}) : y1) / datum.v)"
    named = rows.having(spot="datum.p[slot]", lo="max(x0, y0 / datum.v)", hi=end)
    named = named.where("datum.spot && datum.lo < datum.hi")
    named = named.having(px="datum.lo * pow(datum.hi / datum.lo, datum.spot[1])", words="datum.spot[0] || datum.t")
    named = named.having(py="datum.px * datum.v")
    turned = {
        "angle": expr("turn"),
        "align": "left",
        "baseline": expr("datum.spot[2] > 0 ? 'bottom' : 'top'"),
        "dy": expr(f"-{LIFT_PX} * datum.spot[2]"),
    }
    at = {**place("px", "py"), **words()}
    return [
        named.mark("text", at, style="halo", **QUIET, **turned),
        named.mark("text", at, style=style, **QUIET, **turned, **look),
    ]


def flat_name_layers(rows: Rows, style: str = "label") -> list[Layer]:
    """Write names of flat roofs at the right edge on cleared ground."""
    return written(placed(rows).having(edge="x1"), style, place("edge", "v"), **at_spot())
