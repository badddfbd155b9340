"""The layers of the roofline's plane, from the ground up: roofs, their names, and what a datasheet adds to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import altair as alt

from rooflens.report.plane.expressions import si
from rooflens.report.plane.marks import QUIET, table, written
from rooflens.report.plane.placement import LINE_PX
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.roofs import (
    AT_EDGE,
    BEYOND,
    EDGE_PX,
    FLAT,
    LIFT_PX,
    flat_ends,
    flat_name_layers,
    line_layers,
    slope_ends,
    slope_name_layers,
)
from rooflens.report.plane.viewport import WIDE

LEVEL_DASHES: Mapping[str, tuple[int, ...]] = {"dram": (1, 0), "l2": (10, 5), "l1": (9, 4, 2, 4), "smem": (4, 4)}
TWIN_DASH, BOOST_DASH = [3, 3], [9, 3]
DATASHEET_DASH = [1, 4]

TWINS = ("twinSlopes", "twinFlats")

_UNIT = "' + datum.u + '/s"
"""What a pipe counts, within a text of an expression."""

AT_LEVEL = "level === 'all' || datum.level === level"
CHOSEN = "(level === 'all' ? far : level)"
"""The level whose ridges are shown."""

SPOT_AT_LEVEL = "datum.p[ranged][slot]"
"""Expression of the place of a roof's name: the plane's range follows the level."""

NAMES_APART_PX = 20
"""Names at the right edge whose lines are nearer than this would lie over one another."""


def roof_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the roofs: shade over the chosen ones, bands where launches differ, lines, names."""
    chosen = "level === 'all' || indexof(datum.keys, level) >= 0"
    levels = list(LEVEL_DASHES)
    dashes = alt.Scale(domain=levels, range=[list(LEVEL_DASHES[level]) for level in levels])
    slopes, flats = line_layers(table("roofs").transform_calculate(shown=f"{chosen} ? 1 : 0.5"), table("pipes"))
    return [
        *_shade(plane),
        *_bands(plane),
        slopes.encode(
            strokeDash=alt.StrokeDash("level:N", scale=dashes, legend=None),
            opacity=alt.Opacity("shown:Q", scale=None, legend=None),
        ),
        flats,
        *slope_name_layers(table("roofs"), SPOT_AT_LEVEL, opacity=alt.ExprRef(f"{chosen} ? 1 : 0.7")),
        *flat_name_layers(table("pipes"), SPOT_AT_LEVEL),
    ]


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
        rows = slope_ends(table("roofs")).transform_filter("datum.lo").transform_calculate(end="[datum.xa, datum.xb]")
        ends = rows.transform_flatten(["end"]).transform_calculate(a="datum.end * datum.lo", b="datum.end * datum.hi")
        layers.append(
            ends.mark_area(style="band", **QUIET).encode(
                x=alt.X("end:Q"), y=alt.Y("a:Q"), y2=alt.Y2("b"), detail=alt.Detail("level:N")
            )
        )
    if any(roof.spread for roof in plane.pipe_roofs):
        flats = flat_ends(table("pipes")).transform_filter("datum.lo").mark_rect(style="band", **QUIET)
        layers.append(flats.encode(**{**FLAT, "y": alt.Y("lo:Q")}, y2=alt.Y2("hi")))
    return layers


def twin_layers(rows: Collection[str], *, boosts: bool) -> list[alt.Chart]:
    """Draw light roofs from the tables that have rows: those at boost clock only while they are asked for."""
    asked = "!datum.boost || boost" if boosts else "true"
    dash = alt.condition("datum.boost", alt.value(BOOST_DASH), alt.value(TWIN_DASH))
    slopes, flats = (table(name).transform_filter(asked) for name in TWINS)
    lines = line_layers(slopes, flats, "twin")
    return [line.encode(strokeDash=dash) for name, line in zip(TWINS, lines, strict=True) if name in rows]


def boost_names(plane: Plane) -> list[alt.Chart]:
    """Name the flat roofs at boost clock over their lines."""
    words = f"datum.name + '  ' + {si('datum.v', _UNIT)} + ' at ' + datum.clock + ' boost'"
    words = f"w < 480 ? 'boost ' + {si('datum.v', '')} : {words}"
    return _edge_names(table("twinFlats").transform_filter("datum.boost && boost"), words, plane, NAMES_APART_PX)


def _edge_names(rows: alt.Chart, words: str, plane: Plane, near_px: int) -> list[alt.Chart]:
    """Name flat roofs over their lines at the right edge, left of the plane's own names where these are near.

    Of two that are too near to one another the higher one keeps its name.
    """
    own = [f"abs({_apart_px(f'{roof.peak:.4g}', 'datum.v')}) < {near_px}" for roof in plane.pipe_roofs]
    named = rows.transform_filter(f"!datum.above || {_apart_px('datum.above', 'datum.v')} > {NAMES_APART_PX}")
    named = named.transform_calculate(
        words=words, off=f"({' || '.join(own) or 'false'}) ? flatRoom[ranged][slot] : {EDGE_PX}", edge="x1"
    )
    place = {"align": "right", "baseline": "middle", "dx": alt.ExprRef("-datum.off"), "dy": -LIFT_PX - LINE_PX / 2}
    return written(named, "note", AT_EDGE, **place)


def ridge_layers() -> list[alt.Chart]:
    """Mark the corners of the chosen level's slope with the flat roofs."""
    # A level whose peak no report holds has no slope, and so no corner.
    corners = table("pipes").transform_calculate(x=f"datum.v / slopes[{CHOSEN}]").transform_filter("isFinite(datum.x)")
    return [corners.mark_point(style="ridge", size=28, **QUIET).encode(x=alt.X("x:Q"), y=alt.Y("v:Q"))]


def datasheet_lines() -> list[alt.Chart]:
    """Draw the roofs of the GPU that is chosen to compare with, visibly no roofs of this one."""
    slope, flats = _datasheet()
    corners = flats.mark_point(style="ridge", size=28, **QUIET).encode(x=alt.X("c:Q"), y=alt.Y("v:Q"))
    return [*line_layers(slope, flats, "datasheet", strokeDash=DATASHEET_DASH, strokeCap="round"), corners]


def datasheet_names(plane: Plane) -> list[alt.Chart]:
    """Name the roofs of the chosen GPU at fixed places, worked out from their numbers.

    The slope's name is over its lower end, those of flat roofs over their lines at the right edge, each beyond the
    plane's own names that stand there already.
    """
    slope, flats = _datasheet()
    rate = f"datum.flop[1] + ' ' + (w < 480 ? {si('datum.v', '')} : {si('datum.v', 'FLOP/s')})"
    words = f"w < {WIDE.from_px} ? {rate} : datum.name + ' ' + {rate} + ', datasheet'"
    slope = slope.transform_calculate(
        words=f"(w < 480 ? '' : datum.name + ' ') + 'DRAM ' + {si('datum.v', 'B/s')} + (w < 480 ? '' : ', datasheet')",
        lo=f"{_px('max(x0, y0 / datum.v)')} + 2 * {EDGE_PX}",
    )
    ends = ["datum.lo", *(_end_of_name(i, roof.peak) for i, roof in enumerate(plane.level_roofs))]
    slope = slope.transform_calculate(px=f"x0 * pow(x1 / x0, max({', '.join(ends)}) / w)")
    slope = slope.transform_calculate(py="datum.px * datum.v")
    slope = slope.transform_filter("datum.px < x1 && datum.py < (datum.e || y1)")
    turned: dict[str, Any] = {"angle": alt.ExprRef("turn"), "align": "left", "baseline": "bottom", "dy": -LIFT_PX}
    return [
        *written(slope, "note", {"x": alt.X("px:Q"), "y": alt.Y("py:Q")}, **turned),
        *_edge_names(flats, words, plane, 2 * NAMES_APART_PX),
    ]


def _datasheet() -> tuple[alt.Chart, alt.Chart]:
    """Read slope and flat roofs of the chosen GPU as the rows of all roofs are: value `v`, end `e`, begin `c`."""
    chosen = table("datasheet").transform_filter("datum.gpu === datasheet")
    slope = chosen.transform_calculate(v="datum.bytes", e="datum.flop[0] ? datum.flop[0][0] : null")
    flats = chosen.transform_flatten(["flop"]).transform_calculate(v="datum.flop[0]", above="datum.flop[2]")
    return slope, flats.transform_calculate(c="datum.v / datum.bytes")


def _px(x: str) -> str:
    return f"log({x} / x0) / LN10 / spanX * w"


def _end_of_name(i: int, peak: float) -> str:
    """Write the expression for where the name of one of the plane's own slopes ends, if that slope is near."""
    low, high = f"max(x0, y0 / {peak:.4g})", f"min(x1, (top ? min(y1, top) : y1) / {peak:.4g})"
    name = f"slopeNames[ranged][slot][{i}]"
    begin = _px(f"({low} * pow({high} / ({low}), {name}[0]))")
    end = f"{begin} + {name}[1] * w / sqrt(w * w + h * h)"
    return f"(abs({_apart_px(f'{peak:.4g}', 'datum.v')}) < 2 * {NAMES_APART_PX} ? {end} : 0)"


def _apart_px(high: str, low: str) -> str:
    """Write the expression for the pixels between two rates."""
    return f"log({high} / {low}) / LN10 * h / spanY"
