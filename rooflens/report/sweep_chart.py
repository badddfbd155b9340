"""The path of a sweep across the roofline plane, and where each case was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.path_plane import QUIET, PathPlane, named, specify
from rooflens.report.sweep_rows import DOT_AREA_PX2, RING_AREA_PX2, datasets, sweep_plane
from rooflens.report.verdict_marks import verdict_channels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.records import Bound
    from rooflens.report.sweep import Sweep


def sweep_spec(sweep: Sweep, *, title: str, subtitle: Sequence[str], groups: Mapping[str, str]) -> dict[str, Any]:
    """Specify the plane with roofs, ridges, the path, and where each case was predicted.

    The page sets `picked`, the key of a launch, beside the size of the plane.
    """
    plane = sweep_plane(sweep)
    on = PathPlane(plane.x_domain, plane.y_domain, "Arithmetic intensity at HBM (FLOP/B)")
    way, rings = _prediction_layers(on)
    path = named("steps").mark_line(style="note", strokeWidth=2, **QUIET)
    # Words stand on cleared ground: they come before the marks, which they must not cut.
    layers = [
        *on.ridges(),
        *on.roofs(),
        way,
        path.encode(on.x(), on.y(), alt.Order("i:Q")),
        on.arrows(),
        *on.names("steps", "strong"),
        rings,
        _dots(on, {step.bound for step in sweep.placed}),
    ]
    return specify(layers, datasets(plane, groups), title=title, subtitle=subtitle, picked="")


def _prediction_layers(on: PathPlane) -> tuple[alt.Chart, alt.Chart]:
    """Draw the way from each dot to its prediction, and the ring there."""
    known = named("steps").transform_filter("datum.px !== null")
    way = known.mark_rule(style="gap", strokeDash=[1, 3], **QUIET)
    ring = known.mark_point(style="ring", size=RING_AREA_PX2, **QUIET)
    return (
        way.encode(on.x(), on.y(), alt.X2("px"), alt.Y2("py")),
        ring.encode(on.x("px"), on.y("py"), tooltip=_tooltip()),
    )


def _dots(on: PathPlane, bounds: set[Bound]) -> alt.Chart:
    dots: alt.Chart = (
        named("steps")
        .mark_point(filled=True, opacity=1, size=DOT_AREA_PX2, strokeWidth=1.5, cursor="pointer")
        .encode(on.x(), on.y(), *verdict_channels(bounds), tooltip=_tooltip(), strokeWidth=_picked())
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
