"""Predictions in the datasheet's roofline as a Vega-Lite specification; it holds no colour, the theme does.

The page sets the signals `w` and `h`: the plane's size in pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report import log_plane
from rooflens.report.placement import LINE_PX
from rooflens.report.predict_rows import RING_PX2, STEP_PX2, datasets
from rooflens.report.roof_labels import LIFT_PX
from rooflens.report.sheet import decades
from rooflens.report.spot_texts import SLOT, at_spot, leads
from rooflens.report.verdict_marks import verdict_channels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.predict_plane import PredictPlane

    Style = Mapping[str, Any]

WIDTH = 800
HEIGHT = 440

ARROW_FROM_PX = 40
"""Parts of the path shorter than this have no room for an arrow between their dots."""

QUIET: Style = {"aria": False}
_SPOT = f"datum.spots[{SLOT}]"
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
    return log_plane.intensity(plane.x_domain, "Arithmetic intensity (FLOP/B)", field)


def _y(plane: PredictPlane, field: str = "y") -> alt.Y:
    return log_plane.performance(plane.y_domain, field)


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
        "dy": alt.ExprRef(f"-datum.sides[{SLOT}] * {LIFT_PX + LINE_PX / 2:g}"),
        **QUIET,
    }
    names = (
        _named("slope")
        .transform_filter(f"datum.texts && datum.xs[{SLOT}] !== null")
        .transform_calculate(nx=f"datum.xs[{SLOT}]", ny=f"datum.ys[{SLOT}]", text=f"datum.texts[{SLOT}]")
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
        _named(data).transform_filter(f"{_SPOT} !== null").transform_calculate(spot=_SPOT, text=f"datum.texts[{SLOT}]")
    )
    text: Style = {**at_spot(), **QUIET}
    bold: Style = {"fontWeight": 600, "fontSize": 13} if style == "strong" else {}
    words = [
        placed.mark_text(style="halo", **text, **bold).encode(_x(plane, x), _y(plane), alt.Text("text:N")),
        placed.mark_text(style=style, **text).encode(_x(plane, x), _y(plane), alt.Text("text:N")),
    ]
    return [leads(placed).encode(_x(plane, x), _y(plane), alt.X2(x), alt.Y2("y")), *words] if bold else words


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
            *verdict_channels({dot.regime for dot in plane.dots}, wraps=False),
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
