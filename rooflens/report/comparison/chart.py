"""The roofline of a comparison as a Vega-Lite specification: dots before and after, joined by arrows.

It holds no colour, the theme does. The page sets the signals `level` (a memory level), `kernel` (key of the kernel that
is isolated), `w` and `h` (pixels of the plane).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.report.comparison.chart_rows import datasets
from rooflens.report.plane.axes import ZOOM, axes, seen
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import (
    HEAD,
    HEIGHT,
    QUIET,
    WIDTH,
    Rows,
    at_spot,
    expr,
    leads,
    lookup,
    place,
    placed,
    quantity,
    specify,
    values,
    words,
    written,
)
from rooflens.report.plane.roofs import flat_name_layers, line_layers, slope_name_layers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.comparison.plane import Moves
    from rooflens.report.plane.marks import Layer

    Style = Mapping[str, Any]

LANE_PX = 44
FAINT = 0.14
"""Opacity of the other kernels while one is isolated."""

HEAD_PX = 4.5
"""Half the length of an arrow's head."""

LEAST_ARROW_PX = 10
"""A dot that moved less than this beyond its own size has no arrow."""

AT_LEVEL = "datum.level === level"
LIT = f"kernel === '' || datum.g === kernel ? 1 : {FAINT}"

_LEVEL = "({dram: 'DRAM', l2: 'L2', l1: 'L1', smem: 'SMEM'})[datum.level]"
_TOOLTIP = (
    f"{{title: datum.name, 'Side': datum.side, 'Place': datum.where + ' at ' + {_LEVEL}, 'Wall': datum.wall, "
    "'Time': datum.time, 'What became of it': datum.story}"
)
_DESCRIPTION = "datum.name + ', ' + datum.side + ', ' + datum.where + ', ' + datum.wall"


def arrows_spec(found: Moves, *, title: str) -> dict[str, Any]:
    """Specify the plane, and the strip below it when kernels without FLOPs exist."""
    parts = ([_plane_chart(found)] if found.moves else []) + ([_strip_chart(found)] if found.slides else [])
    params = values(level=found.levels[0], kernel="", w=WIDTH, h=HEIGHT)
    if found.moves:
        base = [fmt.round_significant(end, 6) for end in (*found.x_domain(), *found.y_domain())]
        # Both axes zoom by one factor; shares have a roof and a floor, and need none.
        params += [*values(base=base), *seen(zooms=not found.in_shares, is_log=not found.in_shares)]
    return specify(
        {"vconcat": parts, "spacing": 24},
        params,
        datasets(found),
        title=title,
        subtitle="Hollow: before. Filled: after. Area: GPU time.",
    )


def _plane_chart(found: Moves) -> Layer:
    dots = _dots_layer(_at_level("dots"), found, axes(shares=found.in_shares))
    dots |= {} if found.in_shares else {"params": [ZOOM]}
    lit = expr(LIT)
    names, ridges = (placed(_at_level("labels").where(f"datum.s === '{kind}'")) for kind in ("name", "ridge"))
    halo, label = written(names, "label", **at_spot(), opacity=lit)
    # Words stand on cleared ground under the dots, so that none is cut.
    layers = [
        *_roof_layers(found),
        halo,
        *written(ridges, "note", **at_spot()),
        leads(names, opacity=lit),
        *_arrow_layers(found),
        dots,
        label,
    ]
    view = {} if found.in_shares else {"cursor": "grab"}
    return {"name": "plane", "width": WIDTH, "height": HEIGHT, "view": view, "layer": layers}


def _at_level(data: str) -> Rows:
    return Rows(data).where(AT_LEVEL)


def _roof_layers(found: Moves) -> list[Layer]:
    """Draw the roofs of the chosen level with their names, and in a plane of shares its ridges."""
    ridges, slopes, flats = (
        _at_level("roofs").where(f"datum.kind === '{kind}'") for kind in ("ridge", "slope", "flat")
    )
    foot = ridges.having(bottom="0", top="1")
    return [
        foot.mark("rule", place("x", "bottom", y2="top"), style="note", strokeDash=[2, 4], **QUIET),
        *(line_layers(slopes, flats)[1:] if found.in_shares else line_layers(slopes, flats)),
        *flat_name_layers(flats),
        *([] if found.in_shares else slope_name_layers(slopes)),
    ]


def _arrow_layers(found: Moves) -> list[Layer]:
    """Draw an arrow from the edge of the dot before to that of the dot after, where there is room between them."""
    up = "datum.y2 - datum.y" if found.in_shares else "log(datum.y2 / datum.y) / LN10"
    rows = _turned(_at_level("arrows"), "log(datum.x2 / datum.x) / LN10 / spanX * w", f"({up}) / -spanY * h")
    return [_shaft(rows, place(x2="x2", y2="y2")), _tip(rows, place("x2", "y2"))]


def _turned(rows: Rows, right: str, down: str) -> Rows:
    """Work out direction and length of arrows in pixels, and leave out those without room."""
    rows = rows.having(right=right, down=down)
    rows = rows.having(
        turn="atan2(datum.down, datum.right)", far="sqrt(datum.right * datum.right + datum.down * datum.down)"
    )
    return rows.where(f"datum.far >= datum.r + datum.r2 + {LEAST_ARROW_PX}")


def _shaft(rows: Rows, channels: Layer) -> Layer:
    off = f"(datum.r2 + {2 * HEAD_PX - 1:g})"
    return rows.mark(
        "rule",
        channels,
        style="gap",
        strokeWidth=1.5,
        opacity=expr(LIT),
        xOffset=expr("cos(datum.turn) * datum.r"),
        yOffset=expr("sin(datum.turn) * datum.r"),
        x2Offset=expr(f"-cos(datum.turn) * {off}"),
        y2Offset=expr(f"-sin(datum.turn) * {off}"),
        **QUIET,
    )


def _tip(rows: Rows, channels: Layer) -> Layer:
    off = f"(datum.r2 + {HEAD_PX + 1:g})"
    return rows.mark(
        "point",
        channels,
        style="label",
        shape=HEAD,
        filled=True,
        size=(2 * HEAD_PX) ** 2,
        opacity=expr(LIT),
        angle=expr("datum.turn * 57.2958"),
        xOffset=expr(f"-cos(datum.turn) * {off}"),
        yOffset=expr(f"-sin(datum.turn) * {off}"),
        **QUIET,
    )


def _dots_layer(rows: Rows, found: Moves, at: Style) -> Layer:
    """Draw the dots: shape and colour by verdict, hollow before and filled after."""
    channels = {
        **at,
        **verdict_channels(found.bounds),
        "size": quantity("a", scale=None, legend=None),
        "fillOpacity": {"condition": {"test": "datum.side === 'before'", "value": 0}, "value": 0.78},
    }
    return rows.then(lookup("k", "kernels", ("name", "story"))).mark(
        "point",
        channels,
        filled=True,
        strokeWidth=2,
        cursor="pointer",
        clip=True,
        opacity=expr(LIT),
        tooltip=expr(_TOOLTIP),
        description=expr(_DESCRIPTION),
        ariaRoleDescription="kernel",
    )


def _strip_chart(found: Moves) -> Layer:
    """Draw kernels without FLOPs by their share of the level's bandwidth, a lane for each."""
    lanes = len({slide.row.key for slide in found.slides})
    widest = max([1.0, *(place.x for slide in found.slides for place in slide.places)])
    title = "Without FLOPs: share of the level's bandwidth"
    look = {"format": ".0%", "tickCount": 5, "title": title, "titlePadding": 12}
    scale = {"domain": [0, widest], "nice": False}
    lane = {"y": quantity("at", axis=None, scale={"domain": [lanes, 0], "nice": False, "zero": False})}
    x, x2 = ({"x": quantity(field, axis=look, scale=scale)} for field in ("x", "x2"))
    names = _at_level("lanes").having(at="datum.lane + 0.2")
    lit: Style = {"opacity": expr(LIT), "baseline": "middle", **QUIET}
    across = f"(datum.x2 - datum.x) / {widest:.6g} * w"
    arrows = _turned(_at_level("slideArrows").having(at="datum.lane + 0.68"), across, "0")
    left, right = {**lane, **words("name"), "x": {"value": 0}}, {**lane, **words("t"), "x": {"value": "width"}}
    layers = [
        names.mark("text", left, style="label", align="left", limit=expr("w - 150"), **lit),
        names.mark("text", right, style="note", align="right", **lit),
        _shaft(arrows, {**x, **lane, "x2": {"field": "x2"}}),
        _tip(arrows, {**x2, **lane}),
        _dots_layer(_at_level("slideDots").having(at="datum.lane + 0.68"), found, {**x, **lane}),
    ]
    return {"width": WIDTH, "height": LANE_PX * lanes, "layer": layers}
