"""Predictions in the datasheet's roofline as a Vega-Lite specification; it holds no colour, the theme does.

The page sets the signals `w` and `h`: the plane's size in pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.model.records import BOUNDS
from rooflens.report.placement import LEAD_TO_PART, LINE_PX
from rooflens.report.predict_rows import RING_PX2, STEP_PX2, datasets
from rooflens.report.roof_labels import LIFT_PX
from rooflens.report.sheet import SIZES, decades
from rooflens.report.theme import LOOKS
from rooflens.report.words import BOUND_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.predict_plane import PredictPlane

    Style = Mapping[str, Any]

WIDTH = 800
HEIGHT = 440

ARROW_FROM_PX = 40
"""Parts of the path shorter than this have no room for an arrow between their dots."""

QUIET: Style = {"aria": False}
_SIZE = f"w >= {SIZES[0].from_px} ? 0 : w >= {SIZES[1].from_px} ? 1 : 2"
_SPOT = f"datum.spots[{_SIZE}]"
_INTENSITY = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, ',')"
_SI_FLOPS = (
    "datum.value < 1000 ? format(datum.value, '~g') + ' FLOP/s' : "
    "slice(format(datum.value, '~s'), 0, -1) + ' ' + slice(format(datum.value, '~s'), -1) + "
    "(w < 480 ? '' : 'FLOP/s')"
)
_TOOLTIP = "merge({title: datum.name}, datum.facts)"


def predict_spec(plane: PredictPlane, *, title: str, subtitle: list[str]) -> dict[str, Any]:
    """Specify the plane: roofs, ridges, the path of the dot, and where its regime changes."""
    layers = [
        *_ridge_layers(plane),
        *_roof_layers(plane),
        *_path_layers(plane),
        *_achieved_layers(plane),
        *_name_layers(plane, "crossing", "strong"),
        *_name_layers(plane, "dots", "strong"),
        _dots(plane),
        _crossing(plane),
    ]
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    chart = (
        alt.LayerChart(layer=layers)
        .properties(name="plane", width=WIDTH, height=HEIGHT, title=alt.Title(title, subtitle=subtitle, **size))
        .add_params(alt.param(name="w", value=WIDTH), alt.param(name="h", value=HEIGHT))
    )
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    spec["datasets"] = datasets(plane)
    return spec


def _x(plane: PredictPlane, field: str = "x") -> alt.X:
    axis = alt.Axis(
        values=_powers(plane.x_domain), labelExpr=_INTENSITY, title="Arithmetic intensity (FLOP/B)", titlePadding=12
    )
    scale = alt.Scale(type="log", domain=list(plane.x_domain), nice=False)
    return alt.X(field, type="quantitative", axis=axis, scale=scale)


def _y(plane: PredictPlane, field: str = "y") -> alt.Y:
    axis = alt.Axis(values=_powers(plane.y_domain), labelExpr=_SI_FLOPS, title=None)
    scale = alt.Scale(type="log", domain=list(plane.y_domain), nice=False)
    return alt.Y(field, type="quantitative", axis=axis, scale=scale)


def _powers(domain: tuple[float, float]) -> list[float]:
    """List the powers of ten inside a range."""
    return [10.0**power for power in range(-30, 31) if domain[0] <= 10.0**power <= domain[1]]


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _ridge_layers(plane: PredictPlane) -> list[alt.Chart]:
    rule = _named("ridges").mark_rule(style="gap", strokeDash=[2, 4], opacity=0.6, **QUIET)
    return [rule.encode(_x(plane), _y(plane), alt.Y2("y2")), *_name_layers(plane, "ridges", "note")]


def _roof_layers(plane: PredictPlane) -> list[alt.Chart]:
    angle = f"-atan2(h * {decades(plane.x_domain) / decades(plane.y_domain):.4g}, w) * 57.2958"
    text: Style = {
        "align": "left",
        "baseline": "middle",
        "angle": alt.ExprRef(angle),
        "dy": alt.ExprRef(f"-datum.sides[{_SIZE}] * {LIFT_PX + LINE_PX / 2:g}"),
        **QUIET,
    }
    names = (
        _named("slope")
        .transform_filter(f"datum.texts && datum.xs[{_SIZE}] !== null")
        .transform_calculate(nx=f"datum.xs[{_SIZE}]", ny=f"datum.ys[{_SIZE}]", text=f"datum.texts[{_SIZE}]")
    )
    return [
        _named("slope").mark_line(style="roof", clip=True, **QUIET).encode(_x(plane), _y(plane)),
        _named("pipes").mark_rule(style="roof", **QUIET).encode(_x(plane), alt.X2("x2"), _y(plane)),
        *(
            names.mark_text(style=style, **text).encode(_x(plane, "nx"), _y(plane, "ny"), alt.Text("text:N"))
            for style in ("halo", "label")
        ),
        *_name_layers(plane, "pipes", "label", x="x2"),
    ]


def _name_layers(plane: PredictPlane, data: str, style: str, x: str = "x") -> list[alt.Chart]:
    """Write texts at the places found for the size at hand, each on a cleared ground, led to where they stand away."""
    placed = (
        _named(data).transform_filter(f"{_SPOT} !== null").transform_calculate(spot=_SPOT, text=f"datum.texts[{_SIZE}]")
    )
    text: Style = {
        "baseline": "middle",
        "align": alt.ExprRef("datum.spot[2] < 0 ? 'right' : datum.spot[2] > 0 ? 'left' : 'center'"),
        "dx": alt.ExprRef("datum.spot[0]"),
        "dy": alt.ExprRef("datum.spot[1]"),
        **QUIET,
    }
    bold: Style = {"fontWeight": 600, "fontSize": 13} if style == "strong" else {}
    lead = placed.transform_filter("isValid(datum.spot[3])").mark_rule(
        style="lead",
        xOffset=alt.ExprRef("datum.spot[0] * datum.spot[3]"),
        yOffset=alt.ExprRef("datum.spot[1] * datum.spot[3]"),
        x2Offset=alt.ExprRef(f"datum.spot[0] * {LEAD_TO_PART}"),
        y2Offset=alt.ExprRef(f"datum.spot[1] * {LEAD_TO_PART}"),
        **QUIET,
    )
    words = [
        placed.mark_text(style="halo", **text, **bold).encode(_x(plane, x), _y(plane), alt.Text("text:N")),
        placed.mark_text(style=style, **text).encode(_x(plane, x), _y(plane), alt.Text("text:N")),
    ]
    return [lead.encode(_x(plane, x), _y(plane), alt.X2(x), alt.Y2("y")), *words] if bold else words


def _path_layers(plane: PredictPlane) -> list[alt.Chart]:
    """Join the dots in order, with an arrow on every part that is long enough; the path lies on the roofs."""
    path = _named("path").mark_line(style="note", strokeWidth=6, opacity=0.3, strokeJoin="round", **QUIET)
    right, down = "datum.right * w", "datum.up * -h"
    arrow = (
        _named("arrows")
        .transform_filter(f"sqrt(pow({right}, 2) + pow({down}, 2)) >= {ARROW_FROM_PX}")
        .mark_point(
            style="note",
            shape="triangle-right",
            filled=True,
            size=130,
            opacity=1,
            angle=alt.ExprRef(f"atan2({down}, {right}) * 57.2958"),
            **QUIET,
        )
    )
    return [path.encode(_x(plane), _y(plane), alt.Order("i:Q")), arrow.encode(_x(plane), _y(plane))]


def _achieved_layers(plane: PredictPlane) -> list[alt.Chart]:
    """Draw what was measured as a hollow ring under its roof."""
    way = _named("achieved").mark_rule(style="gap", strokeDash=[1, 3], **QUIET)
    ring = _named("achieved").mark_point(style="ring", size=STEP_PX2, **QUIET)
    return [
        way.encode(_x(plane), _y(plane), alt.Y2("y2")),
        *_name_layers(plane, "achieved", "strong"),
        ring.encode(_x(plane), _y(plane)),
    ]


def _dots(plane: PredictPlane) -> alt.Chart:
    dots: alt.Chart = (
        _named("dots")
        .mark_point(filled=True, opacity=1, strokeWidth=1.5, description=alt.ExprRef("datum.name"))
        .encode(
            _x(plane),
            _y(plane),
            *_regime_channels(plane),
            size=alt.Size("area:Q", scale=None, legend=None),
            order=alt.Order("area:Q", sort="descending"),
        )
    )
    return _with_tooltip(dots)


def _crossing(plane: PredictPlane) -> alt.Chart:
    """Ring the place where the regime changes."""
    return _with_tooltip(_named("crossing").mark_point(style="ring", size=RING_PX2, strokeWidth=2, **QUIET)).encode(
        _x(plane), _y(plane)
    )


def _with_tooltip(chart: alt.Chart) -> alt.Chart:
    chart.mark.tooltip = alt.ExprRef(_TOOLTIP)
    return chart


def _regime_channels(plane: PredictPlane) -> list[Any]:
    """Encode the regime by colour and shape together, with one legend for both."""
    present = {dot.regime for dot in plane.dots}
    cases = " : ".join(f"datum.value === '{bound}' ? '{BOUND_LABELS[bound]}'" for bound in BOUNDS)
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        values=[bound for bound in BOUNDS if bound in present],
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
