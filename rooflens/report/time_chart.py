"""Time by kernel as a Vega-Lite specification: names, times and one bar per kernel, split by verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.model import units
from rooflens.model.records import BOUNDS
from rooflens.report import format as fmt
from rooflens.report.rows import bound_times_ns, time_part
from rooflens.report.theme import LOOKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.model.records import Bound
    from rooflens.report.rows import Group

WIDTH = 400
ROW_PX = 40
MAX_ROWS = 12
NAME_WIDTH = 40


def time_spec(groups: Sequence[Group]) -> dict[str, Any]:
    """Specify the bars of the kernels that take most time; the rest share the last bar.

    Kernels without a duration have no bar. The page sets the parameter `w` (width in pixels).
    """
    labels, bars = _rows([group for group in groups if group.duration_ns])
    data = {"labels": labels, "bars": bars}
    height = ROW_PX * len(labels)
    chart = alt.layer(*_layers(len(labels))).add_params(alt.param(name="w", value=WIDTH))
    spec: dict[str, Any] = chart.properties(width=WIDTH, height=height).to_dict()
    spec.pop("config", None)
    spec["datasets"] = data
    return spec


def _rows(groups: Sequence[Group]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make one label per bar, and one piece of bar per verdict in it."""
    shown = groups if len(groups) <= MAX_ROWS else groups[: MAX_ROWS - 1]
    rest = groups[len(shown) :]
    labels = [
        _label(i, group.shown, group.duration_ns, group.time_share, group.bound_ns) for i, group in enumerate(shown)
    ]
    bars = [bar for i, group in enumerate(shown) for bar in _bars(i, labels[i], group.bound_ns, group.worst.key)]
    if rest:
        bounds = bound_times_ns(launch for group in rest for launch in group.launches)
        labels.append(
            _label(
                len(shown),
                f"{len(rest):,} other kernels",
                sum(group.duration_ns or 0.0 for group in rest),
                time_part(rest),
                bounds,
            )
        )
        bars += _bars(len(shown), labels[-1], bounds, "")
    return labels, bars


def _label(
    i: int, name: str, duration_ns: float | None, share: float | None, bounds: Mapping[Bound, float]
) -> dict[str, Any]:
    return {
        "i": i,
        "name": units.cut_middle(name, NAME_WIDTH),
        "full": units.cut_middle(name, 200),
        "timeText": f"{fmt.duration(duration_ns)}  {fmt.percent(share)}",
        "bound": max(bounds, key=lambda bound: bounds[bound], default="unknown"),
    }


def _bars(i: int, label: Mapping[str, Any], bounds: Mapping[Bound, float], key: str) -> list[dict[str, Any]]:
    pieces, start = [], 0.0
    for bound, time_ns in bounds.items():
        pieces.append(
            {
                "i": i,
                "k": key,
                "bound": bound,
                "x": start,
                "x2": start + time_ns,
                "name": label["full"],
                "pieceText": f"{fmt.duration(time_ns)} {bound}",
            }
        )
        start += time_ns
    return pieces


def _layers(count: int) -> list[alt.Chart]:
    """Draw a line of words per kernel, and its bar below it."""
    rows = alt.Scale(domain=[count, 0], nice=False, zero=False)
    labels = _named("labels").transform_calculate(mid="datum.i + 0.32")
    y = alt.Y("mid:Q", axis=None, scale=rows)
    name = labels.mark_text(style="label", align="left", limit=alt.ExprRef("w - 130"))
    time = labels.mark_text(style="note", align="right")
    return [
        _symbols(labels, y),
        name.encode(y, alt.Text("name:N"), x=alt.value(18), tooltip=alt.Tooltip("full:N", title="Kernel")),
        time.encode(y, alt.Text("timeText:N"), x=alt.value("width")),
        _bars_layer(rows),
    ]


def _symbols(labels: alt.Chart, y: alt.Y) -> alt.Chart:
    """Draw the shape of the verdict with most of the kernel's time before its name."""
    shapes = alt.Scale(domain=list(BOUNDS), range=[LOOKS[bound].shape for bound in BOUNDS])
    symbol = labels.mark_point(filled=True, size=70, opacity=1, strokeWidth=1.5)
    drawn: alt.Chart = symbol.encode(
        y,
        alt.Shape("bound:N", scale=shapes, legend=None),
        _colour(alt.Fill),
        _colour(alt.Stroke),
        x=alt.value(6),
        fillOpacity=alt.condition("datum.bound === 'unknown'", alt.value(0), alt.value(1)),
    )
    return drawn


def _bars_layer(rows: alt.Scale) -> alt.Chart:
    bars = _named("bars").transform_calculate(top="datum.i + 0.56", bottom="datum.i + 0.86")
    drawn: alt.Chart = bars.mark_rect(cursor="pointer", opacity=1, cornerRadius=1).encode(
        alt.X("x:Q", axis=None, scale=alt.Scale(nice=False, zero=True)),
        alt.X2("x2"),
        alt.Y("top:Q", axis=None, scale=rows),
        alt.Y2("bottom"),
        _colour(alt.Fill),
        tooltip=[alt.Tooltip("name:N", title="Kernel"), alt.Tooltip("pieceText:N", title="Time")],
    )
    return drawn


def _colour(channel: type[alt.Fill | alt.Stroke]) -> alt.Fill | alt.Stroke:
    return channel("bound:N", scale=alt.Scale(domain=list(BOUNDS)), legend=None)


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))
