"""The axes of a plane: a grid of decades, labels at 2 and 5 where there is room, SI prefixes, both titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rooflens.report.plane import expressions as text
from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import PAGE, Param, Pen, Style, expressions, values
from rooflens.report.plane.plane import Domain
from rooflens.report.plane.viewport import SLOT, decades

LABELS_APART_PX = 6

ACROSS_PX, WIDE_PX, UP_PX = 100, 160, 64
"""Pixels of a decade from which 2 and 5 are labelled too: across, across where labels are long, and up."""

_TURN = "-atan2(h / spanY, w / spanX) * 57.2958"
"""Expression of the degrees by which the names of slopes are turned."""

DOTS = "dots"
"""Name of the layer that a plane is zoomed by."""

_ZOOM: Param = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "on": "[pointerdown[!event.shiftKey], window:pointerup] > window:pointermove!",
        "translate": "[pointerdown[!event.shiftKey], window:pointerup] > window:pointermove!",
        "zoom": "wheel![event.ctrlKey]",
    },
    "bind": "scales",
    "views": [DOTS],
}
"""A drag pans, the wheel zooms while ctrl is held, a double click resets."""

_BOX: Param = {
    "name": "box",
    "select": {
        "type": "interval",
        "on": "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
        "translate": False,
        "zoom": False,
        "clear": "window:pointerup",
    },
    "views": [DOTS],
}
"""A drag with shift held draws a box, into which the page then zooms."""


def seen(ranged: str) -> list[Param]:
    """Declare the visible part of a plane, all of it or the zoomed part, and the slope of its roofs.

    Args:
        ranged: Expression of the level whose range is seen: the specification declares `ranges`, by level lowest and
            highest x, lowest and highest y.
    """
    names = enumerate(("x0", "x1", "y0", "y1"))
    ends = {name: f"zoom.{name[0]} ? zoom.{name[0]}[{name[1]}] : base[{i}]" for i, name in names}
    spans = {"spanX": "log(x1 / x0) / LN10", "spanY": "log(y1 / y0) / LN10"}
    return [*expressions(ranged=ranged, base="ranges[ranged]", slot=SLOT, **ends, **spans, turn=_TURN), _ZOOM, _BOX]


def still(x_domain: Domain, y_domain: Domain) -> list[Param]:
    """Declare the parameters of axes that cannot be zoomed."""
    ends = [*x_domain, *y_domain]
    spans = {"spanX": decades(x_domain), "spanY": decades(y_domain)}
    named = dict(zip(("x0", "x1", "y0", "y1"), ends, strict=True))
    return [*values(base=ends, **named, **spans), *expressions(slot=SLOT, turn=_TURN)]


LIVE = [{"expr": f"base[{i}]"} for i in range(4)]
"""Lowest and highest x, lowest and highest y, as a page declares them: `seen` or `still`."""


def axes(
    units: Sequence[str],
    *,
    in_shares: bool = False,
    pen: Pen = PAGE,
    ends: Sequence[Any] = LIVE,
    looks: tuple[Style, Style] = ({}, {}),
) -> Mapping[str, alt.X | alt.Y]:
    """Encode intensity and performance with their axes; one layer of a plane says it for all.

    Args:
        units: What the work of the plane is counted in.
        in_shares: Heights are shares of each dot's own roof.
        pen: How the plane is drawn.
        ends: Lowest and highest x, lowest and highest y.
        looks: More of the axis across, and of that upwards.
    """
    (span_x, span_y), (width, height) = pen.spans, pen.sizes
    across_px, wide_px, room_y = (f"{px * pen.scale:g}" for px in (ACROSS_PX, WIDE_PX, UP_PX))
    room_x = f"(datum.value >= 0.01 && datum.value < 1000 ? {across_px} : {wide_px})"
    across: dict[str, Any] = {
        "tickCount": text.TICKS,
        "gridOpacity": text.grid_opacity(span_x),
        "labelExpr": text.tick_label(text.PLAIN, span_x, f"{width} / {span_x}", room_x),
        "labelSeparation": LABELS_APART_PX,
        "labelFlush": False,
        "labelBound": True,
        "title": f"Arithmetic intensity ({' or '.join(units)}/B)",
        "titlePadding": 12,
        **looks[0],
    }
    up: dict[str, Any] = {
        "tickCount": text.TICKS,
        "gridOpacity": text.grid_opacity(span_y),
        "labelExpr": text.tick_label(text.SHARE if in_shares else text.WORK, span_y, f"{height} / {span_y}", room_y),
        "title": "Share of its own roof"
        if in_shares
        else f"Performance ({' or '.join(f'{unit}/s' for unit in units)})",
        "titlePadding": 8,
        **looks[1],
    }
    ends = list(ends)
    return {
        "x": alt.X(
            f"{pen.fields[0]}:Q", axis=alt.Axis(**across), scale=alt.Scale(type="log", domain=ends[:2], nice=False)
        ),
        "y": alt.Y(f"{pen.fields[1]}:Q", axis=alt.Axis(**up), scale=alt.Scale(type="log", domain=ends[2:], nice=False)),
    }
