"""The layers of the roofline's plane, from the ground up: roofs, their names, and what a datasheet adds to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt

from rooflens.report.plane.expressions import si
from rooflens.report.plane.marks import QUIET, table, written
from rooflens.report.plane.placement import LINE_PX
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.roofs import (
    BEYOND,
    EDGE_PX,
    LIFT_PX,
    SLOPE,
    flat,
    flat_ends,
    flat_name_layers,
    slope_ends,
    slope_name_layers,
)
from rooflens.report.plane.viewport import WIDE

LEVEL_DASHES: Mapping[str, tuple[int, ...]] = {"dram": (1, 0), "l2": (10, 5), "l1": (9, 4, 2, 4), "smem": (4, 4)}
ATTAINABLE_DASH = [3, 3]
DATASHEET_DASH = [1, 4]

AT_LEVEL = "level === 'all' || datum.level === level"
CHOSEN = "(level === 'all' ? far : level)"
"""The level whose ridges are shown."""

SPOT_AT_LEVEL = "datum.p[ranged][slot]"
"""Expression of the place of a roof's name: the plane's range follows the level."""

NAMES_APART_PX = 20
"""Names at the right edge whose lines are nearer than this would lie over one another."""


def roof_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the roofs: shade over the chosen ones, bands where launches differ, attainable ones, lines, names."""
    chosen = "level === 'all' || indexof(datum.keys, level) >= 0"
    levels = list(LEVEL_DASHES)
    dashes = alt.Scale(domain=levels, range=[list(LEVEL_DASHES[level]) for level in levels])
    line = _slopes("v").transform_calculate(shown=f"{chosen} ? 1 : 0.5")
    return [
        *_shade(plane),
        *_bands(plane),
        *_attainable(plane),
        *_full_clock(plane),
        line.mark_rule(style="roof", **QUIET).encode(
            **SLOPE,
            strokeDash=alt.StrokeDash("level:N", scale=dashes, legend=None),
            opacity=alt.Opacity("shown:Q", scale=None, legend=None),
        ),
        _flats("v").mark_rule(style="roof", **QUIET).encode(**flat()),
        *slope_name_layers(table("roofs"), "top", spot=SPOT_AT_LEVEL, opacity=alt.ExprRef(f"{chosen} ? 1 : 0.7")),
        *flat_name_layers(table("pipes"), spot=SPOT_AT_LEVEL),
    ]


def _slopes(value: str) -> alt.Chart:
    return slope_ends(table("roofs"), value, "top" if value == "v" else "topAttained")


def _flats(value: str) -> alt.Chart:
    """Begin flat roofs on the fastest diagonal."""
    fastest = "fastest" if value == "v" else "fastestAttained"
    return flat_ends(table("pipes"), f"({fastest} && datum.{value} / {fastest})")


def _shade(plane: Plane) -> list[alt.Chart]:
    """Shade what the chosen level and the highest pipe leave out of reach."""
    if not (plane.level_roofs and plane.pipe_roofs):
        return []
    chosen = "level === 'all' ? datum.v === fastest : indexof(datum.keys, level) >= 0"
    area = (
        table("roofs")
        .transform_filter(chosen)
        .transform_calculate(corner=f"[x0 / {BEYOND:g}, top / datum.v, x1 * {BEYOND:g}]")
    )
    area = area.transform_flatten(["corner"]).transform_calculate(
        ya="min(top, datum.corner * datum.v)", yb=f"y1 * {BEYOND:g}"
    )
    return [area.mark_area(style="shade", **QUIET).encode(x=alt.X("corner:Q"), y=alt.Y("ya:Q"), y2=alt.Y2("yb"))]


def _bands(plane: Plane) -> list[alt.Chart]:
    """Show how far the peaks of launches spread around a roof that is their median."""
    layers = []
    if any(roof.spread for roof in plane.level_roofs):
        ends = (
            _slopes("v")
            .transform_filter("datum.lo")
            .transform_calculate(end="[datum.xa, datum.xb]")
            .transform_flatten(["end"])
        )
        ends = ends.transform_calculate(a="datum.end * datum.lo", b="datum.end * datum.hi")
        layers.append(
            ends.mark_area(style="band", **QUIET).encode(
                x=alt.X("end:Q"), y=alt.Y("a:Q"), y2=alt.Y2("b"), detail=alt.Detail("level:N")
            )
        )
    if any(roof.spread for roof in plane.pipe_roofs):
        layers.append(
            _flats("v")
            .transform_filter("datum.lo")
            .mark_rect(style="band", **QUIET)
            .encode(**flat("lo"), y2=alt.Y2("hi"))
        )
    return layers


def _attainable(plane: Plane) -> list[alt.Chart]:
    """Draw the attainable roofs, where any is known: light, in short dashes whatever the level."""
    layers = []
    look: dict[str, Any] = {"style": "twin", "strokeDash": ATTAINABLE_DASH, **QUIET}
    if any(roof.attainable for roof in plane.level_roofs):
        layers.append(_slopes("att").transform_filter("datum.att").mark_rule(**look).encode(**SLOPE))
    if any(roof.attainable for roof in plane.pipe_roofs):
        layers.append(_flats("att").transform_filter("datum.att").mark_rule(**look).encode(**flat("att")))
    return layers


def _full_clock(plane: Plane) -> list[alt.Chart]:
    """Draw DRAM at its own top clock where reports were profiled well under it."""
    if not any(roof.full_clock for roof in plane.level_roofs):
        return []
    look: dict[str, Any] = {"style": "twin", "strokeDash": ATTAINABLE_DASH, **QUIET}
    rows = slope_ends(table("roofs").transform_filter("datum.full"), "full", "top")
    return [rows.mark_rule(**look).encode(**SLOPE)]


def ridge_layers() -> list[alt.Chart]:
    """Mark the corners of the chosen level's slope with the flat roofs."""
    # A level whose peak no report holds has no slope, and so no corner.
    corners = table("pipes").transform_calculate(x=f"datum.v / slopes[{CHOSEN}]").transform_filter("isFinite(datum.x)")
    return [corners.mark_point(style="ridge", size=28, **QUIET).encode(x=alt.X("x:Q"), y=alt.Y("v:Q"))]


def datasheet_lines() -> list[alt.Chart]:
    """Draw the roofs of the GPU that is chosen to compare with, visibly no roofs of this one."""
    flats = _datasheet_flats()
    line: dict[str, Any] = {"style": "datasheet", "strokeDash": DATASHEET_DASH, "strokeCap": "round", **QUIET}
    return [
        slope_ends(_datasheet_slope()).mark_rule(**line).encode(**SLOPE),
        flats.mark_rule(**line).encode(x=alt.X("c:Q"), y=alt.Y("v:Q"), x2=alt.X2("xb")),
        flats.mark_point(style="ridge", size=28, **QUIET).encode(x=alt.X("c:Q"), y=alt.Y("v:Q")),
    ]


def datasheet_names(plane: Plane) -> list[alt.Chart]:
    """Name the roofs of the chosen GPU at fixed places, worked out from their numbers.

    The slope's name is over its lower end, those of flat roofs over their lines at the right edge, each beyond the
    plane's own names that stand there already. Of two that are too near to one another the higher one keeps its name.
    """
    named = _datasheet_flats().transform_filter(
        f"!datum.above || {apart_px('datum.above', 'datum.v')} > {NAMES_APART_PX}"
    )
    rate = f"datum.flop[1] + ' ' + (w < 480 ? {si('datum.v', '')} : {si('datum.v', 'FLOP/s')})"
    named = named.transform_calculate(
        words=f"w < {WIDE.from_px} ? {rate} : datum.name + ' ' + {rate} + ', datasheet'",
        off=f"{any_near(roof.peak for roof in plane.pipe_roofs)} ? flatRoom[ranged][slot] : {EDGE_PX}",
    )
    slope = _datasheet_slope().transform_calculate(
        words=f"(w < 480 ? '' : datum.name + ' ') + 'DRAM ' + {si('datum.v', 'B/s')} + (w < 480 ? '' : ', datasheet')",
        lo=f"{_px('max(x0, y0 / datum.v)')} + 2 * {EDGE_PX}",
    )
    ends = [_end_of_name(i, roof.peak) for i, roof in enumerate(plane.level_roofs)]
    slope = slope.transform_calculate(px=f"x0 * pow(x1 / x0, {_highest('datum.lo', *ends)} / w)").transform_calculate(
        py="datum.px * datum.v"
    )
    slope = slope.transform_filter("datum.px < x1 && datum.py < (datum.e || y1)")
    level: dict[str, Any] = {
        "align": "right",
        "baseline": "middle",
        "dx": alt.ExprRef("-datum.off"),
        "dy": -LIFT_PX - LINE_PX / 2,
    }
    turned: dict[str, Any] = {"angle": alt.ExprRef("turn"), "align": "left", "baseline": "bottom", "dy": -LIFT_PX}
    return [
        *written(slope, "note", {"x": alt.X("px:Q"), "y": alt.Y("py:Q")}, **turned),
        *written(named, "note", {"x": alt.X("edge:Q"), "y": alt.Y("v:Q")}, **level),
    ]


def _datasheet_slope() -> alt.Chart:
    return (
        table("datasheet")
        .transform_filter("datum.gpu === datasheet")
        .transform_calculate(v="datum.bytes", e="datum.flop[0] ? datum.flop[0][0] : null")
    )


def _datasheet_flats() -> alt.Chart:
    flats = table("datasheet").transform_filter("datum.gpu === datasheet").transform_flatten(["flop"])
    flats = flats.transform_calculate(v="datum.flop[0]", above="datum.flop[2]")
    return flats.transform_calculate(c="datum.v / datum.bytes", edge="x1", xb=f"x1 * {BEYOND:g}")


def _px(x: str) -> str:
    return f"log({x} / x0) / LN10 / spanX * w"


def _highest(*values: str) -> str:
    return f"max({', '.join(values)})" if len(values) > 1 else values[0]


def _end_of_name(i: int, peak: float) -> str:
    """Write the expression for where the name of one of the plane's own slopes ends, if that slope is near."""
    low, high = f"max(x0, y0 / {peak:.4g})", f"min(x1, (top ? min(y1, top) : y1) / {peak:.4g})"
    name = f"slopeNames[ranged][slot][{i}]"
    begin = _px(f"({low} * pow({high} / ({low}), {name}[0]))")
    end = f"{begin} + {name}[1] * w / sqrt(w * w + h * h)"
    return f"(abs({apart_px(f'{peak:.4g}', 'datum.v')}) < 2 * {NAMES_APART_PX} ? {end} : 0)"


def apart_px(high: str, low: str) -> str:
    """Write the expression for the pixels between two rates."""
    return f"log({high} / {low}) / LN10 * h / spanY"


def any_near(peaks: Iterable[float], within_px: int = 2 * NAMES_APART_PX) -> str:
    """Write the expression for whether one of the plane's own flat roofs is so near that its name is in the way."""
    near = [f"abs({apart_px(f'{peak:.4g}', 'datum.v')}) < {within_px}" for peak in peaks]
    return f"({' || '.join(near) or 'false'})"
