"""Where the time went: from the time before, by what each kernel gave or took, to the time after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import altair as alt
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.compare.sentences import spread_words
from rooflens.report.comparison.rows import Program, Row, signed_duration
from rooflens.report.plane.marks import Spec, Style, layered, specify, unchecked, values

Kind = Literal["total", "gain", "loss", "noise"]

WIDTH = 400
ROW_PX = 40
MAX_STEPS = 10
SEEN_SHARE = 0.001
"""A difference of less than this part of the longer total cannot be seen: it is counted with the others."""

NAME_WIDTH = 40

CUT_BELOW = 0.08
"""Where all steps lie within this part of the longest bar, bars begin later than at 0, so that steps can be seen."""

CUT_LEAST = 0.02
CUT_AIR = 1.5
"""Bars then begin this many times the range of the steps before them; a range below 2 % is drawn as if it were so."""


class Step(Struct, frozen=True):
    """One bar: a total, or what a kernel gave or took.

    Attributes:
        key: The kernel's key; empty for totals and for the others together.
        start_ns: Time so far before it; 0 for a total.
        end_ns: Time so far with it.
        words: Its difference and outcome; `short` the same where there is little room.
    """

    kind: Kind
    key: str
    name: str
    start_ns: float
    end_ns: float
    words: str
    short: str


class Waterfall(Struct, frozen=True):
    """All bars of one program.

    Attributes:
        begin_ns: Time at which bars begin: 0, or later where the steps would be too short to see.
    """

    steps: tuple[Step, ...]
    begin_ns: float


_LOOKS: tuple[tuple[Kind, Style], ...] = (
    ("total", {"style": "note", "fillOpacity": 0.45}),
    ("loss", {"style": "label"}),
    ("gain", {"style": "ring", "filled": False, "fill": "transparent"}),
    ("noise", {"style": "note", "filled": False, "fill": "transparent", "strokeDash": [3, 2]}),
)
"""Totals are grey, losses solid, gains hollow, and changes within noise hollow with dashes."""


def waterfall(program: Program) -> Waterfall | None:
    """Lay the bars of a program out; None where a side holds no durations."""
    total = program.total
    before, after = total.base.median_ns, total.head.median_ns
    if before is None or after is None:
        return None
    least = SEEN_SHARE * max(before, after)
    shown = [row for row in program.rows if abs(row.timing.lost_ns) >= least][:MAX_STEPS]
    now, steps = before, [Step("total", "", "before", 0.0, before, spread_words(total.base), fmt.duration(before))]
    for row in shown:
        steps.append(_step(row, now))
        now += row.timing.lost_ns
    steps += _others(program, shown, now, least)
    steps.append(Step("total", "", "after", 0.0, after, spread_words(total.head), fmt.duration(after)))
    return Waterfall(tuple(steps), _begin_ns(steps))


def _step(row: Row, now_ns: float) -> Step:
    lost_ns = row.timing.lost_ns
    kind: Kind = "loss" if lost_ns > 0 else "gain"
    if row.outcome == "same":
        kind = "noise"
    words = f"{row.difference}, {row.verdict}"
    return Step(kind, row.key, row.name, now_ns, now_ns + lost_ns, words, row.difference)


def _others(program: Program, shown: Sequence[Row], now_ns: float, least_ns: float) -> Iterator[Step]:
    """Add the others up; the median of a sum differs from the sum of medians: the rest is a bar if it can be seen."""
    after_ns = program.total.head.median_ns or 0.0
    lost_ns = after_ns - now_ns
    named = {id(row.change) for row in shown}
    others = [change for change in program.comparison.changes if id(change) not in named]
    if not others and abs(lost_ns) < least_ns:
        return
    name = "between the medians"
    if others:
        name = (
            fmt.count(len(others), "other kernel") if named else f"{fmt.count(len(others), 'kernel')}, all below 0.1 %"
        )
    outcomes = {change.timing.outcome(program.comparison.threshold) for change in others}
    still = abs(lost_ns) < least_ns or outcomes <= {"same"}
    kind: Kind = "noise" if still else "loss" if lost_ns > 0 else "gain"
    words = signed_duration(lost_ns)
    yield Step(kind, "", name, now_ns, after_ns, words, words)


def _begin_ns(steps: Sequence[Step]) -> float:
    ends = [step.end_ns for step in steps]
    low, high = min(ends), max(ends)
    if not high or (high - low) > CUT_BELOW * high:
        return 0.0
    return max(0.0, low - CUT_AIR * max(high - low, CUT_LEAST * high))


@unchecked
def waterfall_spec(found: Waterfall, *, title: str) -> Spec:
    """Specify the bars, one below the other; the page sets the parameter `w`."""
    layers = _layers(found)
    subtitle = f"The axis begins at {fmt.duration(found.begin_ns)}." if found.begin_ns else ""
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 320 ? 12 : 14")}
    more: Style = {"subtitle": subtitle} if subtitle else {}
    chart = layered(
        layers,
        data=alt.NamedData("steps"),
        width=WIDTH,
        height=ROW_PX * len(found.steps),
        title=alt.Title(title, **more, **size),
    )
    return specify(chart, values(w=WIDTH), {"steps": [_row(i, step) for i, step in enumerate(found.steps)]})


def _row(i: int, step: Step) -> dict[str, Any]:
    return {
        "i": i,
        "kind": step.kind,
        "name": fmt.cut_middle(step.name, NAME_WIDTH),
        "full": step.name,
        "from": step.start_ns,
        "to": step.end_ns,
        "t": step.words,
        "u": step.short,
    }


def _layers(found: Waterfall) -> list[alt.Chart]:
    count = len(found.steps)
    rows = alt.Scale(domain=[count, 0], nice=False, zero=False)
    longest = max((max(step.start_ns, step.end_ns) for step in found.steps), default=1.0) or 1.0
    times = alt.Scale(domain=[found.begin_ns, longest * 1.001], nice=False, zero=False, clamp=True)
    # A layer without marks would be an empty group to a screen reader.
    present = {step.kind for step in found.steps}
    return [
        *_ties(rows, times, count),
        _ground(rows),
        *(_bar(kind, look, rows, times) for kind, look in _LOOKS if kind in present),
        *_tips(rows, times),
        *_cuts(rows, found),
        *_words(rows),
    ]


def _ground(rows: alt.Scale) -> alt.Chart:
    """Clear the ground for the words beside the names, so that no tie runs through them."""
    words = alt.Chart().transform_calculate(mid="datum.i + 0.32", words="w < 360 ? datum.u : datum.t")
    drawn: alt.Chart = words.mark_text(style="halo", align="right", aria=False).encode(
        alt.Y("mid:Q", axis=None, scale=rows), alt.Text("words:N"), x=alt.value("width")
    )
    return drawn


def _words(rows: alt.Scale) -> list[alt.Chart]:
    words = alt.Chart().transform_calculate(mid="datum.i + 0.32", words="w < 360 ? datum.u : datum.t")
    y = alt.Y("mid:Q", axis=None, scale=rows)
    bold = alt.ExprRef("datum.kind === 'total' ? 600 : 400")
    name = words.mark_text(
        style="label",
        align="left",
        limit=alt.ExprRef("w < 360 ? w - 90 : w - 170"),
        fontWeight=bold,
    )
    time = words.mark_text(style="label", align="right", fontWeight=bold)
    return [
        name.encode(y, alt.Text("name:N"), x=alt.value(0), tooltip=alt.Tooltip("full:N", title="Kernel")),
        time.encode(y, alt.Text("words:N"), x=alt.value("width")),
    ]


def _bar(kind: Kind, look: Style, rows: alt.Scale, times: alt.Scale) -> alt.Chart:
    bars = alt.Chart().transform_filter(f"datum.kind === '{kind}'")
    bars = bars.transform_calculate(top="datum.i + 0.56", bottom="datum.i + 0.86")
    said = alt.ExprRef("datum.full + ', ' + datum.t")
    drawn: alt.Chart = bars.mark_rect(description=said, **look).encode(
        alt.X("from:Q", axis=None, scale=times),
        alt.X2("to"),
        alt.Y("top:Q", axis=None, scale=rows),
        alt.Y2("bottom"),
        tooltip=[alt.Tooltip("full:N", title="Kernel"), alt.Tooltip("t:N", title="Difference")],
    )
    return drawn


def _tips(rows: alt.Scale, times: alt.Scale) -> list[alt.Chart]:
    """Point to the side that time went to: left where it was won, right where it was lost."""
    layers = []
    for kind, shape, filled, off in (("gain", "triangle-left", False, -6), ("loss", "triangle-right", True, 6)):
        tips = alt.Chart().transform_filter(f"datum.kind === '{kind}'").transform_calculate(mid="datum.i + 0.71")
        mark = tips.mark_point(
            style="ring" if kind == "gain" else "label",
            shape=shape,
            filled=filled,
            size=44,
            xOffset=off,
            aria=False,
        )
        layers.append(mark.encode(alt.X("to:Q", axis=None, scale=times), alt.Y("mid:Q", axis=None, scale=rows)))
    return layers


def _ties(rows: alt.Scale, times: alt.Scale, count: int) -> list[alt.Chart]:
    """Lead from the end of each bar to the next one."""
    ties = alt.Chart().transform_filter(f"datum.i < {count - 1}")
    ties = ties.transform_calculate(top="datum.i + 0.86", bottom="datum.i + 1.56")
    mark = ties.mark_rule(style="note", strokeDash=[1, 3], opacity=0.8, aria=False)
    return [mark.encode(alt.X("to:Q", axis=None, scale=times), alt.Y("top:Q", axis=None, scale=rows), alt.Y2("bottom"))]


def _cuts(rows: alt.Scale, found: Waterfall) -> list[alt.Chart]:
    """Cut the totals visibly where they do not begin at 0."""
    if not found.begin_ns:
        return []
    totals = alt.Chart().transform_filter("datum.kind === 'total'").transform_calculate(mid="datum.i + 0.71")
    slash = totals.mark_point(style="halo", shape="M-0.25,1L0.25,-1", strokeWidth=3, filled=False, size=150, aria=False)
    return [slash.encode(alt.Y("mid:Q", axis=None, scale=rows), x=alt.value(16))]
