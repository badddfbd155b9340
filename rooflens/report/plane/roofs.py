"""The roofs of a plane: their lines, and their names at fixed places, moved only where two would collide.

The name of a slope stands along the lower end of what is seen of it, that of a flat roof over its right end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import hypot
from typing import Any

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.roofline.roofs import RoofLine
from rooflens.model.roofline.unit_names import origin, resource_label
from rooflens.report.plane.geometry import Box, Boxes, Line, text_px
from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import PAGE, QUIET, Pen, Style, at_spot, placed, rounded, written
from rooflens.report.plane.placement import LINE_PX, Canvas, PlacedWords, Spot, Text
from rooflens.report.plane.viewport import Sheet

Row = list[Any]

LIFT_PX = 3
"""Distance of the words from their line."""

STEP_PX = 12
EDGE_PX = 4
CORNER_PX = 2
"""Half the width of the dot at a ridge."""

SLIDE_PX = 16
SLIDE_PART = 0.4
"""The name of a flat roof moves left in these steps, across at most this part of the plane."""

MIDDLE_PX = LIFT_PX + LINE_PX / 2
"""Distance of the middle of the words from their line."""

END_SPOTS = tuple(Spot(-EDGE_PX, dy, -1) for off in (MIDDLE_PX, MIDDLE_PX + LINE_PX) for dy in (-off, off))
"""Places of a flat roof's name at its right end."""

LINK_PX = 10
"""Distance between the boxes that cover the words along a slope."""

TURN_PART = 0.07
"""So much of their distance from the begin of a slope's words may letters move as the plane grows wider."""

ABOVE, BELOW = 1, -1

LEVEL_DASHES: Mapping[str, Sequence[int]] = {"dram": (1, 0), "l2": (10, 5), "l1": (9, 4, 2, 4), "smem": (4, 4)}
RATED_DASH, TWIN_DASH = (2, 3), (3, 3)
"""Of a roof that does not hold for the runs that are drawn, and of the lighter roofs beside the drawn ones."""

BEYOND = 1e4
"""Lines extend this far beyond the visible range, so that panning does not show their ends."""


class NamedRoof(Struct, frozen=True):
    """A roof with its name and shorter ones: a slope of so many B/s, or a flat one of so many FLOP/s.

    Attributes:
        is_measured: It holds for the runs that are drawn; else it is dotted.
    """

    key: str
    peak: float
    names: tuple[str, ...]
    is_measured: bool = True


class Roofs(Struct, frozen=True):
    """The roofs of a plane over a range of intensities and of performance.

    Slopes end at the highest flat roof; flat roofs begin at the steepest slope.
    """

    slopes: tuple[NamedRoof, ...]
    flats: tuple[NamedRoof, ...]
    x_domain: tuple[float, float]
    y_domain: tuple[float, float]

    @property
    def top(self) -> float | None:
        """Give the highest flat roof in FLOP/s; None without any."""
        return max((flat.peak for flat in self.flats), default=None)

    @property
    def steepest(self) -> float | None:
        """Give the fastest slope in B/s; None without any."""
        return max((slope.peak for slope in self.slopes), default=None)

    def ridge(self, flat: NamedRoof) -> float | None:
        """Return the intensity in FLOP/B at which a flat roof begins; None if no slope reaches it."""
        return flat.peak / self.steepest if self.steepest else None

    def lines(self, view: Sheet) -> list[Line]:
        """List what is seen of them."""
        slopes = [line for slope in self.slopes if (line := self._slope_line(slope, view))]
        low, high = self.x_domain
        begins = [min(max(low, self.ridge(flat) or low), high) for flat in self.flats]
        ends = zip(begins, self.flats, strict=True)
        return [*slopes, *(Line(*view.at(x, flat.peak), *view.at(high, flat.peak)) for x, flat in ends)]

    def _slope_line(self, slope: NamedRoof, view: Sheet) -> Line | None:
        low = max(self.x_domain[0], self.y_domain[0] / slope.peak)
        high = min(self.x_domain[1], min(self.y_domain[1], self.top or self.y_domain[1]) / slope.peak)
        return Line(*view.at(low, low * slope.peak), *view.at(high, high * slope.peak)) if low < high else None

    def name(self, canvas: Canvas, avoid: Sequence[Box]) -> dict[str, Row]:
        """Place the names of all roofs by their keys; the canvas then holds them as taken.

        Names keep clear of each other, and where they can of the boxes to avoid, then of lines.
        """
        tries = (Boxes(avoid), Boxes())
        names = {flat.key: self._name_flat(flat, canvas, tries) for flat in self.flats}
        names |= {slope.key: self._name_slope(slope, canvas, tries) for slope in self.slopes}
        return {key: row for key, row in names.items() if row}

    def _name_flat(self, flat: NamedRoof, canvas: Canvas, avoid: Sequence[Boxes]) -> Row | None:
        """Place a name at the right end over or under the line, whole or shorter, else farther left."""
        view, ridge = canvas.view, self.ridge(flat)
        begin_px = view.at(ridge, flat.peak)[0] if ridge else 0.0
        room_px = min(SLIDE_PART * view.width_px, view.width_px - begin_px - text_px(flat.names[0]))
        tries = ((spots, own) for own in avoid for spots in (END_SPOTS, _slid_spots(room_px)))
        texts = ((Text(flat.names, self.x_domain[1], flat.peak, spots), own) for spots, own in tries)
        return next((row for text, own in texts if (row := canvas.take(text.places(view), own))), None)

    def _name_slope(self, slope: NamedRoof, canvas: Canvas, avoid: Sequence[Boxes]) -> Row | None:
        """Place a name along what is seen of a slope: over the line before under it, the lower end first.

        The boxes of turned words reach over their own line, which the words do not.
        """
        line = self._slope_line(slope, canvas.view)
        if line is None:
            return None
        others = canvas.without(line)
        tries = ((name, own) for name in slope.names for own in avoid)
        return next((row for name, own in tries if (row := others.take(_along(line, name), own))), None)


def _slid_spots(room_px: float) -> list[Spot]:
    """List the places of a flat roof's name farther and farther left of its right end."""
    steps = range(EDGE_PX + SLIDE_PX, int(room_px), SLIDE_PX)
    return [Spot(-dx, dy, -1) for dx in steps for dy in (-MIDDLE_PX, MIDDLE_PX)]


def _along(line: Line, name: str) -> Iterator[PlacedWords]:
    """List the places of a name beside a line from its lower end on; a row of boxes covers its turned words."""
    length_px, whole_px = text_px(name), hypot(line.x1 - line.x0, line.y1 - line.y0)
    right, down = (line.x1 - line.x0) / whole_px, (line.y1 - line.y0) / whole_px
    # Turned words have no upright box: a chain of small ones along the line covers them without the empty corners.
    half, count = LINE_PX / 2 - 1, max(1, round(length_px / LINK_PX))
    turned_px = [length_px * link / count for link in range(count + 1)]
    links = [(px, half + TURN_PART * px) for px in turned_px]
    for side in (ABOVE, BELOW):
        x0, y0 = line.x0 + side * MIDDLE_PX * down, line.y0 - side * MIDDLE_PX * right
        for step in range(max(1, int((whole_px - length_px) / STEP_PX))):
            part = round(step * STEP_PX / whole_px, 3)
            begin_px = part * whole_px
            boxes = [
                Box(x := x0 + right * (begin_px + px), y0 + down * (begin_px + px), half, height, x)
                for px, height in links
            ]
            yield PlacedWords([name, part, side], boxes)


def work_unit(pipe: str) -> str:
    """Name what a pipe counts: integer operations are not FLOPs."""
    return "OP" if pipe.startswith("tensor_int") else "FLOP"


def flat_roof(roof: RoofLine, clock: str = "") -> NamedRoof:
    """Name a flat roof with value and clock, then ever shorter."""
    # The key of wgmma and tcgen05 names the instruction, the key of mma does not.
    mark = " mma" if roof.instruction == "mma" else ""
    return named_flat(roof.keys, roof.peak, mark, origin(roof.roof) or (f" at {clock}" if clock else ""))


def named_flat(keys: Sequence[str], flop_per_s: float, mark: str = "", end: str = "") -> NamedRoof:
    """Name a flat roof of so many FLOP/s; `end` says for what it holds, if that is not known."""
    name = joined(keys)
    unit = f"{work_unit(keys[0])}/s"
    whole = f"{name}{mark}  {fmt.si(flop_per_s, unit)}"
    names = dict.fromkeys((f"{whole}{end}", whole, whole.removesuffix(unit), name))
    return NamedRoof(keys[0], flop_per_s, tuple(names), is_measured=not end.startswith(" by"))


def slope_roof(roof: RoofLine, gpu: str | None) -> NamedRoof:
    """Name a diagonal roof."""
    return named_slope(roof.keys, roof.peak, gpu, origin(roof.roof))


def named_slope(keys: Sequence[str], bytes_per_s: float, gpu: str | None, end: str = "") -> NamedRoof:
    """Name a diagonal roof with its value, then shorter; DRAM by the kind that the GPU has."""
    name = joined(keys, gpu)
    whole = f"{name}  {fmt.si(bytes_per_s, 'B/s')}"
    return NamedRoof(keys[0], bytes_per_s, tuple(dict.fromkeys((f"{whole}{end}", whole, name))), is_measured=not end)


def slope_dash(key: str, *, is_measured: bool) -> Sequence[int]:
    """Return how the line of a level is dashed."""
    return LEVEL_DASHES[key] if is_measured else RATED_DASH


def slope_row(key: str, peak: float, top: float | None, *, is_measured: bool) -> dict[str, Any]:
    """Make the row of a diagonal roof: `v` bytes per second, `e` the flat roof at which it ends, `dash` its line."""
    return {"v": rounded(peak), "e": rounded(top), "dash": slope_dash(key, is_measured=is_measured)}


def flat_row(peak: float, steepest: float | None, *, is_measured: bool) -> dict[str, Any]:
    """Make the row of a flat roof: `v` FLOP per second, `c` the intensity where the steepest slope meets it."""
    begins = {"c": rounded(peak / steepest) if steepest else None}
    return {"v": rounded(peak)} | begins | ({} if is_measured else {"dash": RATED_DASH})


def joined(keys: Iterable[str], *gpus: str | None) -> str:
    """Name the resources that share a roof."""
    return ", ".join(resource_label(key, *gpus) for key in keys)


def ridge_text(intensity: float, unit: str) -> str:
    """Name a ridge by its intensity, in what its pipe counts per byte."""
    return f"ridge {fmt.intensity(intensity, unit)}"


def slope_ends(rows: alt.Chart) -> alt.Chart:
    """Find the ends of diagonal roofs: far to the left, and at the highest flat roof."""
    rows = rows.transform_calculate(xa=f"x0 / {BEYOND:g}", xb=f"datum.e ? datum.e / datum.v : x1 * {BEYOND:g}")
    return rows.transform_calculate(ya="datum.xa * datum.v", yb="datum.xb * datum.v")


def flat_ends(rows: alt.Chart) -> alt.Chart:
    """Find the ends of flat roofs: where they meet a slope, or far to the left, and far to the right."""
    return rows.transform_calculate(xa=f"datum.c || x0 / {BEYOND:g}", xb=f"x1 * {BEYOND:g}")


def slope_at() -> Style:
    """Encode where `slope_ends` puts the two ends of a line."""
    return {"x": alt.X("xa:Q"), "y": alt.Y("ya:Q"), "x2": alt.X2("xb"), "y2": alt.Y2("yb")}


def flat_at() -> Style:
    """Encode where `flat_ends` puts the two ends of a line."""
    return {"x": alt.X("xa:Q"), "y": alt.Y("v:Q"), "x2": alt.X2("xb")}


def line_layers(slopes: alt.Chart, flats: alt.Chart, style: str = "roof") -> list[alt.Chart]:
    """Draw roofs from rows of their values `v`, where they end `e` and where they begin `c`, dashed as `dash` says."""
    return [ruled(slope_ends(slopes), slope_at(), style), ruled(flat_ends(flats), flat_at(), style)]


def ruled(rows: alt.Chart, at: Style, style: str, pen: Pen = PAGE) -> alt.Chart:
    """Draw lines between both ends of rows, dashed as `dash` says."""
    dash = alt.StrokeDash("dash:N", scale=None, legend=None)
    return rows.mark_rule(**pen.look(style), **QUIET).encode(**at, strokeDash=dash)


def slope_name_layers(rows: alt.Chart, spot: str, **look: Any) -> list[alt.Chart]:
    """Write names along diagonals on cleared ground, at the part of the visible line that was chosen for them."""
    end = "min(x1, (datum.e ? min(y1, datum.e) : y1) / datum.v)"
    named = rows.transform_calculate(spot=spot, lo="max(x0, y0 / datum.v)", hi=end)
    named = named.transform_filter("datum.spot && datum.lo < datum.hi")
    named = named.transform_calculate(
        px="datum.lo * pow(datum.hi / datum.lo, datum.spot[1])", words="datum.spot[0] || datum.t"
    )
    return turned_names(named.transform_calculate(py="datum.px * datum.v"), "turn", **look)


def turned_names(rows: alt.Chart, turn: str, pen: Pen = PAGE, **look: Any) -> list[alt.Chart]:
    """Write names over or under a diagonal, turned by the degrees of an expression."""
    turned: dict[str, Any] = {
        "angle": alt.ExprRef(turn),
        "align": "left",
        "baseline": alt.ExprRef("datum.spot[2] > 0 ? 'bottom' : 'top'"),
        "dy": alt.ExprRef(f"-{LIFT_PX * pen.scale:g} * datum.spot[2]"),
    }
    at = {"x": alt.X("px:Q"), "y": alt.Y("py:Q")}
    return written(rows, "label", at, pen=pen, **turned, **look)


def flat_name_layers(rows: alt.Chart, spot: str) -> list[alt.Chart]:
    """Write names of flat roofs at the right edge on cleared ground."""
    at = {"x": alt.X("edge:Q"), "y": alt.Y("v:Q")}
    return written(placed(rows, spot).transform_calculate(edge="x1"), "label", at, **at_spot())
