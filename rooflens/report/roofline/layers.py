"""The layers of the roofline's plane, from the ground up: roofs, their names, and what a datasheet adds to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.plane import expressions as words
from rooflens.report.plane.roof_names import LIFT_PX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.plane.plane import Plane

    Style = Mapping[str, Any]

LEVEL_DASHES: Mapping[str, tuple[int, ...]] = {"dram": (1, 0), "l2": (10, 5), "l1": (9, 4, 2, 4), "smem": (4, 4)}
TWIN_DASH = [3, 3]
DATASHEET_DASH = [1, 4]

BEYOND = 1e4
"""Lines go so much farther than what is seen: a reader who pans must not find their ends."""

QUIET: Mapping[str, Any] = {"clip": True, "aria": False}
"""Lines end at the plane's edge, and are no news to a screen reader, which has the points."""

LABELS_APART_PX = 8

AT_LEVEL = "level === 'all' || datum.level === level"
CHOSEN = "(level === 'all' ? far : level)"
"""The level whose ridges are shown."""


def x(field: str = "x") -> alt.X:
    """Encode intensity; `axes` says once for all layers how scale and axis are."""
    return alt.X(field, type="quantitative")


def y(field: str = "y") -> alt.Y:
    """Encode performance."""
    return alt.Y(field, type="quantitative")


def axes() -> tuple[alt.X, alt.Y]:
    """Encode both, with their axes: decades, and the ticks between them where a reader has zoomed in."""
    across = alt.Axis(
        tickCount=alt.ExprRef(words.tick_count("spanX")),
        labelExpr=words.tick_label(words.PLAIN, "spanX"),
        labelSeparation=LABELS_APART_PX,
        title="Arithmetic intensity (FLOP/B)",
        titlePadding=12,
    )
    up = alt.Axis(
        tickCount=alt.ExprRef(words.tick_count("spanY")),
        labelExpr=words.tick_label(words.SI_FLOPS, "spanY"),
        title=None,
    )
    return x().axis(across).scale(_scale("base[0]", "base[1]")), y().axis(up).scale(_scale("base[2]", "base[3]"))


def _scale(low: str, high: str) -> alt.Scale:
    return alt.Scale(type="log", domain=[alt.ExprRef(low), alt.ExprRef(high)], nice=False)


def named(name: str) -> alt.Chart:
    """Begin a chart over one of the specification's own datasets."""
    return alt.Chart(alt.NamedData(name=name))


def mark_text(chart: alt.Chart, style: str, **more: Any) -> alt.Chart:
    """Draw words."""
    drawn: alt.Chart = chart.mark_text(style=style, **QUIET, **more)
    return drawn


def roof_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the roofs: shade over the chosen ones, bands where launches differ, attainable twins, lines, names."""
    slopes, flats = _slopes("v"), _flats("v")
    chosen = "level === 'all' || indexof(datum.keys, level) >= 0"
    line = slopes.transform_calculate(ya="datum.xa * datum.v", yb="datum.xb * datum.v", shown=f"{chosen} ? 1 : 0.5")
    opacity = alt.Opacity("shown:Q", scale=None, legend=None)
    return [
        *_shade(plane),
        *_bands(plane, slopes, flats),
        *_twins(plane),
        line.mark_rule(style="roof", **QUIET).encode(x("xa"), y("ya"), alt.X2("xb"), alt.Y2("yb"), _dash(), opacity),
        flats.mark_rule(style="roof", **QUIET).encode(x("xa"), y("v"), alt.X2("xb")),
        *slope_names(named("roofs"), f"{chosen} ? 1 : 0.7"),
        *flat_names(named("pipes")),
    ]


def _dash() -> alt.StrokeDash:
    levels = list(LEVEL_DASHES)
    scale = alt.Scale(domain=levels, range=[list(LEVEL_DASHES[level]) for level in levels])
    return alt.StrokeDash("level:N", scale=scale, legend=None)


def _slopes(value: str) -> alt.Chart:
    """Find the ends of diagonal roofs: far to the left, and at the highest flat roof."""
    top = "top" if value == "v" else "topAttained"
    return named("roofs").transform_calculate(
        xa=f"x0 / {BEYOND:g}", xb=f"{top} ? {top} / datum.{value} : x1 * {BEYOND:g}"
    )


def _flats(value: str) -> alt.Chart:
    """Find the ends of flat roofs: on the fastest diagonal, and far to the right."""
    fastest = "fastest" if value == "v" else "fastestAttained"
    begin = f"{fastest} ? datum.{value} / {fastest} : x0 / {BEYOND:g}"
    return named("pipes").transform_calculate(xa=begin, xb=f"x1 * {BEYOND:g}")


def _shade(plane: Plane) -> list[alt.Chart]:
    """Shade what the chosen level and the highest pipe leave out of reach."""
    if not (plane.level_roofs and plane.pipe_roofs):
        return []
    chosen = "level === 'all' ? datum.v === fastest : indexof(datum.keys, level) >= 0"
    corners = f"[x0 / {BEYOND:g}, top / datum.v, x1 * {BEYOND:g}]"
    area = named("roofs").transform_filter(chosen).transform_calculate(corner=corners).transform_flatten(["corner"])
    area = area.transform_calculate(ya="min(top, datum.corner * datum.v)", yb=f"y1 * {BEYOND:g}")
    return [area.mark_area(style="shade", **QUIET).encode(x("corner"), y("ya"), alt.Y2("yb"))]


def _bands(plane: Plane, slopes: alt.Chart, flats: alt.Chart) -> list[alt.Chart]:
    """Show how far the peaks of launches spread around a roof that is their median."""
    layers = []
    if any(roof.spread for roof in plane.level_roofs):
        ends = slopes.transform_filter("datum.lo").transform_calculate(end="[datum.xa, datum.xb]")
        ends = ends.transform_flatten(["end"]).transform_calculate(a="datum.end * datum.lo", b="datum.end * datum.hi")
        band = ends.mark_area(style="band", **QUIET)
        layers.append(band.encode(x("end"), y("a"), alt.Y2("b"), alt.Detail("level:N")))
    if any(roof.spread for roof in plane.pipe_roofs):
        band = flats.transform_filter("datum.lo").mark_rect(style="band", **QUIET)
        layers.append(band.encode(x("xa"), alt.X2("xb"), y("lo"), alt.Y2("hi")))
    return layers


def _twins(plane: Plane) -> list[alt.Chart]:
    """Draw the attainable roofs, where any is known: light, in short dashes whatever the level."""
    layers = []
    if any(roof.attainable for roof in plane.level_roofs):
        slopes = _slopes("att").transform_filter("datum.att")
        slopes = slopes.transform_calculate(ya="datum.xa * datum.att", yb="datum.xb * datum.att")
        twin = slopes.mark_rule(style="twin", strokeDash=TWIN_DASH, **QUIET)
        layers.append(twin.encode(x("xa"), y("ya"), alt.X2("xb"), alt.Y2("yb")))
    if any(roof.attainable for roof in plane.pipe_roofs):
        twin = _flats("att").transform_filter("datum.att").mark_rule(style="twin", strokeDash=TWIN_DASH, **QUIET)
        layers.append(twin.encode(x("xa"), y("att"), alt.X2("xb")))
    return layers


def slope_names(rows: alt.Chart, opacity: str = "1", top: str = "top", style: str = "label") -> list[alt.Chart]:
    """Write names along diagonals, at the part of the visible line that was chosen for them."""
    end = f"min(x1, ({top} ? min(y1, {top}) : y1) / datum.v)"
    placed = rows.transform_calculate(spot="datum.p[slot]", lo="max(x0, y0 / datum.v)", hi=end)
    placed = placed.transform_filter("datum.spot && datum.lo < datum.hi").transform_calculate(
        px="datum.lo * pow(datum.hi / datum.lo, datum.spot[1])", words="datum.spot[0] || datum.t"
    )
    placed = placed.transform_calculate(py="datum.px * datum.v")
    turned: Style = {
        "angle": alt.ExprRef("turn"),
        "align": "left",
        "baseline": alt.ExprRef("datum.spot[2] > 0 ? 'bottom' : 'top'"),
        "dy": alt.ExprRef(f"-{LIFT_PX} * datum.spot[2]"),
    }
    text = alt.Text("words:N")
    return [
        mark_text(placed, "halo", **turned).encode(x("px"), y("py"), text),
        mark_text(placed, style, opacity=alt.ExprRef(opacity), **turned).encode(x("px"), y("py"), text),
    ]


def flat_names(rows: alt.Chart, style: str = "label") -> list[alt.Chart]:
    """Write names of flat roofs at the right edge."""
    placed = rows.transform_calculate(spot="datum.p[slot]").transform_filter("datum.spot")
    placed = placed.transform_calculate(words="datum.spot[0] || datum.t", edge="x1")
    beside: Style = {
        "align": "right",
        "baseline": "middle",
        "dx": alt.ExprRef("datum.spot[1]"),
        "dy": alt.ExprRef("datum.spot[2]"),
    }
    return [mark_text(placed, one, **beside).encode(x("edge"), y("v"), alt.Text("words:N")) for one in ("halo", style)]


def ridge_layers() -> list[alt.Chart]:
    """Mark the corners of the chosen level's slope with the flat roofs."""
    corners = named("pipes").transform_calculate(x=f"datum.v / slopes[{CHOSEN}]")
    # A level whose peak no report holds has no slope, and so no corner.
    corners = corners.transform_filter("isFinite(datum.x)")
    return [corners.mark_point(style="ridge", size=28, **QUIET).encode(x(), y("v"))]


def datasheet_layers() -> list[alt.Chart]:
    """Draw the roofs of the GPU that is chosen to compare with, visibly no roofs of this one."""
    mine = named("datasheet").transform_filter("datum.gpu === datasheet")
    slopes, flats = mine.transform_filter("!datum.c"), mine.transform_filter("datum.c")
    line: Style = {"style": "datasheet", "strokeDash": DATASHEET_DASH, "strokeCap": "round", **QUIET}
    ends = slopes.transform_calculate(xa=f"x0 / {BEYOND:g}", xb=f"(datum.e || y1 * {BEYOND:g}) / datum.v")
    ends = ends.transform_calculate(ya="datum.xa * datum.v", yb="datum.xb * datum.v")
    right = flats.transform_calculate(xb=f"x1 * {BEYOND:g}")
    ridges = flats.transform_calculate(spot="datum.q[slot]").transform_filter("datum.spot")
    return [
        ends.mark_rule(**line).encode(x("xa"), y("ya"), alt.X2("xb"), alt.Y2("yb")),
        right.mark_rule(**line).encode(x("c"), y("v"), alt.X2("xb")),
        flats.mark_point(style="ridge", size=28, **QUIET).encode(x("c"), y("v")),
        *slope_names(slopes, top="datum.e", style="note"),
        *flat_names(flats, "note"),
        *(mark_text(ridges, one, **beside_spot()).encode(x("c"), y("v"), alt.Text("r:N")) for one in ("halo", "note")),
    ]


def beside_spot() -> Style:
    """Place words at the spot that was found for them."""
    side = "datum.spot[2]"
    return {
        "align": alt.ExprRef(f"{side} > 0 ? 'left' : {side} < 0 ? 'right' : 'center'"),
        "baseline": "middle",
        "dx": alt.ExprRef("datum.spot[0]"),
        "dy": alt.ExprRef("datum.spot[1]"),
    }
