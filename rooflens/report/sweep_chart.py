"""The path of a sweep across the roofline plane as a Vega-Lite specification; it holds no colour, the theme does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report import log_plane
from rooflens.report.placement import LINE_PX
from rooflens.report.roof_labels import LIFT_PX
from rooflens.report.sheet import decades
from rooflens.report.spot_texts import SLOT, at_spot
from rooflens.report.sweep_rows import DOT_AREA_PX2, RING_AREA_PX2, datasets, sweep_plane
from rooflens.report.verdict_marks import verdict_channels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.report.sweep import Sweep
    from rooflens.report.sweep_rows import SweepPlane

    Style = Mapping[str, Any]

WIDTH = 800
HEIGHT = 440

ARROW_FROM_PX = 44
"""Parts of the path shorter than this have no room for an arrow between their dots."""

_SPOT = f"datum.spots[{SLOT}]"


def sweep_spec(sweep: Sweep, *, title: str, subtitle: Sequence[str], groups: Mapping[str, str]) -> dict[str, Any]:
    """Specify the plane with roofs, ridges, the path, and where each case was predicted.

    The page sets the parameters: `picked` (key of a launch), `w` and `h` (pixels).
    """
    plane = sweep_plane(sweep)
    way, rings = _prediction_layers(plane)
    # Words stand on cleared ground: they come before the marks, which they must not cut.
    layers = [
        *_ridge_layers(plane),
        *_roof_layers(plane),
        way,
        *_path_layers(plane),
        *_name_layers(plane, "steps", "strong"),
        rings,
        _dots(plane),
    ]
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    chart = (
        alt.LayerChart(layer=layers)
        .properties(name="plane", width=WIDTH, height=HEIGHT, title=alt.Title(title, subtitle=list(subtitle), **size))
        .add_params(
            alt.param(name="picked", value=""), alt.param(name="w", value=WIDTH), alt.param(name="h", value=HEIGHT)
        )
    )
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    spec["datasets"] = datasets(plane, groups)
    return spec


def _x(plane: SweepPlane, field: str = "x") -> alt.X:
    return log_plane.intensity(plane.x_domain, "Arithmetic intensity at HBM (FLOP/B)", field)


def _y(plane: SweepPlane, field: str = "y") -> alt.Y:
    return log_plane.performance(plane.y_domain, field)


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _ridge_layers(plane: SweepPlane) -> list[alt.Chart]:
    rule = _named("ridges").mark_rule(style="gap", strokeDash=[2, 4], opacity=0.6)
    return [rule.encode(_x(plane), _y(plane), alt.Y2("y2")), *_name_layers(plane, "ridges", "note")]


def _roof_layers(plane: SweepPlane) -> list[alt.Chart]:
    angle = f"-atan2(h * {decades(plane.x_domain) / decades(plane.y_domain):.4g}, w) * 57.2958"
    text: Style = {
        "align": "left",
        "baseline": "middle",
        "angle": alt.ExprRef(angle),
        "dy": alt.ExprRef(f"-datum.sides[{SLOT}] * {LIFT_PX + LINE_PX / 2:g}"),
    }
    names = (
        _named("slope")
        .transform_filter(f"datum.xs && datum.xs[{SLOT}] !== null")
        .transform_calculate(nx=f"datum.xs[{SLOT}]", ny=f"datum.ys[{SLOT}]", label=f"datum.texts[{SLOT}]")
    )
    return [
        _named("slope").mark_line(style="roof", clip=True).encode(_x(plane), _y(plane)),
        _named("pipes").mark_rule(style="roof").encode(_x(plane), alt.X2("x2"), _y(plane)),
        *(
            names.mark_text(style=style, **text).encode(_x(plane, "nx"), _y(plane, "ny"), alt.Text("label:N"))
            for style in ("halo", "label")
        ),
        *_name_layers(plane, "pipes", "label", x="x2"),
    ]


def _name_layers(plane: SweepPlane, data: str, style: str, x: str = "x") -> list[alt.Chart]:
    """Write texts at the places found for the size at hand, each on a cleared ground."""
    placed = (
        _named(data).transform_filter(f"{_SPOT} !== null").transform_calculate(spot=_SPOT, text=f"datum.texts[{SLOT}]")
    )
    text = at_spot()
    bold: Style = {"fontWeight": 600, "fontSize": 13} if style == "strong" else {}
    return [
        placed.mark_text(style="halo", **text, **bold).encode(_x(plane, x), _y(plane), alt.Text("text:N")),
        placed.mark_text(style=style, **text).encode(_x(plane, x), _y(plane), alt.Text("text:N")),
    ]


def _prediction_layers(plane: SweepPlane) -> tuple[alt.Chart, alt.Chart]:
    """Draw the way from each dot to its prediction, and the ring there."""
    known = _named("steps").transform_filter("datum.px !== null")
    way = known.mark_rule(style="gap", strokeDash=[1, 3])
    ring = known.mark_point(style="ring", size=RING_AREA_PX2)
    return (
        way.encode(_x(plane), _y(plane), alt.X2("px"), alt.Y2("py")),
        ring.encode(_x(plane, "px"), _y(plane, "py"), tooltip=_tooltip()),
    )


def _path_layers(plane: SweepPlane) -> list[alt.Chart]:
    """Join the dots in order, with an arrow on every part that is long enough."""
    path = _named("steps").mark_line(style="note", strokeWidth=2)
    right, down = "datum.right * w", "datum.up * -h"
    arrow = (
        _named("arrows")
        .transform_filter(f"sqrt(pow({right}, 2) + pow({down}, 2)) >= {ARROW_FROM_PX}")
        .mark_point(
            style="note",
            shape="triangle-right",
            filled=True,
            size=110,
            opacity=1,
            angle=alt.ExprRef(f"atan2({down}, {right}) * 57.2958"),
        )
    )
    return [path.encode(_x(plane), _y(plane), alt.Order("i:Q")), arrow.encode(_x(plane), _y(plane))]


def _dots(plane: SweepPlane) -> alt.Chart:
    dots: alt.Chart = (
        _named("steps")
        .mark_point(filled=True, opacity=1, size=DOT_AREA_PX2, strokeWidth=1.5, cursor="pointer")
        .encode(
            _x(plane),
            _y(plane),
            *verdict_channels({step.bound for step in plane.sweep.placed}),
            tooltip=_tooltip(),
            strokeWidth=_picked(),
        )
    )
    return dots


def _picked() -> Any:
    return alt.condition("indexof(datum.ks, picked) >= 0", alt.value(4), alt.value(1.5))


def _tooltip() -> list[alt.Tooltip]:
    fields = {
        "name": "Case",
        "verdict": "Verdict",
        "intensity": "Intensity",
        "predicted": "Predicted",
        "achieved": "Achieved",
        "roofText": "Its roof",
        "timeText": "Time",
    }
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]
