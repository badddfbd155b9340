"""Where the time went: from the time before, by what each kernel gave or took, to the time after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rooflens import format as fmt
from rooflens.report.comparison.rows import signed_duration, spread_words
from rooflens.report.html.embed import SCHEMA_URL
from rooflens.report.plane.marks import Rows, expr, nominal, quantity, values, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflens.report.comparison.rows import Program, Row
    from rooflens.report.plane.marks import Layer, Style

Kind = Literal["total", "gain", "loss", "noise"]

WIDTH = 400
ROW_PX = 40
MAX_STEPS = 10
SEEN_SHARE = 0.001
"""A difference of less than this part of the longer total cannot be seen: it is counted with the others."""

NAME_WIDTH = 40
FAINT = 0.2

CUT_BELOW = 0.08
"""Where all steps lie within this part of the longest bar, bars begin later than at 0, so that steps can be seen."""

CUT_LEAST = 0.02
CUT_AIR = 1.5
"""Bars then begin this many times the range of the steps before them; a range below 2 % is drawn as if it were so."""


@dataclass(frozen=True, slots=True)
class Step:
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


@dataclass(frozen=True, slots=True)
class Waterfall:
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
"""Totals are grey, losses solid, gains hollow, and what is no more than noise hollow in dashes."""


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
    """Add the others up; medians of sums are no sums of medians, and what that leaves is told where it can be seen."""
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


def waterfall_spec(found: Waterfall, *, title: str) -> dict[str, Any]:
    """Specify the bars, one below the other; the page sets the signals `kernel` and `w`."""
    subtitle = {"subtitle": f"Bars begin at {fmt.duration(found.begin_ns)}."} if found.begin_ns else {}
    return {
        "$schema": SCHEMA_URL,
        "width": WIDTH,
        "height": ROW_PX * len(found.steps),
        "title": {"text": title, **subtitle, "limit": expr("w"), "fontSize": expr("w < 320 ? 12 : 14")},
        "params": values(kernel="", w=WIDTH),
        "data": {"name": "steps"},
        "layer": _layers(found),
        "datasets": {"steps": [_row(i, step) for i, step in enumerate(found.steps)]},
    }


def _row(i: int, step: Step) -> dict[str, Any]:
    return {
        "i": i,
        "k": step.key,
        "g": step.key,
        "kind": step.kind,
        "name": fmt.cut_middle(step.name, NAME_WIDTH),
        "full": step.name,
        "from": step.start_ns,
        "to": step.end_ns,
        "t": step.words,
        "u": step.short,
    }


def _layers(found: Waterfall) -> list[Layer]:
    count = len(found.steps)
    rows = {"domain": [count, 0], "nice": False, "zero": False}
    longest = max((max(step.start_ns, step.end_ns) for step in found.steps), default=1.0) or 1.0
    times = {"domain": [found.begin_ns, longest * 1.001], "nice": False, "zero": False, "clamp": True}
    # A layer without marks would be an empty group to a screen reader.
    present = {step.kind for step in found.steps}
    return [
        _ties(rows, times, count),
        _ground(rows),
        *(_bar(kind, look, rows, times) for kind, look in _LOOKS if kind in present),
        *_tips(rows, times),
        *_cuts(rows, found),
        *_words(rows),
    ]


_LIT = expr(f"kernel === '' || datum.g === kernel || datum.kind === 'total' ? 1 : {FAINT}")

_LINES = Rows().having(mid="datum.i + 0.32", words="w < 360 ? datum.u : datum.t")


def _ground(rows: Layer) -> Layer:
    """Clear the ground for the words beside the names, so that no tie runs through them."""
    channels: Style = {"y": _at("mid", rows), **words(), "x": {"value": "width"}}
    return _LINES.mark("text", channels, style="halo", align="right", aria=False)


def _words(rows: Layer) -> list[Layer]:
    mid = _at("mid", rows)
    bold = expr("datum.kind === 'total' ? 600 : 400")
    limit = expr("w < 360 ? w - 90 : w - 170")
    name: Style = {"y": mid, **words("name"), "x": {"value": 0}, "tooltip": nominal("full", title="Kernel")}
    time: Style = {"y": mid, **words(), "x": {"value": "width"}}
    return [
        _LINES.mark("text", name, style="label", align="left", limit=limit, fontWeight=bold, opacity=_LIT),
        _LINES.mark("text", time, style="label", align="right", fontWeight=bold, opacity=_LIT),
    ]


def _bar(kind: Kind, look: Style, rows: Layer, times: Layer) -> Layer:
    bars = _of(kind).having(top="datum.i + 0.56", bottom="datum.i + 0.86")
    channels: Style = {
        "x": _at("from", times),
        "x2": {"field": "to"},
        "y": _at("top", rows),
        "y2": {"field": "bottom"},
        "tooltip": [nominal("full", title="Kernel"), nominal("t", title="Difference")],
    }
    said = expr("datum.full + ', ' + datum.t")
    return bars.mark("rect", channels, cursor="pointer", opacity=_LIT, description=said, **look)


def _tips(rows: Layer, times: Layer) -> list[Layer]:
    """Point to the side that time went to: left where it was won, right where it was lost."""
    channels: Style = {"x": _at("to", times), "y": _at("mid", rows)}
    sides: tuple[tuple[Kind, Style], ...] = (
        ("gain", {"style": "ring", "shape": "triangle-left", "filled": False, "xOffset": -6}),
        ("loss", {"style": "label", "shape": "triangle-right", "filled": True, "xOffset": 6}),
    )
    return [
        _of(kind).having(mid="datum.i + 0.71").mark("point", channels, size=44, opacity=_LIT, aria=False, **look)
        for kind, look in sides
    ]


def _ties(rows: Layer, times: Layer, count: int) -> Layer:
    """Lead from the end of each bar to the next one."""
    ties = Rows().where(f"datum.i < {count - 1}").having(top="datum.i + 0.86", bottom="datum.i + 1.56")
    channels: Style = {"x": _at("to", times), "y": _at("top", rows), "y2": {"field": "bottom"}}
    return ties.mark("rule", channels, style="note", strokeDash=[1, 3], opacity=0.8, aria=False)


def _cuts(rows: Layer, found: Waterfall) -> list[Layer]:
    """Cut the totals visibly where they do not begin at 0."""
    if not found.begin_ns:
        return []
    channels: Style = {"y": _at("mid", rows), "x": {"value": 16}}
    slash: Style = {"shape": "M-0.25,1L0.25,-1", "strokeWidth": 3, "filled": False, "size": 150}
    return [_of("total").having(mid="datum.i + 0.71").mark("point", channels, style="halo", aria=False, **slash)]


def _of(kind: Kind) -> Rows:
    return Rows().where(f"datum.kind === '{kind}'")


def _at(field: str, scale: Layer) -> Layer:
    return quantity(field, axis=None, scale=scale)
