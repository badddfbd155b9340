"""Predictions in the datasheet's roofline: the path of the dot, its regime, and what was achieved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.path_plane import QUIET, PathPlane, named, specify
from rooflens.report.predict_rows import RING_PX2, STEP_PX2, datasets
from rooflens.report.verdict_marks import verdict_channels

if TYPE_CHECKING:
    from rooflens.model.records import Bound
    from rooflens.report.predict_plane import PredictPlane

_TOOLTIP = "merge({title: datum.name}, datum.facts)"


def predict_spec(plane: PredictPlane, *, title: str, subtitle: list[str]) -> dict[str, Any]:
    """Specify the plane: roofs, ridges, the path of the dot, and where its regime changes."""
    on = PathPlane(plane.x_domain, plane.y_domain, "Arithmetic intensity (FLOP/B)")
    # The path lies on the roofs: broad and pale, it leaves them to be seen.
    path = named("path").mark_line(style="note", strokeWidth=6, opacity=0.3, strokeJoin="round", **QUIET)
    layers = [
        *on.ridges(),
        *on.roofs(),
        path.encode(on.x(), on.y(), alt.Order("i:Q")),
        on.arrows(),
        *_achieved_layers(on),
        *on.names("crossing", "strong"),
        *on.names("dots", "strong"),
        _dots(on, {dot.regime for dot in plane.dots}),
        _crossing(on),
    ]
    return specify(layers, datasets(plane), title=title, subtitle=subtitle)


def _achieved_layers(on: PathPlane) -> list[alt.Chart]:
    """Draw what was measured as a hollow ring under its roof."""
    way = named("achieved").mark_rule(style="gap", strokeDash=[1, 3], **QUIET)
    ring = named("achieved").mark_point(style="ring", size=STEP_PX2, **QUIET)
    return [
        way.encode(on.x(), on.y(), alt.Y2("y2")),
        *on.names("achieved", "strong"),
        ring.encode(on.x(), on.y()),
    ]


def _dots(on: PathPlane, regimes: set[Bound]) -> alt.Chart:
    dots: alt.Chart = (
        named("dots")
        .mark_point(filled=True, opacity=1, strokeWidth=1.5, description=alt.ExprRef("datum.name"))
        .encode(
            on.x(),
            on.y(),
            *verdict_channels(regimes, wraps=False),
            size=alt.Size("area:Q", scale=None, legend=None),
            order=alt.Order("area:Q", sort="descending"),
        )
    )
    return _with_tooltip(dots)


def _crossing(on: PathPlane) -> alt.Chart:
    """Ring the place where the regime changes."""
    ring = named("crossing").mark_point(style="ring", size=RING_PX2, strokeWidth=2, **QUIET)
    return _with_tooltip(ring.encode(on.x(), on.y()))


def _with_tooltip(chart: alt.Chart) -> alt.Chart:
    chart.mark.tooltip = alt.ExprRef(_TOOLTIP)
    return chart
