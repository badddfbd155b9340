"""Time of kernels over runs as a Vega-Lite specification; it holds no colour, the theme does.

The page sets the signals `w` and `h`: the drawing's size in pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.history_rows import AIR_PART, LABEL_GAP_PX, datasets, label_room_px, point_area_px2, time_axis
from rooflens.report.sheet import SIZES
from rooflens.report.spot_texts import SLOT, at_spot, leads
from rooflens.report.verdict_marks import verdict_channels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.history_rows import Group

    Style = Mapping[str, Any]

WIDTH = 1100
HEIGHT = 440

QUIET: Style = {"aria": False}
_TOOLTIP = "merge({title: datum.name}, datum.facts)"
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"))
_TIME = (
    "datum.value === 0 ? '0' : "
    + " : ".join(f"datum.value >= {ns:.0f} ? format(datum.value / {ns:.0f}, '~g') + ' {unit}'" for ns, unit in _UNITS)
    + " : format(datum.value, '~g') + ' ns'"
)


def history_spec(group: Group, *, title: str, subtitle: str) -> dict[str, Any]:
    """Specify a line for each kernel, points by verdict, and names at the right end."""
    layers = [
        _named("points").mark_line(style="note", strokeWidth=1.5, **QUIET).encode(_x(group), _y(group), _line()),
        *_end_labels(),
        *_gone_labels(group),
        _points(group),
    ]
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    slot = " : ".join(f"w >= {one.from_px} ? {label_room_px(group, one)}" for one in SIZES[:-1])
    chart = (
        alt.LayerChart(layer=layers)
        .properties(name="plane", width=WIDTH, height=HEIGHT, title=alt.Title(title, subtitle=subtitle, **size))
        .add_params(
            alt.param(name="w", value=WIDTH),
            alt.param(name="h", value=HEIGHT),
            alt.param(name="slot", expr=SLOT),
            alt.param(name="room", expr=f"w - ({slot} : {label_room_px(group, SIZES[-1])})"),
            alt.param(name="when", value=list(group.when)),
        )
    )
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    spec["datasets"] = datasets(group)
    return spec


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _line() -> alt.Detail:
    return alt.Detail("part:N")


def _x(group: Group) -> alt.X:
    """Put runs at even distances: they are counted, whatever time lies between them."""
    count = len(group.runs)
    air = AIR_PART / (1 - 2 * AIR_PART) * (count - 1)
    scale = alt.Scale(domain=[1 - air, count + air], nice=False, zero=False, range=[0, alt.ExprRef("room")])
    axis = alt.Axis(
        values=list(range(1, count + 1)),
        labelExpr="when[datum.value - 1]",
        labelOverlap="greedy",
        labelSeparation=16,
        grid=False,
        title=None,
    )
    return alt.X("x", type="quantitative", scale=scale, axis=axis)


def _y(group: Group) -> alt.Y:
    found = time_axis(group)
    scale = alt.Scale(type="log" if found.is_log else "linear", domain=[found.low, found.high], nice=False)
    values = [tick for tick in found.ticks if found.low <= tick <= found.high]
    return alt.Y("y", type="quantitative", scale=scale, axis=alt.Axis(values=values, labelExpr=_TIME, title=None))


def _end_labels() -> list[alt.Chart]:
    """Write the names of kernels of the newest run in a column, each led to from its last point."""
    rows = _named("labels").transform_filter("isValid(datum.parts)").transform_calculate(text="datum.texts[slot]")
    height = "datum.parts[slot]"
    begin, end = f"room * {1 - AIR_PART:g} + 8", f"room + {LABEL_GAP_PX - 4}"
    at: Style = {"x": _value(begin), "y": _value("datum.ends[slot]"), "x2": _value(end), "y2": _value(height)}
    beside: Style = {"x": _value(f"room + {LABEL_GAP_PX}"), "y": _value(height)}
    lead = rows.mark_rule(style="lead", **QUIET).encode(**at)
    words = rows.mark_text(style="label", align="left", baseline="middle", **QUIET).encode(**beside, text="text:N")
    return [lead, words]


def _value(expression: str) -> Any:
    return alt.value(alt.ExprRef(expression))


def _gone_labels(group: Group) -> list[alt.Chart]:
    """Write the names of kernels that the newest run lacks beside their last point, where there is room."""
    rows = (
        _named("labels")
        .transform_filter("isValid(datum.spots) && datum.spots[slot] !== null")
        .transform_calculate(spot="datum.spots[slot]", text="datum.texts[slot]")
    )
    text: Style = {**at_spot(), **QUIET}
    return [
        leads(rows).encode(_x(group), _y(group), alt.X2("x"), alt.Y2("y")),
        *(
            rows.mark_text(style=style, **text).encode(_x(group), _y(group), alt.Text("text:N"))
            for style in ("halo", "label")
        ),
    ]


def _points(group: Group) -> alt.Chart:
    """Draw each run of each kernel in the colour and shape of its verdict, with one legend for both."""
    present = {point.analysis.verdict.bound for one in group.drawn for point in one.points if point.time_ns}
    solid = alt.condition("datum.bound === 'unknown'", alt.value(0), alt.value(1))
    points: alt.Chart = (
        _named("points")
        .mark_point(filled=True, opacity=1, size=point_area_px2(group), tooltip=alt.ExprRef(_TOOLTIP))
        .encode(
            _x(group),
            _y(group),
            *verdict_channels(present),
            fillOpacity=solid,
        )
    )
    return points
