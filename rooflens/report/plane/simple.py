"""The plain roofline plane of comparisons, forecasts and sweeps: roofs, dots and paths, in plain Altair.

Words stand where Altair puts them: only the dots that say so are named. The report's own roofline places its words in
`rooflens.report.roofline`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import floor, log10
from typing import Any, Literal

import altair as alt
from msgspec import Struct

from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import Spec, either, unchecked, written_out
from rooflens.report.plane.plane import Domain, aired

HEIGHT = 440
"""Pixels; the page sets the width."""

LEAST_DECADES = 3.0
FEW_DECADES = 2.5
NEAR_DECADES, NEAR_AIR = 0.6, 10**0.2
"""The shortest axis that holds the dots alone, and the factor of air at its ends."""

LARGEST_PX2, SMALLEST_PX2 = 500.0, 60.0
HERE_PX2 = 520
_BESIDE_PX, _HIGH_PX, _LOW_PX, _LINE_PX = 12, -8, 16, 16
"""From a dot to its name across, up and down, and the height of a line of names."""
_USUAL_PX, _UNDER_PX, _FREE_PX, _LETTER_PX = 600, 6, 14, 7
"""About the width of a plane, from a slope to its name, the air that a name has to have, and the width of a letter."""
_STEPS, _STEP_LETTERS = 20, 2
"""Parts of a slope and of a path, and the letters of a label for which one place is taken."""

_PLAIN = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"

Spot = tuple[float, float]
"""Operations per byte, and operations per second."""


class Line(Struct, frozen=True):
    """One roof: bytes per second of a slope, operations per second of a flat one."""

    name: str
    peak: float


class Dot(Struct, frozen=True):
    """One mark.

    Attributes:
        x: Operations per byte.
        y: Operations per second; a share where the plane is one of shares.
        bound: Verdict or regime, which gives colour and shape.
        name: Title of its tooltip.
        label: What stands beside it; empty for nothing.
        part: Its part of the largest area, 0 to 1.
        is_filled: Hollow dots are what was.
        is_below: Its label stands below it.
        keys: Launches of the page that it stands for: a click isolates the first.
        group: The kernel of that launch.
        facts: Further lines of its tooltip.
    """

    x: float
    y: float
    bound: str
    name: str
    label: str = ""
    part: float = 0.3
    is_filled: bool = True
    is_below: bool = False
    keys: tuple[str, ...] = ()
    group: str = ""
    facts: Mapping[str, str] = {}


class Drawn(Struct, frozen=True):
    """A plane.

    Attributes:
        slopes: Roofs of memory levels.
        flats: Roofs of arithmetic.
        paths: Places that a line joins, in order.
        links: Places that a dashed line joins: what was measured with what was predicted.
        rings: Places that a ring of `ring_px2` marks.
        chosen: What a reader chooses by (parameter `at`), with the place that a ring then marks.
        shares: Heights are shares of each dot's own roof.
        also: Places that the axes hold as well, so that planes can be compared by eye.
        is_near: The axes hold the dots, and no more of the roofs than is over them.
    """

    title: str
    dots: tuple[Dot, ...]
    subtitle: tuple[str, ...] = ()
    slopes: tuple[Line, ...] = ()
    flats: tuple[Line, ...] = ()
    paths: tuple[tuple[Spot, ...], ...] = ()
    links: tuple[tuple[Spot, ...], ...] = ()
    rings: tuple[Spot, ...] = ()
    ring_px2: int = 340
    chosen: Mapping[str, Spot] = {}
    shares: bool = False
    also: tuple[Spot, ...] = ()
    is_near: bool = False
    unit: str = "FLOP"

    @property
    def spots(self) -> list[Spot]:
        """All places that the axes hold."""
        return [*((dot.x, dot.y) for dot in self.dots), *self.rings, *self.chosen.values(), *self.also]

    @property
    def x_domain(self) -> Domain:
        """Operations per byte from end to end: all dots and ridges, with air."""
        if self.is_near:
            return _near([x for x, _ in self.spots])
        ridges = [flat.peak / slope.peak for flat in self.flats for slope in self.slopes]
        return aired([*(x for x, _ in self.spots), *ridges], LEAST_DECADES)

    @property
    def y_domain(self) -> Domain:
        """Operations per second from end to end."""
        if self.shares:
            return 0.0, max(1.0, *(dot.y for dot in self.dots))
        if self.is_near:
            return _near([y for _, y in self.spots])
        return aired([*(y for _, y in self.spots), *(flat.peak for flat in self.flats)], LEAST_DECADES)


@unchecked
def plane_spec(plane: Drawn) -> Spec:
    """Specify a plane for Vega-Lite."""
    layers = [*_roofs(plane), *_paths(plane), *_rings(plane), *_dots(plane)]
    params = [alt.param(name="picked", value="")] if any(dot.keys for dot in plane.dots) else []
    params += [alt.param(name="at", value=list(plane.chosen)[-1])] if plane.chosen else []
    chart = alt.layer(*layers).add_params(*params) if params else alt.layer(*layers)
    return finished(chart, plane.title, plane.subtitle, height=HEIGHT, name="plane")


def finished(chart: Any, title: str, subtitle: Sequence[str] = (), **properties: Any) -> Spec:
    """Give a chart its title and sizes, and write it as its specification."""
    titled = alt.TitleParams(title, subtitle=list(subtitle), limit=alt.ExprRef("width"))
    return written_out(chart.properties(title=titled, **({"width": 640} | properties)))


def rowed(rows: Iterable[Mapping[str, Any]]) -> alt.Chart:
    """Begin a layer with its rows."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def ticks(domain: Domain) -> list[float]:
    """List where an axis has its lines: the powers of ten, or 1, 2 and 5 of each where it is short."""
    powers = range(floor(log10(domain[0])), floor(log10(domain[1])) + 1)
    steps = (1, 2, 5) if log10(domain[1] / domain[0]) < FEW_DECADES else (1,)
    return [step * 10.0**power for power in powers for step in steps if domain[0] <= step * 10.0**power <= domain[1]]


def time_label(longest_ns: float | None = None) -> str:
    """Write the expression that labels an axis of nanoseconds, in the unit of its longest time or each in its own."""
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "\u00b5s"), (1.0, "ns"))
    if longest_ns is None:
        cases = (f"datum.value >= {factor:g} ? {_in_unit(factor, unit)}" for factor, unit in units[:-1])
        return f"{' : '.join(cases)} : {_in_unit(*units[-1])}"
    return _in_unit(*next((one for one in units if longest_ns >= one[0]), units[-1]))


def _in_unit(factor: float, unit: str) -> str:
    return f"format(datum.value / {factor:g}, '~g') + ' {unit}'"


def _near(values: Sequence[float]) -> Domain:
    low, high = min(values) / NEAR_AIR, max(values) * NEAR_AIR
    grown = max(1.0, 10**NEAR_DECADES / (high / low)) ** 0.5
    return low / grown, high * grown


def _scales(plane: Drawn) -> dict[str, Any]:
    across = alt.Axis(values=ticks(plane.x_domain), labelExpr=_PLAIN, title=f"Arithmetic intensity ({plane.unit}/B)")
    x = alt.X("x:Q", scale=alt.Scale(type="log", domain=list(plane.x_domain), nice=False), axis=across)
    if plane.shares:
        up = alt.Axis(format=".0%", title="Share of its own roof")
        return {"x": x, "y": alt.Y("y:Q", scale=alt.Scale(domain=list(plane.y_domain), nice=False), axis=up)}
    up = alt.Axis(values=ticks(plane.y_domain), format="~s", title=f"Performance ({plane.unit}/s)")
    return {"x": x, "y": alt.Y("y:Q", scale=alt.Scale(type="log", domain=list(plane.y_domain), nice=False), axis=up)}


def _roofs(plane: Drawn) -> list[alt.Chart]:
    """Draw slopes and flat roofs up to where they meet, each with its name at its end."""
    if plane.shares:
        line = [{"x": x, "y": 1.0, "roof": "its own roof"} for x in plane.x_domain]
        return _named(plane, line, [{"x": plane.x_domain[1], "y": 1.0, "name": "its own roof", "end": "right"}])
    low, high = plane.x_domain
    bottom, ceiling = plane.y_domain
    top, steepest = (max((one.peak for one in of), default=0.0) for of in (plane.flats, plane.slopes))
    rows: list[dict[str, Any]] = []
    names = []
    for slope in plane.slopes:
        begin = max(low, bottom / slope.peak)
        if begin * slope.peak > ceiling:
            continue
        end = min(high, top / slope.peak if top else high)
        rows += [{"x": x, "y": x * slope.peak, "roof": slope.name} for x in (begin, end)]
        if plane.is_near:
            x = _free_x(plane, slope, (begin, min(end, ceiling / slope.peak)))
            names.append({"x": x, "y": x * slope.peak, "name": slope.name, "end": "under"})
        else:
            names.append({"x": begin, "y": begin * slope.peak, "name": slope.name, "end": "left"})
    for flat in (flat for flat in plane.flats if flat.peak <= ceiling):
        begin = max(low, flat.peak / steepest if steepest else low)
        rows += [{"x": x, "y": flat.peak, "roof": flat.name} for x in (begin, high)]
        names.append({"x": high, "y": flat.peak, "name": flat.name, "end": "right"})
    return _named(plane, rows, names)


def _free_x(plane: Drawn, slope: Line, along: Domain) -> float:
    """Choose where a slope has its name below it: away from dots, their labels and the paths between them.

    Of places that are free the lowest is taken, else the one with most air.
    """
    taken = [_pixels(plane, (dot.x, dot.y)) for dot in plane.dots]
    middle = (plane.x_domain[0] * plane.x_domain[1]) ** 0.5
    for dot, (right, down) in zip(plane.dots, list(taken), strict=True):
        side = 1 if dot.x <= middle else -1
        steps = range(0, len(dot.label), _STEP_LETTERS)
        taken += [(right + side * (_BESIDE_PX + _LETTER_PX * step), down + _HIGH_PX) for step in steps]
    for path in plane.paths:
        for (x0, y0), (x1, y1) in pairwise([_pixels(plane, spot) for spot in path]):
            taken += [(x0 + (x1 - x0) * part / _STEPS, y0 + (y1 - y0) * part / _STEPS) for part in range(_STEPS + 1)]
    wide = _LETTER_PX * len(slope.name)

    def air_px(x: float) -> float:
        left, top = _pixels(plane, (x, x * slope.peak))
        left, top = left + _UNDER_PX, top + _UNDER_PX
        if left + wide > _USUAL_PX or top + _LINE_PX > HEIGHT:
            return -1.0
        return min(
            (max(left - right, right - left - wide, top - down, down - top - _LINE_PX) for right, down in taken),
            default=float(_USUAL_PX),
        )

    places = [along[0] * (along[1] / along[0]) ** (part / _STEPS) for part in range(1, _STEPS)]
    free = (x for x in places if air_px(x) >= _FREE_PX)
    return next(free, max(places, key=air_px))


def _pixels(plane: Drawn, spot: Spot) -> Spot:
    """Give the pixels of a place, from the upper left corner of a plane of its usual width."""
    (left, right), (low, high) = plane.x_domain, plane.y_domain
    x, y = spot
    return log10(x / left) / log10(right / left) * _USUAL_PX, (1 - log10(y / low) / log10(high / low)) * HEIGHT


def _named(plane: Drawn, rows: Iterable[dict[str, Any]], names: Sequence[dict[str, Any]]) -> list[alt.Chart]:
    scales = _scales(plane)
    lines = rowed(rows).mark_line(style="roof", clip=True, aria=False)
    layers = [lines.encode(**scales, detail=alt.Detail("roof:N"))]
    ends: tuple[tuple[str, Literal["left", "right"], Literal["bottom", "top"], int, int], ...] = (
        ("left", "left", "bottom", 24, 0),
        ("right", "right", "bottom", -4, -5),
        ("under", "left", "top", _UNDER_PX, _UNDER_PX),
    )
    for end, align, baseline, across, up in ends:
        own = [row for row in names if row["end"] == end]
        if own:
            mark = rowed(own).mark_text(style="note", align=align, baseline=baseline, dx=across, dy=up)
            layers.append(mark.encode(**scales, text=alt.Text("name:N")))
    return layers


def _paths(plane: Drawn) -> Iterator[alt.Chart]:
    """Join places by lines, those of a prediction by dashed ones."""
    for paths, look in ((plane.paths, {"style": "path"}), (plane.links, {"style": "gap", "strokeDash": [1, 3]})):
        rows = [
            {"x": x, "y": y, "path": place, "at": at}
            for place, path in enumerate(paths)
            for at, (x, y) in enumerate(path)
        ]
        if rows:
            line = rowed(rows).mark_line(clip=True, aria=False, **look)
            yield line.encode(**_scales(plane), detail=alt.Detail("path:N"), order=alt.Order("at:Q"))


def _rings(plane: Drawn) -> Iterator[alt.Chart]:
    """Mark places with rings, the reader's choice among them."""
    if plane.rings:
        rows = [{"x": x, "y": y} for x, y in plane.rings]
        yield (
            rowed(rows)
            .mark_point(style="ring", size=plane.ring_px2, strokeWidth=2, aria=False)
            .encode(**_scales(plane))
        )
    if plane.chosen:
        rows_at = [{"x": x, "y": y, "of": at} for at, (x, y) in plane.chosen.items()]
        mark = rowed(rows_at).transform_filter("datum.of === at").mark_point(style="ring", size=HERE_PX2, strokeWidth=3)
        yield mark.encode(**_scales(plane))


def _dots(plane: Drawn) -> list[alt.Chart]:
    rows = [
        {
            "x": dot.x,
            "y": dot.y,
            "bound": dot.bound,
            "name": dot.name,
            "label": dot.label,
            "area": SMALLEST_PX2 + (LARGEST_PX2 - SMALLEST_PX2) * dot.part,
            "filled": 1 if dot.is_filled else 0,
            "below": dot.is_below,
            **({"k": dot.keys[0], "g": dot.group, "ks": list(dot.keys)} if dot.keys else {}),
            **dot.facts,
        }
        for dot in sorted(plane.dots, key=lambda dot: -dot.part)
    ]
    tips = [alt.Tooltip("name:N", title="Name")]
    tips += [alt.Tooltip(f"{name}:N") for name in dict.fromkeys(name for dot in plane.dots for name in dot.facts)]
    marks = rowed(rows).mark_point(strokeWidth=2, opacity=1, clip=True, description=alt.ExprRef("datum.name"))
    drawn = marks.encode(
        **_scales(plane),
        **verdict_channels({dot.bound for dot in plane.dots}, wraps=False),
        size=alt.Size("area:Q", scale=None, legend=None),
        fillOpacity=alt.FillOpacityValue(**either("datum.filled === 1", 0.85, 0)),
        tooltip=tips,
        **(
            {"strokeWidth": alt.StrokeWidthValue(**either("indexof(datum.ks, picked) >= 0", 4, 2))}
            if any(dot.keys for dot in plane.dots)
            else {}
        ),
    )
    return [*_names(plane, rows, "halo"), drawn, *_names(plane, rows, "label")]


def _names(plane: Drawn, rows: Sequence[Mapping[str, Any]], style: str) -> Iterator[alt.Chart]:
    """Write names beside dots, towards the middle of the plane, and cut where the plane ends.

    Of two dots at nearly one height the smaller has its name below the line between them.
    """
    low, high = plane.x_domain
    beside = [row for row in rows if row["label"] and not row["below"]]
    lowered = _lowered(plane, beside)
    for is_left in (True, False):
        for is_low in (False, True):
            own = [
                row
                for place, row in enumerate(beside)
                if (row["x"] <= (low * high) ** 0.5) is is_left and (place in lowered) is is_low
            ]
            if own:
                room = "width - scale('plane_x', datum.x)" if is_left else "scale('plane_x', datum.x)"
                mark = rowed(own).mark_text(
                    style=style,
                    align="left" if is_left else "right",
                    dx=_BESIDE_PX if is_left else -_BESIDE_PX,
                    dy=_LOW_PX if is_low else _HIGH_PX,
                    limit=alt.ExprRef(f"{room} - {_BESIDE_PX}"),
                    clip=True,
                    aria=False,
                )
                yield mark.encode(**_scales(plane), text=alt.Text("label:N"))
    if below := [row for row in rows if row["label"] and row["below"]]:
        mark = rowed(below).mark_text(style=style, align="center", dy=20, clip=True, aria=False)
        yield mark.encode(**_scales(plane), text=alt.Text("label:N"))


def _lowered(plane: Drawn, rows: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the places of the rows whose names would stand at the height of an earlier one's."""
    bottom, top = plane.y_domain

    def height_px(y: float) -> float:
        part = (y - bottom) / (top - bottom) if plane.shares else log10(y / bottom) / log10(top / bottom)
        return part * HEIGHT

    lowered: set[int] = set()
    for place, row in enumerate(rows):
        near = [at for at in range(place) if abs(height_px(rows[at]["y"]) - height_px(row["y"])) < _LINE_PX]
        if near and not all(at in lowered for at in near):
            lowered.add(place)
    return lowered
