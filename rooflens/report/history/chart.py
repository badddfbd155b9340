"""The history of one program on one GPU, ready to be drawn: runs in order, lines with gaps, labels that keep apart."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

import altair as alt
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.ladder import Series
from rooflens.report.history.groups import Group
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.ladder import limiter
from rooflens.report.plane.geometry import Boxes, Line, text_px
from rooflens.report.plane.legend import fill_opacity, verdict_channels
from rooflens.report.plane.marks import (
    Spec,
    Style,
    at_spot,
    expressions,
    layered,
    leads,
    placed,
    specify,
    table,
    titled,
    unchecked,
    values,
)
from rooflens.report.plane.names import LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.placement import LINE_PX, Canvas, Text, around
from rooflens.report.plane.viewport import SIZES, SLOT, SizeClass, point_box

Row = dict[str, Any]


LOG_FROM_RATIO = 30.0
"""Times that differ by more than this stand on a logarithmic axis: on another the short ones would lie on its foot."""

MANY_RUNS = 40

POINT_PX2, SMALL_POINT_PX2 = 80, 30

LABEL_GAP_PX = 14

AIR_PART = 0.04
"""Room beside the first and the last run, as a part of the room of all runs."""

TICKS = 5

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


class TimeAxis(Struct, frozen=True):
    """The axis of times in nanoseconds."""

    low: float
    high: float
    is_log: bool
    ticks: tuple[float, ...]

    def part(self, time_ns: float) -> float:
        """Return the height of a time on the axis, 0 to 1."""
        if self.is_log:
            return log10(time_ns / self.low) / log10(self.high / self.low)
        return (time_ns - self.low) / (self.high - self.low)


def time_axis(group: Group) -> TimeAxis:
    """Choose the axis: from zero, or logarithmic where times differ by much."""
    times = [point.time_ns for series in group.drawn for point in series.points if point.time_ns]
    low, high = min(times), max(times)
    if high / low <= LOG_FROM_RATIO:
        step = _nice(high * 1.08 / TICKS)
        count = ceil(high * 1.04 / step)
        return TimeAxis(0.0, max(high * 1.08, step), is_log=False, ticks=tuple(step * i for i in range(count + 1)))
    low, high = low / 1.6, high * 1.6
    ticks = [10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1)]
    return TimeAxis(low, high, is_log=True, ticks=tuple(ticks))


def _nice(value: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def labels(group: Group, width: int) -> list[str]:
    """Name the drawn kernels in so many characters."""
    newest = {f"g{s}": series.points[-1].analysis for s, series in enumerate(group.drawn)}
    names = short_names(newest, width)
    return [names[key] for key in newest]


def label_room_px(group: Group, size: SizeClass) -> int:
    """Measure the room that the names at the right end need."""
    names = labels(group, _width(size))
    ends = [name for name, series in zip(names, group.drawn, strict=True) if _is_last(group, series)]
    return round(max((text_px(name) for name in ends), default=0.0)) + LABEL_GAP_PX + 4


def _width(size: SizeClass) -> int:
    return NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH


def _is_last(group: Group, series: Series) -> bool:
    """Return whether a kernel was timed in the newest run."""
    return group.at(series.points[-1]) == len(group.runs) - 1 and bool(series.points[-1].time_ns)


def datasets(group: Group) -> dict[str, list[Row]]:
    """Make all rows of the chart: points, parts of lines without gaps, and labels."""
    return {
        "points": [row for s, series in enumerate(group.drawn) for row in _point_rows(group, s, series)],
        "labels": _label_rows(group),
    }


def _point_rows(group: Group, s: int, series: Series) -> list[Row]:
    """Write the points of one kernel; `part` counts the stretches between runs that lack it."""
    rows: list[Row] = []
    part, before = 0, None
    when = group.when
    for point in series.points:
        at = group.at(point)
        if not point.time_ns:
            continue
        if before is not None and at != before[0] + 1:
            part += 1
        change = f"{(point.time_ns / before[1] - 1) * 100:+.1f} %" if before and before[1] else fmt.MISSING
        rows.append(
            {
                "s": s,
                "part": f"{s}.{part}",
                "x": at + 1,
                "y": fmt.round_significant(point.time_ns, 5),
                "bound": point.analysis.verdict.shown_class,
                "name": fmt.cut_middle(fmt.plain_name(point.analysis.kernel.name), 120),
                "facts": {
                    "Run": point.run.source,
                    "Recorded": when[at],
                    "Mean launch" if point.is_mean else "Time": fmt.duration(point.time_ns),
                    "Launches": f"{point.launches:,}",
                    "To the run before": change,
                    "Verdict": limiter(point.analysis),
                    "Class": BOUND_LABELS[point.analysis.verdict.shown_class],
                },
            }
        )
        before = (at, point.time_ns)
    return rows


def _label_rows(group: Group) -> list[Row]:
    """Place the names: in a column at the right for kernels of the newest run, beside their last point for others."""
    axis, found = time_axis(group), [_placed(group, size) for size in SIZES]
    rows = []
    for s, series in enumerate(group.drawn):
        last = next(point for point in reversed(series.points) if point.time_ns)
        row: Row = {"x": group.at(last) + 1, "y": fmt.round_significant(last.time_ns or 0.0, 5)}
        if _is_last(group, series):
            height = [size.height_px * (1 - axis.part(last.time_ns or 0.0)) for size in SIZES]
            row |= {"ends": [round(px, 1) for px in height], "parts": [ends[s] for ends, _ in found]}
            row |= {"texts": [labels(group, _width(size))[s] for size in SIZES]}
        else:
            row |= {"p": [gone[s] for _, gone in found]}
        rows.append(row)
    return rows


def _placed(group: Group, size: SizeClass) -> tuple[dict[int, float], dict[int, list[Any] | None]]:
    view = TimeView(group, time_axis(group), size.width_px - label_room_px(group, size), size.height_px)
    drawn = list(enumerate(group.drawn))
    ends = {s: view.at(0, series.points[-1].time_ns or 0)[1] for s, series in drawn if _is_last(group, series)}
    dots = [[view.at(group.at(p), p.time_ns) for p in series.points if p.time_ns] for _, series in drawn]
    lines = [Line(*begin, *end) for line in dots for begin, end in pairwise(line)]
    canvas = Canvas(view, taken=Boxes(point_box(dot, 5) for line in dots for dot in line), lines=lines)
    names = labels(group, _width(size))
    gone: dict[int, list[Any] | None] = {}
    for s, series in drawn:
        if s not in ends:
            last = next(point for point in reversed(series.points) if point.time_ns)
            gone[s] = canvas.place(Text((names[s],), group.at(last), last.time_ns or 0.0, around(5)))
    return {s: round(y, 1) for s, y in apart(ends, size.height_px).items()}, gone


class TimeView(Struct, frozen=True):
    """The drawing at one size: runs at even distances, times up."""

    group: Group
    axis: TimeAxis
    width_px: float
    height_px: float

    def at(self, run: float, time_ns: float) -> tuple[float, float]:
        """Give the pixels of a run's number and a time."""
        count = max(len(self.group.runs) - 1, 1)
        right = (AIR_PART + (1 - 2 * AIR_PART) * run / count) * self.width_px
        return right, self.height_px * (1 - self.axis.part(time_ns))


def apart(wanted: dict[int, float], height_px: float) -> dict[int, float]:
    """Move texts up and down until none overlaps another, each as near to its place as the others let it."""
    keys = sorted(wanted, key=lambda key: wanted[key])
    low, high = LINE_PX / 2, height_px - LINE_PX / 2
    placed: list[float] = []
    for i, key in enumerate(keys):
        floor_px = placed[-1] + LINE_PX + 2 if placed else low
        most = high - (len(keys) - 1 - i) * (LINE_PX + 2)
        placed.append(min(max(wanted[key], floor_px), max(most, floor_px)))
    return dict(zip(keys, placed, strict=True))


def point_area_px2(group: Group) -> int:
    """Choose the size of points: small ones where there are many runs."""
    return POINT_PX2 if len(group.runs) <= MANY_RUNS else SMALL_POINT_PX2


@unchecked
def history_spec(group: Group, *, title: str, subtitle: str) -> Spec:
    """Specify a line for each kernel, points by verdict, and names at the right end."""
    at = _at(group)
    layers = [
        table("points").mark_line(style="note", strokeWidth=1.5, **QUIET).encode(**at, detail=alt.Detail("part:N")),
        *_end_labels(),
        *_gone_labels(at),
        _points(group, at),
    ]
    room = " : ".join(f"w >= {size.from_px} ? {label_room_px(group, size)}" for size in SIZES[:-1])
    params = [
        *values(w=WIDTH, h=HEIGHT),
        *expressions(slot=SLOT, room=f"w - ({room} : {label_room_px(group, SIZES[-1])})"),
        *values(when=list(group.when)),
    ]
    chart = layered(layers, name="plane", width=WIDTH, height=HEIGHT, title=titled(title, subtitle))
    return specify(chart, params, datasets(group))


def _at(group: Group) -> Style:
    """Put runs at even distances: they are counted, whatever time lies between them."""
    count = len(group.runs)
    air = AIR_PART / (1 - 2 * AIR_PART) * (count - 1)
    across = alt.Axis(
        values=list(range(1, count + 1)),
        labelExpr="when[datum.value - 1]",
        labelOverlap="greedy",
        labelSeparation=16,
        grid=False,
        title=None,
    )
    runs = alt.Scale(domain=[1 - air, count + air], nice=False, zero=False, range=[0, alt.ExprRef("room")])
    found = time_axis(group)
    ticks = [tick for tick in found.ticks if found.low <= tick <= found.high]
    up = alt.Axis(values=ticks, labelExpr=_TIME, title=None)
    times = alt.Scale(type="log" if found.is_log else "linear", domain=[found.low, found.high], nice=False)
    return {"x": alt.X("x:Q", scale=runs, axis=across), "y": alt.Y("y:Q", scale=times, axis=up)}


def _end_labels() -> list[alt.Chart]:
    """Write the names of kernels of the newest run in a column, each led to from its last point."""
    rows = table("labels").transform_filter("isValid(datum.parts)").transform_calculate(words="datum.texts[slot]")
    height = alt.value(alt.ExprRef("datum.parts[slot]"))
    lead = rows.mark_rule(style="lead", **QUIET).encode(
        x=alt.value(alt.ExprRef(f"room * {1 - AIR_PART:g} + 8")),
        y=alt.value(alt.ExprRef("datum.ends[slot]")),
        x2=alt.value(alt.ExprRef(f"room + {LABEL_GAP_PX - 4}")),
        y2=height,
    )
    name = rows.mark_text(style="label", align="left", baseline="middle", **QUIET)
    return [lead, name.encode(x=alt.value(alt.ExprRef(f"room + {LABEL_GAP_PX}")), y=height, text=alt.Text("words:N"))]


def _gone_labels(at: Style) -> list[alt.Chart]:
    """Write the names of kernels that the newest run lacks beside their last point, where there is room."""
    rows = placed(table("labels").transform_filter("isValid(datum.p)"))
    names = (rows.mark_text(style=style, **at_spot(), **QUIET) for style in ("halo", "label"))
    return [leads(rows, at), *(name.encode(**at, text=alt.Text("words:N")) for name in names)]


def _points(group: Group, at: Style) -> alt.Chart:
    """Draw each run of each kernel in the colour and shape of its verdict, with one legend for both."""
    present = {point.analysis.verdict.shown_class for series in group.drawn for point in series.points if point.time_ns}
    look: Style = {"filled": True, "opacity": 1, "size": point_area_px2(group), "tooltip": alt.ExprRef(_TOOLTIP)}
    return table("points").mark_point(**look).encode(**at, **verdict_channels(present), fillOpacity=fill_opacity())
