"""Words of the roofline that Vega itself writes, from the numbers of a row: tick labels, tooltips, descriptions."""

from __future__ import annotations


def si_work(unit: str) -> str:
    """Label a tick of performance, with its unit where there is room."""
    return (
        f"datum.value < 1000 ? format(datum.value, '~g') + ' {unit}/s' : "
        "slice(format(datum.value, '~s'), 0, -1) + ' ' + slice(format(datum.value, '~s'), -1) + "
        f"(w < 480 ? '' : '{unit}/s')"
    )


PLAIN = (
    "datum.value < 1 ? format(datum.value, '~g') : "
    "datum.value < 1e6 ? format(datum.value, ',') : format(datum.value, '~s')"
)
"""A tick of intensity."""

_LEADING = "datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9))"


def tick_label(text: str, span: str) -> str:
    """Label every tick of many decades and of a small part of one; 1, 2 and 5 of each between.

    Args:
        text: Expression of the label.
        span: Expression of the decades that the axis shows.
    """
    leading = f"round({_LEADING})"
    return f"{span} > 2 || {span} < 0.7 || {leading} === 1 || {leading} === 2 || {leading} === 5 ? ({text}) : ''"


def tick_count(span: str) -> str:
    """Ask for decades where more than two are seen, and for the ticks between them otherwise."""
    # A count a little below the decades, so that rounding asks neither for every second one nor for those between.
    return f"{span} > 2 ? {span} * 0.999 : 10"


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
"""The chart declares `levelNames`: device memory is called by the kind that the GPU has."""
_BANDWIDTH = f"(isValid(datum.share) ? {percent('datum.share')} + ' of its bandwidth' : '')"
_RATE = f"(datum.rate ? ' at ' + {si('datum.rate', 'B/s')} + (isValid(datum.share) ? ', ' : '') : '')"
_TRAFFIC = f"datum.bytes ? {si('datum.bytes', 'B')} + {_RATE} + {_BANDWIDTH} : {_BANDWIDTH}"
_ROOF = (
    f"datum.roof ? {si('datum.roof', f'{_UNIT}/s')} + ', ' + {percent('datum.y / datum.roof')} + ' reached' "
    ": 'not in the report'"
)
_HEAD = "title: texts[datum.name], 'Verdict': texts[datum.verdict]"
_ABOUT = "'Busiest unit': datum.wall, 'Time': datum.timeText, 'Confidence': datum.sure, 'Flags': texts[datum.flags]"
"""Rows of a tooltip that a launch has wherever it is drawn; vega-tooltip leaves out those without a value."""

POINT_TOOLTIP = (
    f"{{{_HEAD}, 'At level': {LEVEL} + ', ' + {_INTENSITY}, 'Reached': {si('datum.y', f'{_UNIT}/s')}, "
    f"'Its roof': {_ROOF}, 'Traffic': {_TRAFFIC}, {_ABOUT}}}"
)
STRIP_TOOLTIP = f"{{{_HEAD}, 'At level': {LEVEL}, 'Traffic': {_TRAFFIC}, {_ABOUT}}}"

POINT_DESCRIPTION = (
    f"texts[datum.name] + ', ' + texts[datum.verdict] + ', ' + {LEVEL} + ' ' + {_INTENSITY} + ', ' + "
    f"{si('datum.y', f'{_UNIT}/s')} + ', ' + datum.timeText"
)
STRIP_DESCRIPTION = (
    f"texts[datum.name] + ', ' + texts[datum.verdict] + ', ' + {LEVEL} + ' ' + {_BANDWIDTH} + ', ' + datum.timeText"
)
