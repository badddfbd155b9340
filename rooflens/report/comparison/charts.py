"""The charts of a comparison: where the time went, where each kernel was and is, and its times over all versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.compare.compare import Change
from rooflens.model.compare.ladder import Ladder
from rooflens.model.roofline.roofs import RoofSet
from rooflens.model.roofline.standing import standing
from rooflens.model.summary import identity
from rooflens.report.comparison.conditions import unlike
from rooflens.report.comparison.rows import (
    ComparedProgram,
    brief_words,
    is_same,
    known_lost_ns,
    limiter_words,
    signed_duration,
)
from rooflens.report.document import spans
from rooflens.report.plane.later import alt
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import Spec, unchecked
from rooflens.report.plane.simple import (
    Dot,
    Drawn,
    dot_of,
    finished,
    plane_spec,
    roofs_of,
    rowed,
    ticks,
    time_label,
)
from rooflens.report.words.change import change_sentence, kernel_names
from rooflens.report.words.ladder import kernel_title, limiter

MAX_DRAWN = 12
"""Kernels drawn, those with the largest differences."""

MAX_NAMED = 5
MAX_LINES = 8
NAME_WIDTH = 40
ROW_PX = 26

THIN = 0.015
"""Part of the longest bar below which a hollow one would look solid."""

SEEN_SHARE = 0.001
"""A difference of less than this part of the longer total cannot be seen: it is counted with the others."""


@unchecked
def waterfall_spec(program: ComparedProgram, *, title: str) -> Spec | None:
    """Draw the time before, what each kernel gave or took, and the time after; None if a side has no durations."""
    return bars_spec([*waterfall(program)], title, "GPU time")


@unchecked
def bars_spec(steps: Sequence[Mapping[str, Any]], title: str, axis_title: str) -> Spec | None:
    """Draw bars of `bar` from a total before to a total after; None if there are none."""
    if not steps:
        return None
    names = [step["name"] for step in steps]
    longest = max(max(step["from"], step["to"]) for step in steps)
    steps = [{**step, "kind": f"thin {step['kind']}"} if _is_thin(step, longest) else step for step in steps]
    bars = rowed(steps).encode(
        y=alt.Y("name:N", sort=names, axis=alt.Axis(title=None, labelLimit=240)),
        x=alt.X("from:Q", axis=alt.Axis(title=axis_title, labelExpr=time_label(longest))),
        x2=alt.X2("to"),
        tooltip=[alt.Tooltip("full:N", title="What"), alt.Tooltip("words:N", title="Difference")],
    )
    looks: tuple[tuple[str, dict[str, Any]], ...] = (
        ("total", {"style": "note", "fillOpacity": 0.45}),
        ("loss", {"style": "label"}),
        ("gain", {"style": "ring", "filled": False, "fill": "transparent"}),
        ("thin gain", {"style": "label", "fillOpacity": 0.3}),
        ("same", {"style": "note", "filled": False, "fill": "transparent", "strokeDash": [3, 2]}),
    )
    kinds = {step["kind"] for step in steps}
    layers = [
        bars.transform_filter(f"datum.kind === '{kind}'").mark_bar(height=14, **look)
        for kind, look in looks
        if kind in kinds
    ]
    words = rowed(steps).transform_calculate(at="max(datum.from, datum.to)")
    layers.append(
        words.mark_text(style="note", align="left", dx=6).encode(
            y=alt.Y("name:N", sort=names), x=alt.X("at:Q", scale=alt.Scale(domain=[0, 1.25 * longest])), text="words:N"
        )
    )
    return finished(alt.layer(*layers), title, height=ROW_PX * len(steps))


def waterfall(program: ComparedProgram) -> Iterator[dict[str, Any]]:
    """List the bars from the time before to the time after, in nanoseconds; nothing if a side has no durations."""
    comparison = program.comparison
    threshold, names = comparison.threshold, kernel_names(comparison)
    before, after = comparison.total.base.median_ns, comparison.total.head.median_ns
    if before is None or after is None:
        return
    yield bar("before", "total", (0.0, before), fmt.duration(before))
    now, least = before, SEEN_SHARE * max(before, after)
    shown = [row for row in program.rows if abs(row.timing.lost_ns) >= least][:MAX_DRAWN]
    for row in shown:
        lost_ns = row.timing.lost_ns
        kind = "same" if is_same(row, threshold) else "loss" if lost_ns > 0 else "gain"
        words = f"{signed_duration(known_lost_ns([row]))}, {brief_words(row, threshold)}"
        yield bar(names[row.name], kind, (now, now + lost_ns), words)
        now += lost_ns
    others = len(comparison.changes) - len(shown)
    if others or abs(after - now) >= least:
        name = fmt.count(others, "other kernel") if others else "between the medians"
        kind = "same" if abs(after - now) < least else "loss" if after > now else "gain"
        yield bar(name, kind, (now, after), signed_duration(after - now))
    yield bar("after", "total", (0.0, after), fmt.duration(after))


def _is_thin(step: Mapping[str, Any], longest_ns: float) -> bool:
    """Return whether the outline of a hollow bar would fill it."""
    return step["kind"] == "gain" and abs(step["to"] - step["from"]) < THIN * longest_ns


def bar(name: str, kind: str, ends_ns: tuple[float, float], words: str) -> dict[str, Any]:
    """Make a bar: `total`, `loss`, `gain` or `same`."""
    short = fmt.cut_middle(name, NAME_WIDTH)
    return {"name": short, "full": name, "kind": kind, "from": ends_ns[0], "to": ends_ns[1], "words": words}


def arrows_spec(program: ComparedProgram, roofs: Mapping[str, RoofSet], *, title: str) -> Spec | None:
    """Draw the roofline with each kernel before and after; None if no kernel has a place.

    On one GPU at one clock both sides share the roofs of the page. Elsewhere heights are shares of each kernel's own
    roof, for FLOP/s would move with the hardware.

    Args:
        program: Both sides.
        roofs: Those of each GPU of the page.
        title: Stands over the chart.
    """
    in_shares = bool(unlike(program.comparison))
    names = kernel_names(program.comparison)
    drawn = ((row, names[row.name]) for row in program.rows[:MAX_DRAWN])
    placed = (_pair_of_dots(program.comparison, row, name, in_shares=in_shares) for row, name in drawn)
    pairs = [pair for pair in placed if pair]
    if not pairs:
        return None
    named = [replace(pair[-1], label=pair[-1].name) for pair in pairs[:MAX_NAMED]]
    dots = (*named, *(dot for at, pair in enumerate(pairs) for dot in (pair[:-1] if at < MAX_NAMED else pair)))
    gpu = identity(next(one for row in program.rows for one in (row.head, row.base) if one))[0]
    slopes, flats = roofs_of(roofs.get(gpu, RoofSet()), (dot.level for dot in dots), gpu)
    undrawn = len(program.comparison.changes) - len(pairs)
    more = (
        (f"{fmt.count(undrawn, 'kernel')} not drawn: without FLOPs, or with smaller differences.",) if undrawn else ()
    )
    return plane_spec(
        Drawn(
            title,
            dots,
            ("Faint: before. Each at the level that binds it. Area: GPU time.", *more),
            slopes,
            flats,
            tuple(tuple(dot.at for dot in pair) for pair in pairs if len(pair) > 1),
            shares=in_shares,
        )
    )


def _pair_of_dots(comparison: Ladder, change: Change, name: str, *, in_shares: bool) -> tuple[Dot, ...]:
    """Place a kernel before and after."""
    timing, total = change.timing, comparison.total
    longest = max(total.base.median_ns or 0.0, total.head.median_ns or 0.0) or 1.0
    sides = (("before", change.base, timing.base), ("after", change.head, timing.head))
    return tuple(
        dot_of(
            analysis,
            at,
            name,
            in_shares=in_shares,
            part=min((spread.median_ns or 0.0) / longest, 1.0),
            is_faint=side == "before",
            facts={
                "Side": side,
                "Limiter": limiter_words(analysis),
                "Time": fmt.duration(analysis.gpu_time_ns),
                "Change": change_sentence(change, comparison).replace(" -> ", " \u2192 "),
            },
        )
        for side, analysis, spread in sides
        if analysis and (at := standing(analysis)) and (at.share or not in_shares)
    )


@unchecked
def sides_spec(ladder: Ladder) -> Spec | None:
    """Draw the time of the longest kernels on each side; what is not compared is left out, and named."""
    known = ((kernel, [*_compared_times(kernel)]) for kernel in ladder.kernels)
    shown = [kernel for kernel, times in known if times][:MAX_LINES]
    rows = [row | {"place": place} for place, kernel in enumerate(shown) for row in _over_sides(ladder, kernel)]
    if not rows:
        return None
    labels = list(ladder.labels)
    low, high = (end([row["time"] for row in rows]) for end in (min, max))
    is_log = high > 10 * low
    scale = alt.Scale(type="log" if is_log else "linear", zero=not is_log, nice=is_log)
    marked = ticks((low / 10, high * 10)) if is_log else alt.Undefined
    axis = alt.Axis(
        title=f"GPU time{', logarithmic' if is_log else ''}",
        labelExpr=time_label(high),
        tickCount=5,
        values=marked,
    )
    at = {
        "x": alt.X(
            "side:N", sort=labels, axis=alt.Axis(title=None, labelAngle=-35 if len(labels) > 4 else 0, labelLimit=130)
        ),
        "y": alt.Y("time:Q", scale=scale, axis=axis),
    }
    tips = [alt.Tooltip(f"{name}:N", title=title) for name, title in _TIPS.items()]
    lines = rowed(rows).mark_line(style="path", aria=False)
    points = rowed(rows).mark_point(filled=True, size=90, opacity=1)
    ends = [
        rowed(named).mark_text(style="label", align="right", dx=-10, dy=dy).encode(**at, text="kernel:N")
        for dy, place in ((-12, 0), (14, 1))
        if (named := [row for row in rows if row["last"] and row["place"] % 2 == place])
    ]
    layers = [
        lines.encode(**at, detail=alt.Detail("kernel:N")),
        points.encode(
            **at,
            **verdict_channels({row["bound"] for row in rows}, columns=None),
            tooltip=tips,
        ),
        *(ends if len(shown) > 1 else []),
    ]
    left = len(ladder.kernels) - len(shown)
    apart = [rung.label for rung in ladder.rungs if rung.apart]
    notes = [f"Not drawn, as not compared: {', '.join(apart)}."] if apart else []
    notes += [f"{fmt.count(left, 'kernel')} that take less time are not drawn."] if left else []
    return finished(
        alt.layer(*layers), f"Time over the versions of {fmt.cut_middle(ladder.program, 60)}", notes, height=300
    )


_TIPS = {"kernel": "Kernel", "side": "Version", "words": "Time", "limiter": "Limited by"}


def _over_sides(ladder: Ladder, kernel: Ladder) -> Iterator[dict[str, Any]]:
    times = dict(_compared_times(kernel))
    name = fmt.cut_middle("".join(one.text for one in spans(kernel_title(kernel, kernel_names(ladder)))), NAME_WIDTH)
    for at, time_ns in times.items():
        rung = kernel.rungs[at]
        if rung.analysis:
            yield {
                "kernel": name,
                "side": ladder.labels[at],
                "time": time_ns,
                "words": fmt.duration(time_ns),
                "bound": rung.analysis.verdict.shown_class,
                "limiter": limiter(rung.analysis),
                "last": at == max(times),
            }


def _compared_times(kernel: Ladder) -> Iterator[tuple[int, float]]:
    """Yield the place and the time of the sides of a kernel that did the same work on the same GPU."""
    for at, rung in enumerate(kernel.rungs):
        if (time_ns := kernel.time_of(rung).median_ns) and not rung.apart:
            yield at, time_ns
