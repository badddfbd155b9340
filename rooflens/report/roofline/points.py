"""The layers of points: launches by share of time and verdict, what belongs to the picked one, and their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rooflens.report.plane import expressions as text
from rooflens.report.plane.axes import DOTS, axes
from rooflens.report.plane.later import alt
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import (
    BAR_NAME_PX,
    BAR_PX,
    FAINT_DOT,
    PAGE,
    QUIET,
    Drawing,
    Style,
    at_spot,
    binding_bars,
    either,
    layered,
    leads,
    of_kernels,
    placed,
    table,
    written,
)
from rooflens.report.plane.viewport import NUMBERED_PX2
from rooflens.report.roofline.course import course_layers
from rooflens.report.roofline.ghost import ghost_layers
from rooflens.report.roofline.layers import AT_LEVEL
from rooflens.report.roofline.layout import Layout
from rooflens.report.roofline.loops import loop_layers
from rooflens.report.roofline.selection import BAR_ROOM_PX, RING_PX, USUAL
from rooflens.report.roofline.versions import FAMILY

FEW = 4
"""The levels of all launches of an isolated kernel are joined up to so many; more lines would hide each other."""

ARROW_PX = 18
"""Size of the arrows at the edge that stand for launches beyond the axes."""

AT_NEAREST = "level === 'all' || level === 'own' ? datum.near : datum.level === level"
MINE = "kernel !== '' && datum.g === kernel"
JOINED = f"datum.k === picked || {MINE} && datum.peers <= {FEW}"
PICKED = f"(picked !== '' ? datum.k === picked : {MINE} && datum.peers === 1)"
SEEN = f"(kernel === '' || datum.g === kernel || isValid({FAMILY}) && families[datum.g] === {FAMILY})"
"""Expression of what keeps its words while a kernel is isolated: its own launches, and those of its other versions."""

VERSION_FAINT = 0.55
"""Opacity of the other versions of the isolated kernel."""

_LIT = f"kernel === '' || datum.g === kernel ? 1 : {SEEN} ? {VERSION_FAINT} : {FAINT_DOT}"
"""Expression of the opacity of what belongs to a launch: faint where another kernel is isolated."""

ESTIMATED_DASH = [3, 2]

KERNEL_FIELDS = (
    "name",
    "bound",
    "time",
    "timeText",
    "verdict",
    "limiter",
    "sure",
    "peers",
    "flags",
    "hollow",
    "estimated",
    "numbered",
    "report",
)

_DOT: Mapping[str, Any] = {"filled": True, "strokeWidth": 1.5, "cursor": "pointer", "ariaRoleDescription": "kernel"}


def points_layer(layout: Layout) -> alt.LayerChart:
    """Draw the launches, with the levels, the gap, the path through its run and the ring of the picked one."""
    roofs = layout.course_roofs
    course = [] if roofs is None else [_over("course", [*course_layers(PICKED, roofs)])]
    area = _area_px2(layout)
    dots = _dots(layout).properties(name=DOTS)
    ring = alt.Chart().transform_filter(f"({AT_NEAREST}) && {PICKED}")
    around = alt.ExprRef(f"pow(2 * {_RADIUS} + 6, 2)")
    ring = ring.mark_point(style="ring", size=around, **QUIET).encode(**PAGE.at)
    asked = "loop === ''" if layout.has_loops else "true"
    ghost = ghost_layers(f"({AT_NEAREST}) && {PICKED}", alt.ExprRef(area), asked)
    loops = [_over("loops", [*loop_layers(PICKED)])] if layout.has_loops else []
    layers: list[Drawing] = [
        *_gap_layers(),
        *_bar_layers(),
        *course,
        ring,
        _over("ghosts", [*ghost]),
        dots,
        *loops,
        *_level_names(layout),
    ]
    if layout.has_beyond:
        layers.append(_beyond_layer())
    return _over("points", layers, area=area)


def _beyond_layer() -> alt.Chart:
    """Point from the edge to the launches that the axes have no room for."""
    left, right, below = "datum.x < base[0]", "datum.x > base[1]", "datum.y < base[2]"
    far = alt.Chart().transform_filter(f"({AT_LEVEL}) && ({left} || {right} || {below})")
    far = far.transform_calculate(
        words=f"{left} ? '\u2190' : {right} ? '\u2192' : '\u2193'",
        edgeX="clamp(datum.x, base[0], base[1])",
        edgeY="max(datum.y, base[2])",
    )
    side = f"{left} ? 'left' : {right} ? 'right' : 'center'"
    look: dict[str, Any] = {
        "align": alt.ExprRef(side),
        "baseline": alt.ExprRef(f"{below} ? 'bottom' : 'middle'"),
        "cursor": "pointer",
        "fontSize": ARROW_PX,
    }
    drawn = far.mark_text(style="label", ariaRoleDescription="kernel", **look, **text.POINT)
    return drawn.encode(x=alt.X("edgeX:Q"), y=alt.Y("edgeY:Q"), text=alt.Text("words:N"))


def _over(rows: str, layers: Sequence[Drawing], **worked_out: str) -> alt.LayerChart:
    """Draw layers over the launches that no filter hides, each with what is known of its launch, or follows from it."""
    steps = alt.Chart().transform_filter("!hidden[datum.k]").transform_lookup("k", of_kernels(KERNEL_FIELDS))
    if worked_out:
        steps = steps.transform_calculate(**worked_out)
    return layered(layers, data=alt.NamedData(rows), transform=steps.transform)


def _dots(layout: Layout) -> alt.Chart:
    """Draw points: area by share of time, colour and shape by verdict, faint where another kernel is isolated."""
    dots = alt.Chart().transform_filter(AT_LEVEL)
    dots = dots.mark_point(clip=True, opacity=alt.ExprRef(_LIT), **text.POINT, **_DOT)
    return dots.encode(
        **axes(layout.units),
        **verdict_channels(layout.bounds),
        size=alt.Size("area:Q", legend=None, scale=None),
        fillOpacity=alt.FillOpacityValue(0.72),
        strokeDash=alt.StrokeDashValue(**either("datum.estimated", ESTIMATED_DASH, [1, 0])),
    )


def _area_px2(layout: Layout) -> str:
    """Write the expression for the area of a point, as `radius_px` works it out.

    It grows with the share of time; the smallest is large enough to click, and what holds a number for that.
    """
    smallest, largest = layout.dot_areas_px2
    area = f"{smallest:g} + {largest - smallest:g} * (datum.time || 0) / longest"
    return f"max({area}, datum.numbered ? {NUMBERED_PX2} : 0)"


_RADIUS = "sqrt(datum.area) / 2"
"""Expression for half the width of a point."""


def _gap_layers() -> list[alt.Chart]:
    """Join the levels of the picked launch, and draw its gap to the roof."""
    joined = alt.Chart().transform_filter(JOINED)
    gap = alt.Chart().transform_filter(f"({AT_NEAREST}) && {PICKED} && datum.gap")
    tick: dict[str, Any] = {"orient": "horizontal", "size": 10, "thickness": 1.25}
    return [
        joined.mark_line(style="gap", strokeDash=[1, 3], **QUIET).encode(
            **PAGE.at, order=alt.Order("x:Q"), detail=alt.Detail("k:N")
        ),
        joined.transform_filter(f"!({AT_LEVEL})")
        .mark_point(style="ring", size=(2 * RING_PX) ** 2, **QUIET)
        .encode(**PAGE.at),
        gap.mark_rule(style="gap", **QUIET).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), y2=alt.Y2("limit")),
        gap.transform_filter("!datum.binds")
        .mark_tick(style="gap", **tick, **QUIET)
        .encode(x=alt.X("x:Q"), y=alt.Y("limit:Q")),
    ]


def _bar_layers() -> list[alt.Chart]:
    """Draw a short bar where what binds a point before its roof would be full, and name that of the picked one."""
    bars = alt.Chart().transform_filter("datum.binds")
    named = bars.transform_filter(f"({AT_NEAREST}) && {PICKED}")
    named = named.transform_calculate(words="datum.binds", y="datum.limit")
    right = f"log(x1 / datum.x) / LN10 / spanX * w > {BAR_ROOM_PX}"
    beside_px = BAR_PX / 2 + BAR_NAME_PX
    look: Style = {
        "align": alt.ExprRef(f"{right} ? 'left' : 'right'"),
        "dx": alt.ExprRef(f"{right} ? {beside_px} : {-beside_px}"),
    }
    return [
        binding_bars(bars.transform_filter(AT_LEVEL), opacity=alt.ExprRef(_LIT)),
        *written(named, "note", baseline="middle", **look),
    ]


def _level_names(layout: Layout) -> list[alt.Chart]:
    """Name the levels of the picked launch along its line; a narrow plane has no room for it."""
    # With all levels shown, a few launches have names or letters at every point already.
    crowd = "true" if layout.is_crowded else "level !== 'all'"
    other = "!(level === 'own' ? datum.near : datum.level === level)"
    names = alt.Chart().transform_filter(f"w >= 480 && {crowd} && {PICKED} && {other}")
    apart = alt.ExprRef(f"(datum.dy || {USUAL.dy}) + (datum.push || 0) * ({_RADIUS} - 4)")
    return written(names.transform_calculate(words=text.LEVEL), "note", baseline="middle", dy=apart)


def label_layers(layout: Layout) -> list[alt.Chart]:
    """Write names at points, ridges at corners, and letters of levels where they differ from point to point."""
    strong = _labels().transform_filter("datum.s === 'name'")
    # The name of a chosen loop stands where ridges have theirs.
    free = ["datum.s === 'ridge'", *(["loop === ''"] if layout.has_loops else [])]
    ridges = " && ".join(free)
    notes = _labels().transform_filter(f"{ridges} || datum.s === 'mark'")
    return [leads(_labels()), *written(notes, "note", **at_spot()), *written(strong, "label", **at_spot())]


def number_layers() -> list[alt.Chart]:
    """Write the numbers of the ranking inside their points; dark on any colour, as ink on a hollow one."""
    numbers = _labels().transform_filter("datum.s === 'rank'")
    numbers = numbers.transform_lookup("k", of_kernels(("hollow",)))
    look: Style = {"baseline": "middle", "align": "center", **QUIET}
    return [
        numbers.transform_filter(test).mark_text(style=style, **look).encode(**PAGE.at, text=alt.Text("words:N"))
        for test, style in (("!datum.hollow", "number"), ("datum.hollow", "strong"))
    ]


def _labels() -> alt.Chart:
    """Choose the text of the level and the size that are shown; what belongs to a hidden launch goes with it."""
    here = (
        table("labels")
        .transform_filter("datum.level === level")
        .transform_filter(f"!datum.k || !hidden[datum.k] && {SEEN}")
    )
    ranked = placed(here.transform_filter("datum.s !== 'rank' || !ranks || ranks[datum.k]"))
    return ranked.transform_calculate(words="datum.s === 'rank' && ranks ? ranks[datum.k] : datum.words")
