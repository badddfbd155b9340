"""The roofline of a comparison as a Vega-Lite specification: dots before and after, joined by arrows.

It holds no colour, the theme does. The page sets the signals `level` (a memory level), `kernel` (key of the kernel that
is isolated), `w` and `h` (pixels of the plane).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens import format as fmt
from rooflens.report.comparison.chart_rows import datasets
from rooflens.report.plane import expressions as words
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.roof_names import LIFT_PX
from rooflens.report.plane.text_marks import SLOT
from rooflens.report.roofline.layers import beside_spot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.comparison.plane import Moves

    Style = Mapping[str, Any]

WIDTH = 800
HEIGHT = 440
LANE_PX = 44
FAINT = 0.14
"""Opacity of the other kernels while one is isolated."""

HEAD_PX = 4.5
"""Half the length of an arrow's head."""

LEAST_ARROW_PX = 10
"""A dot that moved less than this beyond its own size has no arrow."""

AT_LEVEL = "datum.level === level"
LIT = f"kernel === '' || datum.g === kernel ? 1 : {FAINT}"

QUIET: Style = {"clip": True, "aria": False}
_LEVEL = "({dram: 'HBM', l2: 'L2', l1: 'L1', smem: 'SMEM'})[datum.level]"
_TOOLTIP = (
    f"{{title: datum.name, 'Side': datum.side, 'Place': datum.where + ' at ' + {_LEVEL}, 'Wall': datum.wall, "
    "'Time': datum.time, 'What became of it': datum.story}"
)
_DESCRIPTION = "datum.name + ', ' + datum.side + ', ' + datum.where + ', ' + datum.wall"


def arrows_spec(found: Moves, *, title: str) -> dict[str, Any]:
    """Specify the plane, and the strip below it when kernels without FLOPs exist."""
    parts = ([_plane_chart(found)] if found.moves else []) + ([_strip_chart(found)] if found.slides else [])
    chart = alt.vconcat(*(part.properties(width=WIDTH) for part in parts), spacing=24).add_params(
        alt.param(name="level", value=found.levels[0]),
        alt.param(name="kernel", value=""),
        alt.param(name="w", value=WIDTH),
        alt.param(name="h", value=HEIGHT),
        alt.param(name="slot", expr=SLOT),
        *(_seen(found) if found.moves else ()),
    )
    # The title may not be wider than the plane: the page fits the whole drawing to its room.
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    subtitle = "Hollow: before. Filled: after. Area: GPU time."
    spec: dict[str, Any] = chart.properties(title=alt.Title(title, subtitle=subtitle, **size)).to_dict()
    spec.pop("config", None)
    spec["datasets"] = datasets(found)
    return spec


def _seen(found: Moves) -> list[alt.Parameter]:
    """Declare the whole range of the plane, and what is seen of it: all, or the part that a reader has zoomed to."""
    whole = alt.param(name="base", value=[*_ends(found.x_domain()), *_ends(found.y_domain())])
    seen = {name: f"base[{i}]" for i, name in enumerate(("x0", "x1", "y0", "y1"))}
    if found.in_shares:
        seen |= {"spanX": "log(x1 / x0) / LN10", "spanY": "y1 - y0"}
    else:
        seen = {name: f"zoom.{name[0]} ? zoom.{name[0]}[{name[1]}] : {end}" for name, end in seen.items()}
        seen |= {"spanX": "log(x1 / x0) / LN10", "spanY": "log(y1 / y0) / LN10"}
        seen["turn"] = "-atan2(h / spanY, w / spanX) * 57.2958"
    return [whole, *(alt.param(name=name, expr=expr) for name, expr in seen.items())]


def _plane_chart(found: Moves) -> alt.LayerChart:
    dots = _dots_layer(_named("dots"), found)
    if not found.in_shares:
        # Both axes zoom by one factor; shares have a roof and a floor, and need none.
        dots = dots.add_params(alt.selection_interval(name="zoom", bind="scales", zoom="wheel![event.ctrlKey]"))
    layers = [
        *_roof_layers(found),
        *_halos(),
        *_leads(),
        *_arrow_layers(found),
        dots.encode(*_axes(found)),
        *_texts(),
    ]
    view = alt.ViewBackground() if found.in_shares else alt.ViewBackground(cursor="grab")
    return alt.LayerChart(layer=layers).properties(name="plane", height=HEIGHT, view=view)


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name)).transform_filter(AT_LEVEL)


def _x(field: str = "x") -> alt.X:
    """Encode intensity; `_axes` says how its scale looks, once for all layers."""
    return alt.X(field, type="quantitative")


def _y(field: str = "y") -> alt.Y:
    """Encode height."""
    return alt.Y(field, type="quantitative")


def _axes(found: Moves) -> tuple[alt.X, alt.Y]:
    """Encode both with their scales and axes: decades, and the ticks between them where a reader has zoomed in."""
    across = alt.Axis(
        tickCount=alt.ExprRef(words.tick_count("spanX")),
        labelExpr=words.tick_label(words.PLAIN, "spanX"),
        title="Arithmetic intensity (FLOP/B)",
        titlePadding=12,
    )
    x = _x().axis(across).scale(type="log", domain=_ends(found.x_domain()), nice=False)
    if found.in_shares:
        share = alt.Axis(format=".0%", values=[0, 0.2, 0.4, 0.6, 0.8, 1], title=None)
        return x, _y().axis(share).scale(type="linear", domain=_ends(found.y_domain()), nice=False, zero=False)
    up = alt.Axis(
        tickCount=alt.ExprRef(words.tick_count("spanY")),
        labelExpr=words.tick_label(words.SI_FLOPS, "spanY"),
        title=None,
    )
    return x, _y().axis(up).scale(type="log", domain=_ends(found.y_domain()), nice=False)


def _ends(domain: tuple[float, float]) -> list[float]:
    return [fmt.round_significant(end, 6) for end in domain]


def _roof_layers(found: Moves) -> list[alt.Chart]:
    """Draw the roofs of the chosen level with their names, and in a plane of shares its ridges."""
    lines = _named("roofs")
    ends = (alt.X2("x2"), alt.Y2("y2"))
    layers = [
        lines.transform_filter("datum.kind === 'ridge'")
        .mark_rule(style="note", strokeDash=[2, 4], **QUIET)
        .encode(_x(), _y(), *ends),
        lines.transform_filter("datum.kind !== 'ridge'").mark_rule(style="roof", **QUIET).encode(_x(), _y(), *ends),
        *_flat_names(),
    ]
    return layers if found.in_shares else [*layers, *_slope_names()]


def _slope_names() -> list[alt.Chart]:
    rows = _named("roofs").transform_filter("datum.kind === 'slope' && datum.px[slot] !== null")
    rows = rows.transform_calculate(nx="datum.px[slot]", ny="datum.py[slot]", words="datum.ts[slot]")
    turned: Style = {
        "angle": alt.ExprRef("turn"),
        "align": "left",
        "baseline": alt.ExprRef("datum.up[slot] > 0 ? 'bottom' : 'top'"),
        "dy": alt.ExprRef(f"-{LIFT_PX} * datum.up[slot]"),
    }
    return [
        rows.mark_text(style=style, **turned, **QUIET).encode(_x("nx"), _y("ny"), alt.Text("words:N"))
        for style in ("halo", "label")
    ]


def _flat_names() -> list[alt.Chart]:
    rows = _named("roofs").transform_filter("datum.kind === 'flat' && datum.p[slot]")
    rows = rows.transform_calculate(spot="datum.p[slot]", words="datum.ts[slot]", edge="x1")
    return [
        rows.mark_text(style=style, **beside_spot(), **QUIET).encode(_x("edge"), _y(), alt.Text("words:N"))
        for style in ("halo", "label")
    ]


def _labels() -> alt.Chart:
    rows = _named("labels").transform_filter("datum.p[slot]")
    return rows.transform_calculate(spot="datum.p[slot]", words="datum.ts[slot]")


def _halos() -> list[alt.Chart]:
    """Clear the ground for words, under the dots so that none is cut."""
    mark = _labels().mark_text(style="halo", **beside_spot(), **QUIET)
    return [mark.encode(_x(), _y(), alt.Text("words:N"))]


def _leads() -> list[alt.Chart]:
    """Lead from a dot to words that stand away from it."""
    led = _labels().transform_filter("isValid(datum.spot[3])")
    line = led.mark_rule(
        style="lead",
        opacity=alt.ExprRef(LIT),
        xOffset=alt.ExprRef("datum.spot[0] * datum.spot[3]"),
        yOffset=alt.ExprRef("datum.spot[1] * datum.spot[3]"),
        x2Offset=alt.ExprRef("datum.spot[0] * 0.97"),
        y2Offset=alt.ExprRef("datum.spot[1] * 0.97"),
        **QUIET,
    )
    return [line.encode(_x(), _y(), alt.X2("x"), alt.Y2("y"))]


def _texts() -> list[alt.Chart]:
    text = alt.Text("words:N")
    names, ridges = (_labels().transform_filter(f"datum.s === '{kind}'") for kind in ("name", "ridge"))
    return [
        names.mark_text(style="label", opacity=alt.ExprRef(LIT), **beside_spot(), **QUIET).encode(_x(), _y(), text),
        ridges.mark_text(style="note", **beside_spot(), **QUIET).encode(_x(), _y(), text),
    ]


def _arrow_layers(found: Moves) -> list[alt.Chart]:
    """Draw an arrow from the edge of the dot before to that of the dot after, where there is room between them."""
    up = "datum.y2 - datum.y" if found.in_shares else "log(datum.y2 / datum.y) / LN10"
    rows = _turned(_named("arrows"), "log(datum.x2 / datum.x) / LN10 / spanX * w", f"({up}) / -spanY * h")
    return [
        _shaft(rows).encode(_x(), _y(), alt.X2("x2"), alt.Y2("y2")),
        _tip(rows).encode(_x("x2"), _y("y2")),
    ]


def _turned(rows: alt.Chart, right: str, down: str) -> alt.Chart:
    """Work out direction and length of arrows in pixels, and leave out those without room."""
    rows = rows.transform_calculate(right=right, down=down)
    rows = rows.transform_calculate(
        turn="atan2(datum.down, datum.right)", far="sqrt(datum.right * datum.right + datum.down * datum.down)"
    )
    seen: alt.Chart = rows.transform_filter(f"datum.far >= datum.r + datum.r2 + {LEAST_ARROW_PX}")
    return seen


def _shaft(rows: alt.Chart) -> alt.Chart:
    off = f"(datum.r2 + {2 * HEAD_PX - 1:g})"
    drawn: alt.Chart = rows.mark_rule(
        style="gap",
        strokeWidth=1.5,
        opacity=alt.ExprRef(LIT),
        xOffset=alt.ExprRef("cos(datum.turn) * datum.r"),
        yOffset=alt.ExprRef("sin(datum.turn) * datum.r"),
        x2Offset=alt.ExprRef(f"-cos(datum.turn) * {off}"),
        y2Offset=alt.ExprRef(f"-sin(datum.turn) * {off}"),
        **QUIET,
    )
    return drawn


def _tip(rows: alt.Chart) -> alt.Chart:
    off = f"(datum.r2 + {HEAD_PX + 1:g})"
    drawn: alt.Chart = rows.mark_point(
        style="label",
        shape="triangle-right",
        filled=True,
        size=(2 * HEAD_PX) ** 2,
        opacity=alt.ExprRef(LIT),
        angle=alt.ExprRef("datum.turn * 57.2958"),
        xOffset=alt.ExprRef(f"-cos(datum.turn) * {off}"),
        yOffset=alt.ExprRef(f"-sin(datum.turn) * {off}"),
        **QUIET,
    )
    return drawn


def _dots_layer(rows: alt.Chart, found: Moves) -> alt.Chart:
    """Draw the dots: shape and colour by verdict, hollow before and filled after."""
    kernels = alt.LookupData(data=alt.NamedData(name="kernels"), key="k", fields=["name", "story"])
    drawn: alt.Chart = (
        rows.transform_lookup(lookup="k", from_=kernels)
        .mark_point(
            filled=True,
            strokeWidth=2,
            cursor="pointer",
            clip=True,
            opacity=alt.ExprRef(LIT),
            tooltip=alt.ExprRef(_TOOLTIP),
            description=alt.ExprRef(_DESCRIPTION),
            ariaRoleDescription="kernel",
        )
        .encode(
            *verdict_channels(found.bounds),
            alt.Size("a:Q", scale=None, legend=None),
            fillOpacity=alt.condition("datum.side === 'before'", alt.value(0), alt.value(0.78)),
        )
    )
    return drawn


def _strip_chart(found: Moves) -> alt.LayerChart:
    """Draw kernels without FLOPs by their share of the level's bandwidth, a lane for each."""
    lanes = len({slide.row.key for slide in found.slides})
    widest = max([1.0, *(place.x for slide in found.slides for place in slide.places)])
    title = "Without FLOPs: share of the level's bandwidth"
    look = alt.Axis(format=".0%", tickCount=5, title=title, titlePadding=12)
    scale = alt.Scale(domain=[0, widest], nice=False)
    rows = alt.Scale(domain=[lanes, 0], nice=False, zero=False)

    def x(field: str = "x") -> alt.X:
        return alt.X(field, type="quantitative", axis=look, scale=scale)

    lane = alt.Y("at:Q", axis=None, scale=rows)
    names = _named("lanes").transform_calculate(at="datum.lane + 0.2")
    lit: Style = {"opacity": alt.ExprRef(LIT), "baseline": "middle", **QUIET}
    arrows = _turned(
        _named("slideArrows").transform_calculate(at="datum.lane + 0.68"),
        f"(datum.x2 - datum.x) / {widest:.6g} * w",
        "0",
    )
    layers = [
        names.mark_text(style="label", align="left", limit=alt.ExprRef("w - 150"), **lit).encode(
            lane, alt.Text("name:N"), x=alt.value(0)
        ),
        names.mark_text(style="note", align="right", **lit).encode(lane, alt.Text("t:N"), x=alt.value("width")),
        _shaft(arrows).encode(x(), lane, alt.X2("x2")),
        _tip(arrows).encode(x("x2"), lane),
        _dots_layer(_named("slideDots").transform_calculate(at="datum.lane + 0.68"), found).encode(x(), lane),
    ]
    return alt.LayerChart(layer=layers).properties(height=LANE_PX * lanes)
