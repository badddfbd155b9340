"""The layers of the roofline's plane, from the ground up: roofs, their names and corners, and lighter roofs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import altair as alt

from rooflens.report.plane.expressions import si
from rooflens.report.plane.marks import QUIET, either, table, written
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

LEVEL_DASHES: Mapping[str, tuple[int, ...]] = {"dram": (1, 0), "l2": (10, 5), "l1": (9, 4, 2, 4), "smem": (4, 4)}
TWIN_DASH, BOOST_DASH = [3, 3], [9, 3]

TWINS = ("twinSlopes", "twinFlats")

_UNIT = "' + datum.u + '/s"
"""What a pipe counts, within a text of an expression."""

AT_LEVEL = "level === 'all' || (level === 'own' ? datum.near : datum.level === level)"
CHOSEN = "(level === 'all' || level === 'own' ? far : level)"
"""The level whose ridges are shown."""

SPOT_AT_LEVEL = "datum.p[ranged][slot]"
"""Expression of the place of a roof's name: the plane's range follows the level."""

NAMES_APART_PX = 20
"""Names at the right edge whose lines are nearer than this would lie over each other."""


def roof_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the roofs: shade over the chosen ones, bands where launches differ, lines, names."""
    chosen = "level === 'all' || (level === 'own' ? datum.own : indexof(datum.keys, level) >= 0)"
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
    """Shade the region above the roofs of the chosen level and the highest pipe."""
    if not (plane.level_roofs and plane.pipe_roofs):
        return []
    chosen = "level === 'all' || level === 'own' ? datum.v === fastest : indexof(datum.keys, level) >= 0"
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
    dash = alt.StrokeDashValue(**either("datum.boost", BOOST_DASH, TWIN_DASH))
    slopes, flats = (table(name).transform_filter(asked) for name in TWINS)
    lines = line_layers(slopes, flats, "twin")
    return [line.encode(strokeDash=dash) for name, line in zip(TWINS, lines, strict=True) if name in rows]


def boost_names(plane: Plane) -> list[alt.Chart]:
    """Name the flat roofs at boost clock over their lines at the right edge, left of the plane's own names there.

    Of two that are too near to each other the higher one keeps its name.
    """
    words = f"datum.name + '  ' + {si('datum.v', _UNIT)} + ' at ' + datum.clock + ' boost'"
    words = f"w < 480 ? 'boost ' + {si('datum.v', '')} : {words}"
    own = [f"abs({_apart_px(f'{roof.peak:.4g}', 'datum.v')}) < {NAMES_APART_PX}" for roof in plane.pipe_roofs]
    named = table("twinFlats").transform_filter("datum.boost && boost")
    named = named.transform_filter(f"!datum.above || {_apart_px('datum.above', 'datum.v')} > {NAMES_APART_PX}")
    named = named.transform_calculate(
        words=words, off=f"({' || '.join(own) or 'false'}) ? flatRoom[ranged][slot] : {EDGE_PX}", edge="x1"
    )
    place = {"align": "right", "baseline": "middle", "dx": alt.ExprRef("-datum.off"), "dy": -LIFT_PX - LINE_PX / 2}
    return written(named, "note", AT_EDGE, **place)


def _apart_px(high: str, low: str) -> str:
    """Write the expression for the pixels between two rates."""
    return f"log({high} / {low}) / LN10 * h / spanY"


def ridge_layers() -> list[alt.Chart]:
    """Mark the corners of the chosen level's slope with the flat roofs."""
    # A level whose peak no report holds has no slope, and so no corner.
    corners = table("pipes").transform_calculate(x=f"datum.v / slopes[{CHOSEN}]").transform_filter("isFinite(datum.x)")
    return [corners.mark_point(style="ridge", size=28, **QUIET).encode(x=alt.X("x:Q"), y=alt.Y("v:Q"))]
