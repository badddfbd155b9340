"""A plane of predictions as the rows its chart draws, with every text placed in Python so that none overlaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import log10, sqrt
from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens import format as fmt
from rooflens.model.predict.forecast import of_roof
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.plane.geometry import segment
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.path import QUIET, PathPlane, named, specify
from rooflens.report.plane.placement import Canvas, Spot, Wish, place, spots_around, text_box
from rooflens.report.plane.roof_names import Drawing, Flat, Slope, name_flat, name_slope
from rooflens.report.plane.viewport import SIZES, Sheet, decades, point_box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflens.model.records import Bound
    from rooflens.report.forecast.plane import Dot, PredictPlane
    from rooflens.report.plane.geometry import Box
    from rooflens.report.plane.placement import Place
    from rooflens.report.plane.roof_names import Along
    from rooflens.report.plane.viewport import SizeClass

    Row = dict[str, Any]
    Found = tuple[str, Spot] | None


SMALLEST_PX2, LARGEST_PX2 = 70, 520

STEP_PX2 = 130

RING_PX2 = 340
"""Areas: dots of parts grow with their share of the lower bound, those of steps do not; the ring of a crossing."""

APART_PX = 5
"""Distance that a label keeps from the dots of others: it may not seem to be theirs."""

RIDGE_SPOTS = tuple(Spot(side * 6, -10 - 16 * line, side) for line in (0, 1, 2, 3) for side in (1, -1))

_TOOLTIP = "merge({title: datum.name}, datum.facts)"


@dataclass(slots=True)
class _Names:
    """Where each text stands in one class of sizes; None for those that find no place."""

    dots: list[Found]
    crossing: Found
    achieved: Found
    flats: list[Found]
    ridges: list[Found]
    slope: Along | None


def datasets(plane: PredictPlane) -> dict[str, list[Row]]:
    """Make all rows of the chart."""
    names = [_names(plane, size) for size in SIZES]
    return {
        "dots": [{**_dot_row(plane, dot), **_text([one.dots[i] for one in names])} for i, dot in enumerate(plane.dots)],
        "path": [{"i": i, "x": _round(x), "y": _round(y)} for i, (x, y) in enumerate(plane.path)],
        "arrows": [_arrow(plane, *pair) for pair in pairwise(plane.path)],
        "crossing": [
            {**_dot_row(plane, dot), **_text([one.crossing for one in names])}
            for dot in ([plane.crossing] if plane.crossing else [])
        ],
        "achieved": _achieved_rows(plane, names),
        "slope": _slope_rows(plane, names),
        "pipes": [
            {"x": _round(ridge), "x2": plane.x_domain[1], "y": _round(peak), **_text([one.flats[i] for one in names])}
            for i, (_, ridge, peak) in enumerate(plane.ridges)
        ],
        "ridges": [
            {"x": _round(x), "y": _round(plane.y_domain[0]), "y2": _round(peak), **_text([o.ridges[i] for o in names])}
            for i, (_, x, peak) in enumerate(plane.ridges)
        ],
    }


def area_px2(plane: PredictPlane, dot: Dot) -> float:
    """Choose how large a dot is drawn."""
    if not plane.of_parts:
        return STEP_PX2
    most = max(one.time_share for one in plane.dots) or 1.0
    return round(SMALLEST_PX2 + (LARGEST_PX2 - SMALLEST_PX2) * dot.time_share / most)


def crossing_text(plane: PredictPlane) -> str:
    """Say at which size the regime changes: `compute-bound from n = 887`."""
    dot = plane.crossing
    return f"{dot.regime}-bound from {dot.label}" if dot else ""


def _names(plane: PredictPlane, size: SizeClass) -> _Names:
    """Place all texts at the smallest and the largest usual width of a class: what matters most first."""
    sheets = [Sheet(plane.x_domain, plane.y_domain, width_px, size.height_px) for width_px in size.widths_px]
    drawn = [Drawing(sheet, _canvas(plane, sheet)) for sheet in sheets]
    canvases = [one.canvas for one in drawn]
    crossing = _name_crossing(plane, canvases)
    rings = [_dot_boxes(plane, sheet) for sheet in sheets]
    # Names of parts are all that tells them apart; those of roofs can be shorter and stand elsewhere.
    parts = _name_dots(plane, canvases, narrow=size.narrow) if plane.of_parts else []
    flats: list[Found] = [name_flat(flat, drawn, rings) for flat in _flats(plane)]
    achieved = _name_achieved(plane, canvases)
    dots = parts or _name_dots(plane, canvases, narrow=size.narrow)
    ridges = [_first(_ridge_texts(x), (x, plane.y_domain[0]), RIDGE_SPOTS, canvases) for _, x, _ in plane.ridges]
    return _Names(dots, crossing, achieved, flats, ridges, name_slope(_slope(plane), drawn, [rings]))


def _canvas(plane: PredictPlane, sheet: Sheet) -> Canvas:
    """Begin a drawing: dots are never written over, lines only where there is no other place."""
    seen = sheet.visible(plane.bandwidth_bytes_per_s, plane.top)
    slope = [tuple(sheet.at(x, x * plane.bandwidth_bytes_per_s) for x in seen)] if seen else []
    flats = [(sheet.at(ridge, peak), sheet.at(plane.x_domain[1], peak)) for _, ridge, peak in plane.ridges]
    feet = [(sheet.at(ridge, plane.y_domain[0]), sheet.at(ridge, peak)) for _, ridge, peak in plane.ridges]
    way = list(pairwise(sheet.at(*spot) for spot in plane.path))
    lines = [segment(begin, end) for begin, end in (*slope, *flats, *feet, *way)]
    return Canvas(sheet.at, sheet.width_px, sheet.height_px, taken=_dot_boxes(plane, sheet), lines=lines)


def _dot_boxes(plane: PredictPlane, sheet: Sheet) -> list[Box]:
    boxes = [point_box(sheet.at(dot.x, dot.y), sqrt(area_px2(plane, dot)) / 2) for dot in plane.dots]
    if plane.crossing:
        boxes.append(point_box(sheet.at(plane.crossing.x, plane.crossing.y), sqrt(RING_PX2) / 2))
    if plane.achieved:
        boxes.append(point_box(sheet.at(*plane.achieved), sqrt(STEP_PX2) / 2))
    return boxes


def _first(
    texts: Iterable[str],
    at: tuple[float, float],
    spots: Sequence[Spot],
    canvases: Sequence[Canvas],
    *,
    bold: bool = False,
) -> Found:
    """Place the first of several texts for which there is room."""
    for text in texts:
        if spot := place(Wish(text, *at, spots, bold=bold), canvases):
            return text, spot
    return None


def _name_crossing(plane: PredictPlane, canvases: Sequence[Canvas]) -> Found:
    dot = plane.crossing
    if dot is None:
        return None
    texts = (crossing_text(plane), f"{dot.regime}-bound from {dot.short}", f"from {dot.short}")
    return _first(texts, (dot.x, dot.y), spots_around(sqrt(RING_PX2) / 2), canvases, bold=True)


def _name_achieved(plane: PredictPlane, canvases: Sequence[Canvas]) -> Found:
    if plane.achieved is None:
        return None
    share = fmt.percent(of_roof(plane.row, plane.row.steps[0][1]) or 0.0)
    rate = fmt.si(plane.achieved[1], "FLOP/s")
    # Beside its ring it belongs to nothing else, even where it crosses the foot of a ridge.
    bare = [replace(canvas, lines=[]) for canvas in canvases]
    texts = (f"{rate}: {share} of its roof", f"{share} of its roof")
    return _first(texts, plane.achieved, spots_around(sqrt(STEP_PX2) / 2), bare, bold=True)


def _name_dots(plane: PredictPlane, canvases: Sequence[Canvas], *, narrow: bool) -> list[Found]:
    """Place the labels: both ends of the sweep first, then the middle of what is left; or the longest parts first."""
    count = len(plane.dots)
    if plane.of_parts:
        order = sorted(range(count), key=lambda i: -plane.dots[i].time_share)
    else:
        order = list(dict.fromkeys([0, count - 1, *_halving(0, count - 1)])) if count else []
    found: dict[int, Found] = {}
    for i in order:
        found[i] = _name_dot(plane, i, canvases, is_end=i in {0, count - 1} and not narrow)
    return [found[i] for i in range(count)]


def _halving(low: int, high: int) -> list[int]:
    """List the numbers between two in the order of ever finer steps."""
    found, spans = [], [(low, high)]
    while spans:
        begin, end = spans.pop(0)
        middle = (begin + end) // 2
        if end - begin > 1:
            found.append(middle)
            spans += [(begin, middle), (middle, end)]
    return found


def _name_dot(plane: PredictPlane, i: int, canvases: Sequence[Canvas], *, is_end: bool) -> Found:
    dot = plane.dots[i]
    others = [other for other in plane.dots if other is not dot]
    spots = spots_around(sqrt(area_px2(plane, dot)) / 2)
    if not plane.of_parts and not is_end:
        spots = [spot for spot in spots if spot.lead is None]
    texts = (dot.label, dot.short) if plane.of_parts or is_end else (dot.short,)
    own = _keeping_away(plane, others)
    wishes = [Wish(text, dot.x, dot.y, spots, bold=True, own=own) for text in dict.fromkeys(texts)]
    # A shorter text clear of all lines is better than a longer one across the roof.
    for wish in wishes:
        if spot := place(wish, [replace(canvas, taken=[*canvas.taken, *canvas.lines]) for canvas in canvases]):
            for canvas in canvases:
                canvas.taken.append(text_box(wish, spot, canvas.at))
            return wish.text, spot
    found = ((wish.text, place(wish, canvases)) for wish in wishes)
    return next(((text, spot) for text, spot in found if spot), None)


def _keeping_away(plane: PredictPlane, others: Sequence[Dot]) -> Callable[[Place], list[Box]]:
    def boxes(to_px: Place) -> list[Box]:
        return [point_box(to_px(dot.x, dot.y), sqrt(area_px2(plane, dot)) / 2 + APART_PX) for dot in others]

    return boxes


def _flats(plane: PredictPlane) -> list[Flat]:
    """Name the flat roofs, in ever fewer words."""
    return [
        Flat(key, peak, (f"{name}  {rate}", f"{name}  {rate.removesuffix('FLOP/s')}", name))
        for key, peak in plane.pipes
        for name, rate in [(resource_label(key), fmt.si(peak, "FLOP/s"))]
    ]


def _slope(plane: PredictPlane) -> Slope:
    name, rate = resource_label("dram"), fmt.si(plane.bandwidth_bytes_per_s, "B/s")
    return Slope("dram", plane.bandwidth_bytes_per_s, plane.top, (f"{name}  {rate}", name))


def _ridge_texts(intensity: float) -> tuple[str, str]:
    return f"ridge {fmt.intensity(intensity)}", f"ridge {fmt.significant(intensity)}"


def _text(found: Sequence[Found]) -> Row:
    """Write a text and its place for each class of sizes, the widest first."""
    return {"texts": [one[0] if one else "" for one in found], "spots": [one[1].row if one else None for one in found]}


def _round(value: float) -> float:
    return fmt.round_significant(value, 5)


def _dot_row(plane: PredictPlane, dot: Dot) -> Row:
    result = dot.result
    return {
        "x": _round(dot.x),
        "y": _round(dot.y),
        "bound": dot.regime,
        "area": area_px2(plane, dot),
        "name": dot.label,
        "facts": {
            "Regime": BOUND_LABELS[dot.regime],
            "Intensity": fmt.intensity(result.intensity),
            "At best": fmt.si(result.attainable_flop_per_s, "FLOP/s"),
            "Of the peak": f"{fmt.percent(result.share_of_peak)} ({resource_label(result.peak)})",
            "At least": fmt.duration(result.t_lower_s * 1e9),
            "At most": fmt.duration(result.t_upper_s * 1e9),
        },
    }


def _achieved_rows(plane: PredictPlane, names: Sequence[_Names]) -> list[Row]:
    if plane.achieved is None:
        return []
    x, y = plane.achieved
    top = plane.row.steps[0][1].attainable_flop_per_s or y
    return [{"x": _round(x), "y": _round(y), "y2": _round(top), **_text([one.achieved for one in names])}]


def _arrow(plane: PredictPlane, begin: tuple[float, float], end: tuple[float, float]) -> Row:
    """Put an arrow on the middle of a part of the path, with its direction in parts of both axes."""
    (x0, y0), (x1, y1) = begin, end
    return {
        "x": _round(sqrt(x0 * x1)),
        "y": _round(sqrt(y0 * y1)),
        "right": round(log10(x1 / x0) / decades(plane.x_domain), 4),
        "up": round(log10(y1 / y0) / decades(plane.y_domain), 4),
    }


def _slope_rows(plane: PredictPlane, names: Sequence[_Names]) -> list[Row]:
    """Make two rows of the memory roof; the first one carries its name."""
    bandwidth = plane.bandwidth_bytes_per_s
    low = max(plane.x_domain[0], plane.y_domain[0] / bandwidth)
    high = min(plane.x_domain[1], plane.top / bandwidth)
    found = [one.slope for one in names]
    places = [_round(low * (high / low) ** along.part) if along else None for along in found]
    return [
        {
            "x": _round(low),
            "y": _round(low * bandwidth),
            "texts": [along.text if along else "" for along in found],
            "xs": places,
            "ys": [_round(x * bandwidth) if x else None for x in places],
            "sides": [along.side if along else 0 for along in found],
        },
        {"x": _round(high), "y": _round(high * bandwidth)},
    ]


def predict_spec(plane: PredictPlane, *, title: str, subtitle: list[str]) -> dict[str, Any]:
    """Specify the plane: roofs, ridges, the path of the dot, and where its regime changes."""
    on = PathPlane(plane.x_domain, plane.y_domain, "Arithmetic intensity (FLOP/B)")
    # The path lies on the roofs: broad and pale, it leaves them to be seen.
    path = named("path").mark_line(style="note", strokeWidth=6, opacity=0.3, strokeJoin="round", **QUIET)
    layers = [
        *on.ridges(),
        *on.roofs(),
        path.encode(on.x(), on.y(), alt.Order("i:Q")),
        on.arrows(),
        *_achieved_layers(on),
        *on.names("crossing", "strong"),
        *on.names("dots", "strong"),
        _dots(on, {dot.regime for dot in plane.dots}),
        _crossing(on),
    ]
    return specify(layers, datasets(plane), title=title, subtitle=subtitle)


def _achieved_layers(on: PathPlane) -> list[alt.Chart]:
    """Draw what was measured as a hollow ring under its roof."""
    way = named("achieved").mark_rule(style="gap", strokeDash=[1, 3], **QUIET)
    ring = named("achieved").mark_point(style="ring", size=STEP_PX2, **QUIET)
    return [
        way.encode(on.x(), on.y(), alt.Y2("y2")),
        *on.names("achieved", "strong"),
        ring.encode(on.x(), on.y()),
    ]


def _dots(on: PathPlane, regimes: set[Bound]) -> alt.Chart:
    dots: alt.Chart = (
        named("dots")
        .mark_point(filled=True, opacity=1, strokeWidth=1.5, description=alt.ExprRef("datum.name"))
        .encode(
            on.x(),
            on.y(),
            *verdict_channels(regimes, wraps=False),
            size=alt.Size("area:Q", scale=None, legend=None),
            order=alt.Order("area:Q", sort="descending"),
        )
    )
    return _with_tooltip(dots)


def _crossing(on: PathPlane) -> alt.Chart:
    """Ring the place where the regime changes."""
    ring = named("crossing").mark_point(style="ring", size=RING_PX2, strokeWidth=2, **QUIET)
    return _with_tooltip(ring.encode(on.x(), on.y()))


def _with_tooltip(chart: alt.Chart) -> alt.Chart:
    chart.mark.tooltip = alt.ExprRef(_TOOLTIP)
    return chart
