"""Words of the roofline that Vega itself writes, from the numbers of a row: tick labels, tooltips, descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORK = (
    "datum.value < 1000 ? format(datum.value, '~g') : "
    "slice(format(datum.value, '~s'), 0, -1) + ' ' + slice(format(datum.value, '~s'), -1)"
)
"""A tick of performance: `500 G`; the axis' title has the unit."""

PLAIN = (
    "datum.value < 1 ? format(datum.value, '~g') : "
    "datum.value < 1e6 ? format(datum.value, ',') : format(datum.value, '~s')"
)
"""A tick of intensity."""

SHARE = "format(datum.value, '.0~%')"
"""A tick of a share."""

TICKS = 10
"""Asks Vega for ticks 1 to 9 of this many decades, or for round ticks within a small part of a decade."""

FEW_DECADES = 1.0
"""Within fewer decades than this ticks stand so that all of them can be labelled."""

_LEADING = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))"


def tick_label(text: str, span: str, decade_px: str, room_px: str) -> str:
    """Label each decade, 2 and 5 of it where they have room, and every tick of a small part of one.

    Args:
        text: Expression of the label.
        span: Expression of the decades that the axis shows.
        decade_px: Expression of the pixels of a decade.
        room_px: Expression of the pixels of a decade that hold the labels at 2 and 5 too.
    """
    between = f"{decade_px} >= {room_px} && ({_LEADING} === 2 || {_LEADING} === 5)"
    return f"{span} < {FEW_DECADES} || {_LEADING} === 1 || {between} ? ({text}) : ''"


def grid_opacity(span: str) -> dict[str, object]:
    """Draw the lines of decades alone; within a small part of one, those of all ticks."""
    full = f"{span} < {FEW_DECADES} || {_LEADING} === 1"
    return {"condition": {"test": full, "value": 1}, "value": 0}


def si(value: str, unit: str) -> str:
    """Write the expression of a quantity with an SI prefix: `1.56 TB/s`."""
    return f"replace(format({value}, '.3s'), regexp('([a-zA-Z\u00b5]?)$'), ' $1{unit}')"


def percent(share: str) -> str:
    """Write the expression of a share in per cent."""
    return (
        f"({share} > 0 && {share} < 0.0005 ? '<0.1' : {share} >= 0.995 && {share} < 1 - 1e-11 ? '>99' : "
        f"format(100 * {share}, {share} < 0.0995 && {share} > 0 ? '.1f' : '.0f')) + ' %'"
    )


_UNIT = "' + (datum.u || 'FLOP') + '"
"""What a point counts, within a text of an expression: rows without the field count FLOPs."""
_INTENSITY = f"(datum.x < 1e5 ? format(datum.x, ',.3r') + ' {_UNIT}/B' : {si('datum.x', f'{_UNIT}/B')})"
LEVEL = "levelNames[datum.level]"
"""The chart declares `levelNames`: DRAM is called by the kind that the GPU has."""
_BANDWIDTH = f"(isValid(datum.share) ? {percent('datum.share')} + ' of its bandwidth' : '')"
_RATE = f"(datum.rate ? ' at ' + {si('datum.rate', 'B/s')} + (isValid(datum.share) ? ', ' : '') : '')"
_TRAFFIC = f"datum.bytes ? {si('datum.bytes', 'B')} + {_RATE} + {_BANDWIDTH} : {_BANDWIDTH}"
_ROOF = (
    f"datum.limit ? {si('datum.limit', f'{_UNIT}/s')} + (datum.binds ? ', of ' + datum.binds : '') + ', ' + "
    f"{percent('datum.y / datum.limit')} + ' reached' "
    ": 'not in the report'"
)
_HEAD = "title: texts[datum.name], 'Verdict': texts[datum.verdict]"
_ABOUT = (
    "'Busiest unit': datum.limiter, 'Time': datum.timeText, 'Report': datum.report, 'Confidence': datum.sure, "
    "'Flags': texts[datum.flags]"
)
"""Rows of a tooltip that a launch has wherever it is drawn; vega-tooltip leaves out those without a value."""

POINT_TOOLTIP = (
    f"{{{_HEAD}, 'At level': {LEVEL} + ', ' + {_INTENSITY}, 'Reached': {si('datum.y', f'{_UNIT}/s')}, "
    f"'Its roof': {_ROOF}, 'Traffic': {_TRAFFIC}, {_ABOUT}}}"
)
_TO = f"{percent('datum.least')} + ' to ' + {percent('datum.most')}"
_AMONG = f"(datum.most - datum.least > 0.005 ? ', ' + {_TO} + ' in its launches' : '')"
_MEAN = f"{percent('datum.share')} + (datum.rate ? ', ' + {si('datum.rate', 'B/s')} : '') + {_AMONG}"
_KERNEL_TIME = (
    f"{percent('datum.total')} + ' of GPU time' + "
    "(datum.launches > 1 ? ', ' + format(datum.launches, ',') + ' launches' : '')"
)
BAR = f"(datum.head || {LEVEL})"
"""A bar is that of a level, or of a unit with a name of its own."""
BAR_TOOLTIP = (
    f"{{title: texts[datum.name], 'Of its peak': {BAR} + ' ' + {_MEAN}, 'Time': {_KERNEL_TIME}, "
    "'Longest launch': texts[datum.verdict], 'Report': datum.report, 'FLOPs': datum.why}"
)

POINT_DESCRIPTION = (
    f"texts[datum.name] + ', ' + texts[datum.verdict] + ', ' + {LEVEL} + ' ' + {_INTENSITY} + ', ' + "
    f"{si('datum.y', f'{_UNIT}/s')} + ', ' + datum.timeText"
)
POINT: Mapping[str, Any] = {
    "tooltip": {"expr": POINT_TOOLTIP},
    "description": {"expr": POINT_DESCRIPTION},
}
"""What a mark of a launch says when it is pointed at, and to a screen reader."""

BAR_DESCRIPTION = f"texts[datum.name] + ', ' + {BAR} + ' ' + {_MEAN} + ', ' + {_KERNEL_TIME}"
