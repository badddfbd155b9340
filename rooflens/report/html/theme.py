"""How a verdict and the page look: one table of colour, shape and pattern for HTML and charts, light and dark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from rooflens.model.verdict_classes import SHOWN_CLASSES, bound_of, is_open

FONT = '-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif'


class ClassLook(Struct, frozen=True):
    """How one verdict class is drawn; shape carries the same meaning as colour.

    Attributes:
        light: Colour on white (Okabe-Ito).
        dark: The same hue, lighter, for the dark theme.
        shape: Vega's symbol name.
        path: The same shape as an SVG path in a box of 12 by 12.
    """

    light: str
    dark: str
    shape: str
    path: str


_LOOKS = {
    "memory": ClassLook("#0072B2", "#56A8DE", "circle", "M6 1.5a4.5 4.5 0 1 0 .01 0z"),
    "compute": ClassLook("#D55E00", "#F28A4B", "square", "M2 2h8v8H2z"),
    "latency": ClassLook("#CC79A7", "#E3A3C6", "triangle-up", "M6 1.4 11 10.4H1z"),
    "overhead": ClassLook("#E69F00", "#F5C04E", "diamond", "M6 .8 11.2 6 6 11.2 .8 6z"),
    "balanced": ClassLook("#009E73", "#46C79F", "cross", "M4.3 1.2h3.4v3.1h3.1v3.4H7.7v3.1H4.3V7.7H1.2V4.3h3.1z"),
    "unknown": ClassLook("#8A8A8A", "#A6ABB1", "circle", "M6 1.5a4.5 4.5 0 1 0 .01 0z"),
    "communication": ClassLook("#009E73", "#46C79F", "triangle-down", "M6 10.6 1 1.6H11z"),
}
LOOKS: Mapping[str, ClassLook] = {
    **{shown: _LOOKS[bound_of(shown)] for shown in SHOWN_CLASSES},
    "communication": _LOOKS["communication"],
}
"""By verdict, and by regime of a forecast; no page shows both `balanced` and `communication`. An open class looks like
the sure one, but is hollow or hatched (`is_hollow`)."""


def is_hollow(shown: str) -> bool:
    """Return whether the mark of a class is hollow: its limiter is unknown or uncertain."""
    return is_open(shown) or shown == "unknown"


def css_class(shown: str) -> str:
    """Return the classes by which style sheets know a class of verdicts: `latency`, `latency open`."""
    return f"{bound_of(shown)} open" if is_open(shown) else shown


class Inks(Struct, frozen=True):
    """The neutral colours of one theme."""

    page: str
    surface: str
    ink: str
    muted: str
    line: str
    grid: str


LIGHT = Inks(page="#ffffff", surface="#f6f7f9", ink="#15191e", muted="#59626d", line="#dde1e6", grid="#e8ebee")
DARK = Inks(page="#101419", surface="#171c22", ink="#e9edf1", muted="#a0aab4", line="#2c343d", grid="#252c34")


def css_variables(inks: Inks, *, dark: bool) -> str:
    """Write one theme as CSS custom properties, so that HTML and charts share every colour."""
    neutral = {name: getattr(inks, name) for name in Inks.__struct_fields__}
    bounds = {bound: look.dark if dark else look.light for bound, look in _LOOKS.items()}
    return "".join(f"--{name}:{colour};" for name, colour in (neutral | bounds).items())


def colours(shown: Collection[str], *, dark: bool) -> list[str]:
    """List the colour of each class."""
    return [LOOKS[one].dark if dark else LOOKS[one].light for one in shown]


def fills(shown: Collection[str], *, dark: bool) -> list[str]:
    """List what fills the sign of each class: nothing where it is hollow."""
    return ["transparent" if is_hollow(one) else ink for one, ink in zip(shown, colours(shown, dark=dark), strict=True)]


def vega_config(inks: Inks, *, dark: bool) -> dict[str, Any]:
    """Make the Vega-Lite configuration of one theme; chart specs themselves hold no colour."""
    return {
        "background": inks.page,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "mark": {"color": inks.ink},
        "range": {
            "category": colours(LOOKS, dark=dark),
            "ordinal": fills(LOOKS, dark=dark),
        },
        "axis": {
            "domain": False,
            "grid": True,
            "gridColor": inks.grid,
            "labelColor": inks.muted,
            "labelFontSize": 12,
            "labelPadding": 8,
            "ticks": False,
            "titleColor": inks.muted,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {"labelColor": inks.ink, "labelFontSize": 12, "symbolSize": 90, "columnPadding": 16},
        "title": {
            "anchor": "start",
            "color": inks.ink,
            "fontSize": 14,
            "fontWeight": 600,
            "frame": "group",
            "offset": 12,
            "subtitleColor": inks.muted,
            "subtitleFontSize": 12,
            "subtitlePadding": 6,
        },
        "style": {
            "roof": {"color": inks.ink, "strokeWidth": 1.5, "opacity": 1},
            "twin": {"color": inks.ink, "strokeWidth": 1.25, "opacity": 0.5},
            "path": {"color": inks.ink, "strokeWidth": 1.75, "opacity": 0.7},
            "band": {"color": inks.ink, "opacity": 0.07},
            "lead": {"color": inks.muted, "strokeWidth": 1, "opacity": 1},
            "shade": {"color": inks.ink, "opacity": 0.035},
            "ridge": {"color": inks.ink, "filled": True, "opacity": 1},
            "label": {"color": inks.ink, "fontSize": 12},
            "number": {"color": LIGHT.ink, "fontSize": 13, "fontWeight": 600},
            "strong": {"color": inks.ink, "fontSize": 13, "fontWeight": 600},
            "note": {"color": inks.muted, "fontSize": 12},
            "halo": {"color": inks.page, "stroke": inks.page, "strokeWidth": 5, "strokeJoin": "round", "fontSize": 12},
            "ghost": {"stroke": inks.ink, "strokeWidth": 1.5, "strokeDash": [4, 3], "opacity": 1},
            "gap": {"color": inks.ink, "strokeWidth": 1.25, "opacity": 1},
            "ring": {"color": inks.ink, "strokeWidth": 1.5, "filled": False, "opacity": 1},
        },
    }
