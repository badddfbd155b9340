"""The roofline of a comparison as an Altair chart: dots before and after, joined by arrows.

It holds no colour, the theme does. The page sets the parameters `level` (a memory level), `kernel` (key of the
isolated kernel), `w` and `h` (pixels of the plane).
"""

from __future__ import annotations

import altair as alt

from rooflens import format as fmt
from rooflens.report.comparison.chart_rows import datasets
from rooflens.report.comparison.plane import Moves
from rooflens.report.plane.axes import ZOOM, axes, seen
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import (
    AT,
    HEAD,
    HEIGHT,
    LIT_DOT,
    QUIET,
    WIDTH,
    Spec,
    Style,
    at_spot,
    layered,
    leads,
    of_kernels,
    placed,
    specify,
    stacked,
    table,
    titled,
    unchecked,
    values,
    written,
)
from rooflens.report.plane.roofs import flat_name_layers, line_layers, slope_name_layers

LANE_PX = 44

HEAD_PX = 4.5
"""Half the length of an arrow's head."""

LEAST_ARROW_PX = 10
"""A dot that moved less than this beyond its own size has no arrow."""

AT_LEVEL = "datum.level === level"

_LEVEL = "({dram: 'DRAM', l2: 'L2', l1: 'L1', smem: 'SMEM'})[datum.level]"
_TOOLTIP = (
    f"{{title: datum.name, 'Side': datum.side, 'Place': datum.where + ' at ' + {_LEVEL}, 'Limiter': datum.limiter, "
    "'Time': datum.time, 'What became of it': datum.story}"
)
_DESCRIPTION = "datum.name + ', ' + datum.side + ', ' + datum.where + ', ' + datum.limiter"


@unchecked
def arrows_spec(found: Moves, *, title: str) -> Spec:
    """Specify the plane, and the strip below it when kernels without FLOPs exist."""
    parts = ([_plane_chart(found)] if found.moves else []) + ([_strip_chart(found)] if found.slides else [])
    params = values(level=found.levels[0], kernel="", w=WIDTH, h=HEIGHT)
    if found.moves:
        base = [fmt.round_significant(end, 6) for end in (*found.x_domain(), *found.y_domain())]
        # Both axes zoom by one factor; shares have a roof and a floor, and need none.
        params += [*values(base=base), *seen(zooms=not found.in_shares, is_log=not found.in_shares)]
    subtitle = "Hollow: before. Filled: after. Area: GPU time."
    chart = stacked(parts, title=titled(title, subtitle))
    return specify(chart, params, datasets(found))


def _plane_chart(found: Moves) -> alt.LayerChart:
    dots = _dots_layer(_at_level("dots"), found, axes(shares=found.in_shares))
    if not found.in_shares:
        dots = dots.properties(name="dots").add_params(ZOOM)
    names, ridges = (
        placed(_at_level("labels").transform_filter(f"datum.s === '{kind}'")) for kind in ("name", "ridge")
    )
    halo, label = written(names, "label", **at_spot(), opacity=LIT_DOT)
    # Words stand on cleared ground under the dots, so that none is cut.
    layers = [
        *_roof_layers(found),
        halo,
        *written(ridges, "note", **at_spot()),
        leads(names, opacity=LIT_DOT),
        *_arrow_layers(found),
        dots,
        label,
    ]
    view = alt.ViewBackground() if found.in_shares else alt.ViewBackground(cursor="grab")
    return layered(layers, name="plane", width=WIDTH, height=HEIGHT, view=view)


def _at_level(data: str) -> alt.Chart:
    return table(data).transform_filter(AT_LEVEL)


def _roof_layers(found: Moves) -> list[alt.Chart]:
    """Draw the roofs of the chosen level with their names, and in a plane of shares its ridges."""
    ridges, slopes, flats = (
        _at_level("roofs").transform_filter(f"datum.kind === '{kind}'") for kind in ("ridge", "slope", "flat")
    )
    foot = ridges.transform_calculate(bottom="0", top="1")
    return [
        foot.mark_rule(style="note", strokeDash=[2, 4], **QUIET).encode(
            x=alt.X("x:Q"), y=alt.Y("bottom:Q"), y2=alt.Y2("top")
        ),
        *(line_layers(slopes, flats)[1:] if found.in_shares else line_layers(slopes, flats)),
        *flat_name_layers(flats),
        *([] if found.in_shares else slope_name_layers(slopes)),
    ]


def _arrow_layers(found: Moves) -> list[alt.Chart]:
    """Draw an arrow from the edge of the dot before to that of the dot after, where there is room between them."""
    up = "datum.y2 - datum.y" if found.in_shares else "log(datum.y2 / datum.y) / LN10"
    rows = _turned(_at_level("arrows"), "log(datum.x2 / datum.x) / LN10 / spanX * w", f"({up}) / -spanY * h")
    return [
        _shaft(rows, {**AT, "x2": alt.X2("x2"), "y2": alt.Y2("y2")}),
        _tip(rows, {"x": alt.X("x2:Q"), "y": alt.Y("y2:Q")}),
    ]


def _turned(rows: alt.Chart, right: str, down: str) -> alt.Chart:
    """Work out direction and length of arrows in pixels, and leave out those without room."""
    rows = rows.transform_calculate(right=right, down=down)
    rows = rows.transform_calculate(
        turn="atan2(datum.down, datum.right)", far="sqrt(datum.right * datum.right + datum.down * datum.down)"
    )
    return rows.transform_filter(f"datum.far >= datum.r + datum.r2 + {LEAST_ARROW_PX}")


def _shaft(rows: alt.Chart, at: Style) -> alt.Chart:
    off = f"(datum.r2 + {2 * HEAD_PX - 1:g})"
    return rows.mark_rule(
        style="gap",
        strokeWidth=1.5,
        opacity=LIT_DOT,
        xOffset=alt.ExprRef("cos(datum.turn) * datum.r"),
        yOffset=alt.ExprRef("sin(datum.turn) * datum.r"),
        x2Offset=alt.ExprRef(f"-cos(datum.turn) * {off}"),
        y2Offset=alt.ExprRef(f"-sin(datum.turn) * {off}"),
        **QUIET,
    ).encode(**at)


def _tip(rows: alt.Chart, at: Style) -> alt.Chart:
    off = f"(datum.r2 + {HEAD_PX + 1:g})"
    return rows.mark_point(
        style="label",
        shape=HEAD,
        filled=True,
        size=(2 * HEAD_PX) ** 2,
        opacity=LIT_DOT,
        angle=alt.ExprRef("datum.turn * 57.2958"),
        xOffset=alt.ExprRef(f"-cos(datum.turn) * {off}"),
        yOffset=alt.ExprRef(f"-sin(datum.turn) * {off}"),
        **QUIET,
    ).encode(**at)


def _dots_layer(rows: alt.Chart, found: Moves, at: Style) -> alt.Chart:
    """Draw the dots: shape and colour by verdict, hollow before and filled after."""
    dots = rows.transform_lookup("k", of_kernels(("name", "story"))).mark_point(
        filled=True,
        strokeWidth=2,
        cursor="pointer",
        clip=True,
        opacity=LIT_DOT,
        tooltip=alt.ExprRef(_TOOLTIP),
        description=alt.ExprRef(_DESCRIPTION),
        ariaRoleDescription="kernel",
    )
    return dots.encode(
        **at,
        **verdict_channels(found.bounds),
        size=alt.Size("a:Q", scale=None, legend=None),
        fillOpacity=alt.condition("datum.side === 'before'", alt.value(0), alt.value(0.78)),
    )


def _strip_chart(found: Moves) -> alt.LayerChart:
    """Draw kernels without FLOPs by their share of the level's bandwidth, a lane for each."""
    lanes = len({slide.row.key for slide in found.slides})
    widest = max([1.0, *(place.x for slide in found.slides for place in slide.places)])
    title = "Without FLOPs: share of the level's bandwidth"
    look = alt.Axis(format=".0%", tickCount=5, title=title, titlePadding=12)
    scale = alt.Scale(domain=[0, widest], nice=False)
    lane = {"y": alt.Y("at:Q", axis=None, scale=alt.Scale(domain=[lanes, 0], nice=False, zero=False))}
    x, x2 = ({"x": alt.X(f"{field}:Q", axis=look, scale=scale)} for field in ("x", "x2"))
    names = _at_level("lanes").transform_calculate(at="datum.lane + 0.2")
    lit: Style = {"opacity": LIT_DOT, "baseline": "middle", **QUIET}
    across = f"(datum.x2 - datum.x) / {widest:.6g} * w"
    arrows = _turned(_at_level("slideArrows").transform_calculate(at="datum.lane + 0.68"), across, "0")
    layers = [
        names.mark_text(style="label", align="left", limit=alt.ExprRef("w - 150"), **lit).encode(
            **lane, text=alt.Text("name:N"), x=alt.value(0)
        ),
        names.mark_text(style="note", align="right", **lit).encode(**lane, text=alt.Text("t:N"), x=alt.value("width")),
        _shaft(arrows, {**x, **lane, "x2": alt.X2("x2")}),
        _tip(arrows, {**x2, **lane}),
        _dots_layer(_at_level("slideDots").transform_calculate(at="datum.lane + 0.68"), found, {**x, **lane}),
    ]
    return layered(layers, width=WIDTH, height=LANE_PX * lanes)
