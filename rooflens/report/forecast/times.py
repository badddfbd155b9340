"""The time of an operation against its size, a line for each type and GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rooflens import format as fmt
from rooflens.model.predict.forecast import ForecastRow, moving
from rooflens.report.plane.later import alt
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import Spec, unchecked
from rooflens.report.plane.simple import finished, rowed, ticks, time_label
from rooflens.report.words.forecast import sizes_text
from rooflens.report.words.labels import BOUND_LABELS

HEIGHT = 320
AS_NUMBERS = 4.0
"""From this range of one size on the axis has its numbers, else the names of steps."""

AIR = 1.5
MOST_DRAWN = 60
"""Steps of a line that have a dot; longer sweeps have theirs at even distances."""


@unchecked
def times_spec(rows: Sequence[ForecastRow]) -> Spec:
    """Specify the chart for Vega-Lite."""
    lines = [point for place, row in enumerate(rows) for point in _points(row, place, rows)]
    amounts = [point["size"] for point in lines]
    is_number = all(amounts) and max(amounts) >= AS_NUMBERS * min(amounts)
    times = [point[name] for point in lines for name in ("floor", "typical") if point[name]]
    domain = min(times) / AIR, max(times) * AIR
    up = alt.Axis(title="Time", labelExpr=time_label(), values=ticks(domain))
    at: dict[str, Any] = {
        "x": _sizes_axis(rows[0], amounts) if is_number else alt.X("at:N", sort=None, axis=alt.Axis(title=None)),
    }
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    tips = [alt.Tooltip(f"{name}:N", title=title) for name, title in _TIPS.items()]
    typical = rowed(lines).transform_filter("datum.typical").mark_line(style="gap", strokeDash=[4, 3], aria=False)
    floor = rowed(lines).mark_line(style="path", aria=False)
    dots = rowed(lines).mark_point(size=70, opacity=1)
    ends = [point for point in lines if point["last"]]
    layers = [
        typical.encode(**at, y=alt.Y("typical:Q", scale=scale, axis=up), detail="line:N"),
        floor.encode(**at, y=alt.Y("floor:Q", scale=scale, axis=up), detail="line:N"),
        dots.encode(
            **at,
            y=alt.Y("floor:Q", scale=scale, axis=up),
            **verdict_channels({point["bound"] for point in lines}, columns=None),
            tooltip=tips,
        ),
    ]
    if len(rows) > 1:
        words = rowed(ends).mark_text(style="label", align="right", dx=-12, dy=-8)
        layers.append(words.encode(**at, y=alt.Y("floor:Q", scale=scale, axis=up), text="line:N"))
    dashed = ", dashed: typical of published kernels" if any(point["typical"] for point in lines) else ""
    fused = " of one kernel for all steps" if rows[0].operation.fused else ""
    note = f"Solid: floor{fused}, which no kernel beats{dashed}"
    return finished(alt.layer(*layers), "Time against size", (note,), height=HEIGHT)


_TIPS = {"line": "GPU and type", "at": "Size", "words": "Floor", "usually": "Typical", "limit": "Limited by"}


def _points(row: ForecastRow, place: int, rows: Sequence[ForecastRow]) -> Iterator[dict[str, Any]]:
    names = moving(row)
    several = len({one.dtype for one in rows}) > 1
    stride = -(-len(row.steps) // MOST_DRAWN)
    last = len(row.steps) - 1
    for i in range(last % stride, last + 1, stride):
        sizes, result = row.steps[i]
        typical = result.attainable.typical_s * 1e9 if result.attainable else None
        yield {
            "line": f"{row.gpu.name.removeprefix('NVIDIA ')}{f', {row.dtype}' if several else ''}",
            "place": place,
            "size": sizes[names[0]] if names and len({sizes[name] for name in names}) == 1 else 0,
            "at": sizes_text(row, sizes, brief=True),
            "floor": result.floor_s * 1e9,
            "typical": typical,
            "words": fmt.duration(result.floor_s * 1e9),
            "usually": fmt.duration(typical) if typical else "",
            "bound": result.regime,
            "limit": BOUND_LABELS[result.regime],
            "last": i == last,
        }


def _sizes_axis(row: ForecastRow, amounts: Sequence[int]) -> alt.X:
    named = " = ".join(moving(row))
    known = sorted(set(amounts))
    scale = alt.Scale(type="log", domain=[known[0] / AIR, known[-1] * AIR], nice=False)
    few = known if len(known) <= 12 else known[:: -(-len(known) // 12)]
    label = "datum.value >= 1e6 ? format(datum.value, '.3~s') : format(datum.value, ',')"
    return alt.X("size:Q", scale=scale, axis=alt.Axis(title=named, values=few, labelExpr=label))
