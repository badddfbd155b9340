"""The roofline of a comparison as a Vega-Lite specification: dots before and after, joined by arrows.

It holds no colour, the theme does. The page sets the signals `level` (a memory level), `kernel` (key of the kernel that
is isolated), `w` and `h` (pixels of the plane).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.model.records import BOUNDS
from rooflens.report.compare_arrows import datasets
from rooflens.report.roof_labels import LIFT_PX
from rooflens.report.sheet import SIZES
from rooflens.report.theme import LOOKS
from rooflens.report.words import BOUND_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.compare_plane import Moves

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
_INTENSITY = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, ',')"
_SI_FLOPS = (
    "datum.value < 1000 ? format(datum.value, '~g') + ' FLOP/s' : "
    "slice(format(datum.value, '~s'), 0, -1) + ' ' + slice(format(datum.value, '~s'), -1) + "
    "(w < 480 ? '' : 'FLOP/s')"
)
_TOOLTIP = "merge({title: datum.name}, datum.facts, {'What became of it': datum.story})"
_DESCRIPTION = "datum.name + ', ' + datum.side + ', ' + datum.where + ', ' + datum.verdict"


def arrows_spec(found: Moves, *, title: str) -> dict[str, Any]:
    """Specify the plane, and the strip below it when kernels without FLOPs exist."""
    parts = ([_plane_chart(found)] if found.moves else []) + ([_strip_chart(found)] if found.slides else [])
    slot = " : ".join(f"w >= {size.from_px} ? {i}" for i, size in enumerate(SIZES[:-1]))
    chart = alt.vconcat(*(part.properties(width=WIDTH) for part in parts), spacing=24).add_params(
        alt.param(name="level", value=found.levels[0]),
        alt.param(name="kernel", value=""),
        alt.param(name="w", value=WIDTH),
        alt.param(name="h", value=HEIGHT),
        alt.param(name="slot", expr=f"{slot} : {len(SIZES) - 1}"),
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
    """Declare what is seen of the plane: all of it, or the part that a reader has zoomed to."""
    (low, high), (bottom, top) = found.x_domain(), found.y_domain()
    ends = {"x0": f"{low!r}", "x1": f"{high!r}", "y0": f"{bottom!r}", "y1": f"{top!r}"}
    if not found.in_shares:
        ends = {name: f"zoom.{name[0]} ? zoom.{name[0]}[{name[1]}] : {end}" for name, end in ends.items()}
    spans = {"spanX": "log(x1 / x0) / LN10", "spanY": "y1 - y0" if found.in_shares else "log(y1 / y0) / LN10"}
    return [alt.param(name=name, expr=expr) for name, expr in (ends | spans).items()]


def _plane_chart(found: Moves) -> alt.LayerChart:
    dots = _dots_layer(_named("dots"), found)
    if not found.in_shares:
        # Both axes zoom by one factor; shares have a roof and a floor, and need none.
        dots = dots.add_params(alt.selection_interval(name="zoom", bind="scales", zoom="wheel![event.ctrlKey]"))
    layers = [
        *_roof_layers(found),
        *_halos(found),
        *_leads(found),
        *_arrow_layers(found),
        dots.encode(_x(found, axis=True), _y(found, axis=True)),
        *_texts(found),
    ]
    cursor = "default" if found.in_shares else "grab"
    whole = alt.LayerChart(layer=layers)
    return whole.properties(name="plane", height=HEIGHT, view=alt.ViewBackground(cursor=cursor))


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name)).transform_filter(AT_LEVEL)


def _x(found: Moves, field: str = "x", *, axis: bool = False) -> alt.X:
    domain = found.x_domain()
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    if not axis:
        return alt.X(field, type="quantitative", scale=scale)
    look = alt.Axis(
        values=_powers(domain), labelExpr=_INTENSITY, title="Arithmetic intensity (FLOP/B)", titlePadding=12
    )
    return alt.X(field, type="quantitative", scale=scale, axis=look)


def _y(found: Moves, field: str = "y", *, axis: bool = False) -> alt.Y:
    domain = found.y_domain()
    kind: Style = {"type": "linear", "zero": False} if found.in_shares else {"type": "log"}
    scale = alt.Scale(domain=list(domain), nice=False, **kind)
    if not axis:
        return alt.Y(field, type="quantitative", scale=scale)
    if found.in_shares:
        look = alt.Axis(format=".0%", values=[0, 0.2, 0.4, 0.6, 0.8, 1], title=None)
    else:
        look = alt.Axis(values=_powers(domain), labelExpr=_SI_FLOPS, title=None)
    return alt.Y(field, type="quantitative", scale=scale, axis=look)


def _powers(domain: tuple[float, float]) -> list[float]:
    return [10.0**power for power in range(-30, 31) if domain[0] <= 10.0**power <= domain[1]]


def _roof_layers(found: Moves) -> list[alt.Chart]:
    """Draw the roofs of the chosen level with their names, and in a plane of shares its ridges."""
    lines = _named("roofs")
    ends = (alt.X2("x2"), alt.Y2("y2"))
    layers = [
        lines.transform_filter("datum.kind === 'ridge'")
        .mark_rule(style="note", strokeDash=[2, 4], **QUIET)
        .encode(_x(found), _y(found), *ends),
        lines.transform_filter("datum.kind !== 'ridge'")
        .mark_rule(style="roof", **QUIET)
        .encode(_x(found), _y(found), *ends),
        *_flat_names(found),
    ]
    return layers if found.in_shares else [*layers, *_slope_names(found)]


def _slope_names(found: Moves) -> list[alt.Chart]:
    rows = _named("roofs").transform_filter("datum.kind === 'slope' && datum.px[slot] !== null")
    rows = rows.transform_calculate(nx="datum.px[slot]", ny="datum.py[slot]", words="datum.ts[slot]")
    turned: Style = {
        "angle": alt.ExprRef("-atan2(h / spanY, w / spanX) * 57.2958"),
        "align": "left",
        "baseline": alt.ExprRef("datum.up[slot] > 0 ? 'bottom' : 'top'"),
        "dy": alt.ExprRef(f"-{LIFT_PX} * datum.up[slot]"),
    }
    return [
        rows.mark_text(style=style, **turned, **QUIET).encode(_x(found, "nx"), _y(found, "ny"), alt.Text("words:N"))
        for style in ("halo", "label")
    ]


def _flat_names(found: Moves) -> list[alt.Chart]:
    rows = _named("roofs").transform_filter("datum.kind === 'flat' && datum.p[slot]")
    rows = rows.transform_calculate(spot="datum.p[slot]", words="datum.ts[slot]", edge="x1")
    return [
        rows.mark_text(style=style, **_beside(), **QUIET).encode(_x(found, "edge"), _y(found), alt.Text("words:N"))
        for style in ("halo", "label")
    ]


def _beside() -> Style:
    """Place words at the spot that was found for them."""
    side = "datum.spot[2]"
    return {
        "align": alt.ExprRef(f"{side} > 0 ? 'left' : {side} < 0 ? 'right' : 'center'"),
        "baseline": "middle",
        "dx": alt.ExprRef("datum.spot[0]"),
        "dy": alt.ExprRef("datum.spot[1]"),
    }


def _labels() -> alt.Chart:
    rows = _named("labels").transform_filter("datum.p[slot]")
    return rows.transform_calculate(spot="datum.p[slot]", words="datum.ts[slot]")


def _halos(found: Moves) -> list[alt.Chart]:
    """Clear the ground for words, under the dots so that none is cut."""
    mark = _labels().mark_text(style="halo", **_beside(), **QUIET)
    return [mark.encode(_x(found), _y(found), alt.Text("words:N"))]


def _leads(found: Moves) -> list[alt.Chart]:
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
    return [line.encode(_x(found), _y(found), alt.X2("x"), alt.Y2("y"))]


def _texts(found: Moves) -> list[alt.Chart]:
    text = alt.Text("words:N")
    names, ridges = (_labels().transform_filter(f"datum.s === '{kind}'") for kind in ("name", "ridge"))
    return [
        names.mark_text(style="label", opacity=alt.ExprRef(LIT), **_beside(), **QUIET).encode(
            _x(found), _y(found), text
        ),
        ridges.mark_text(style="note", **_beside(), **QUIET).encode(_x(found), _y(found), text),
    ]


def _arrow_layers(found: Moves) -> list[alt.Chart]:
    """Draw an arrow from the edge of the dot before to that of the dot after, where there is room between them."""
    up = "datum.y2 - datum.y" if found.in_shares else "log(datum.y2 / datum.y) / LN10"
    rows = _turned(_named("arrows"), "log(datum.x2 / datum.x) / LN10 / spanX * w", f"({up}) / -spanY * h")
    return [
        _shaft(rows).encode(_x(found), _y(found), alt.X2("x2"), alt.Y2("y2")),
        _tip(rows).encode(_x(found, "x2"), _y(found, "y2")),
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
            *_bound_channels(found),
            alt.Size("a:Q", scale=None, legend=None),
            fillOpacity=alt.condition("datum.side === 'before'", alt.value(0), alt.value(0.78)),
        )
    )
    return drawn


def _bound_channels(found: Moves) -> list[Any]:
    """Encode the verdict by colour and shape together, with one legend for both."""
    cases = " : ".join(f"datum.value === '{bound}' ? '{BOUND_LABELS[bound]}'" for bound in BOUNDS)
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=alt.ExprRef("w < 480 ? 2 : 6"),
        values=list(found.bounds),
        labelExpr=f"{cases} : datum.value",
        symbolOpacity=1,
    )
    shapes = alt.Scale(domain=list(BOUNDS), range=[LOOKS[bound].shape for bound in BOUNDS])
    colours = alt.Scale(domain=list(BOUNDS))
    return [
        alt.Shape("bound:N", scale=shapes, legend=legend),
        alt.Fill("bound:N", scale=colours, legend=legend),
        alt.Stroke("bound:N", scale=colours, legend=legend),
    ]


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
    words = _named("lanes").transform_calculate(at="datum.lane + 0.2")
    lit: Style = {"opacity": alt.ExprRef(LIT), "baseline": "middle", **QUIET}
    arrows = _turned(
        _named("slideArrows").transform_calculate(at="datum.lane + 0.68"),
        f"(datum.x2 - datum.x) / {widest:.6g} * w",
        "0",
    )
    layers = [
        words.mark_text(style="label", align="left", limit=alt.ExprRef("w - 150"), **lit).encode(
            lane, alt.Text("name:N"), x=alt.value(0)
        ),
        words.mark_text(style="note", align="right", **lit).encode(lane, alt.Text("t:N"), x=alt.value("width")),
        _shaft(arrows).encode(x(), lane, alt.X2("x2")),
        _tip(arrows).encode(x("x2"), lane),
        _dots_layer(_named("slideDots").transform_calculate(at="datum.lane + 0.68"), found).encode(x(), lane),
    ]
    return alt.LayerChart(layer=layers).properties(height=LANE_PX * lanes)
