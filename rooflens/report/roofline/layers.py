"""The layers of the roofline's plane, from the ground up: roofs, their names and corners, and lighter roofs."""

from __future__ import annotations

from collections.abc import Collection

from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import QUIET, table
from rooflens.report.plane.roofs import (
    BEYOND,
    flat_at,
    flat_ends,
    flat_name_layers,
    line_layers,
    slope_ends,
    slope_name_layers,
)
from rooflens.report.roofline.layout import Layout

TWINS = ("twinSlopes", "twinFlats")

AT_LEVEL = "level === 'all' || (level === 'own' ? datum.near : datum.level === level)"
CHOSEN = "(level === 'all' || level === 'own' ? far : level)"
"""The level whose ridges are shown."""

SPOT_AT_LEVEL = "datum.p[ranged][slot]"
"""Expression of the place of a roof's name: the plane's range follows the level."""


def roof_layers(layout: Layout) -> list[alt.Chart]:
    """Draw the roofs: shade over the chosen ones, bands where launches differ, lines, names."""
    chosen = "level === 'all' || (level === 'own' ? datum.own : indexof(datum.keys, level) >= 0)"
    slopes, flats = line_layers(table("roofs").transform_calculate(shown=f"{chosen} ? 1 : 0.5"), table("pipes"))
    return [
        *_shade(layout),
        *_bands(layout),
        slopes.encode(opacity=alt.Opacity("shown:Q", scale=None, legend=None)),
        flats,
        *slope_name_layers(table("roofs"), SPOT_AT_LEVEL, opacity=alt.ExprRef(f"{chosen} ? 1 : 0.7")),
        *flat_name_layers(table("pipes"), SPOT_AT_LEVEL),
    ]


def _shade(layout: Layout) -> list[alt.Chart]:
    """Shade the region above the roofs of the chosen level and the highest pipe."""
    if not layout.is_shaded:
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


def _bands(layout: Layout) -> list[alt.Chart]:
    """Show how far the peaks of launches spread around a roof that is their median."""
    layers = []
    if layout.has_slope_bands:
        rows = slope_ends(table("roofs")).transform_filter("datum.lo").transform_calculate(end="[datum.xa, datum.xb]")
        ends = rows.transform_flatten(["end"]).transform_calculate(a="datum.end * datum.lo", b="datum.end * datum.hi")
        layers.append(
            ends.mark_area(style="band", **QUIET).encode(
                x=alt.X("end:Q"), y=alt.Y("a:Q"), y2=alt.Y2("b"), detail=alt.Detail("level:N")
            )
        )
    if layout.has_flat_bands:
        flats = flat_ends(table("pipes")).transform_filter("datum.lo").mark_rect(style="band", **QUIET)
        layers.append(flats.encode(**{**flat_at(), "y": alt.Y("lo:Q")}, y2=alt.Y2("hi")))
    return layers


def twin_layers(rows: Collection[str]) -> list[alt.Chart]:
    """Draw light roofs from the tables that have rows."""
    lines = line_layers(table(TWINS[0]), table(TWINS[1]), "twin")
    return [line for name, line in zip(TWINS, lines, strict=True) if name in rows]


def ridge_layers() -> list[alt.Chart]:
    """Mark the corners of the chosen level's slope with the flat roofs."""
    # A level whose peak no report holds has no slope, and so no corner.
    corners = table("pipes").transform_calculate(x=f"datum.v / slopes[{CHOSEN}]").transform_filter("isFinite(datum.x)")
    return [corners.mark_point(style="ridge", size=28, **QUIET).encode(x=alt.X("x:Q"), y=alt.Y("v:Q"))]
