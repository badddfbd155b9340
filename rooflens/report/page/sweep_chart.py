"""A sweep as the rows its chart draws, with every text placed in Python so that none runs into another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import hypot, log10, sqrt
from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens import format as fmt
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.html.embed import json_block
from rooflens.report.html.templates import render
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.page.cards.expectation import sizes_text
from rooflens.report.page.sweeps import find_sweeps
from rooflens.report.plane.geometry import hits_any, segment
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.path import QUIET, PathPlane, named, specify
from rooflens.report.plane.placement import LINE_PX, Canvas, Spot, Wish, place, text_box
from rooflens.report.plane.plane import aired
from rooflens.report.plane.roof_names import Drawing, Flat, Slope, name_flat, name_slope
from rooflens.report.plane.viewport import SIZES, Sheet, decades, point_box

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from rooflens.model.records import Bound
    from rooflens.report.content import Content
    from rooflens.report.page.sweeps import Step, Sweep
    from rooflens.report.plane.geometry import Box
    from rooflens.report.plane.placement import Place
    from rooflens.report.plane.plane import Domain
    from rooflens.report.plane.roof_names import Along
    from rooflens.report.plane.viewport import SizeClass

    Row = dict[str, Any]


LEAST_DECADES = 3.0

NAMES_PART = 0.28
"""Part of the width that is kept for the names of flat roofs."""

DOT_AREA_PX2 = 150

RING_AREA_PX2 = 44

DOT_PX = sqrt(DOT_AREA_PX2) / 2

PATH_PX = 3

APART_PX = 7
"""Distance that a case's label keeps from the dots of other cases: it may not seem to be theirs."""

DROPPED, SHORTENED, CROSSING, SWAPPED, DOUBTFUL = 1000.0, 30.0, 25.0, 60.0, 100.0
"""What a label costs that finds no place, that is cut short, that crosses a line, that stands under another one though
its dot is over that one's, or that is nearer to another dot than to its own; else its distance in pixels."""

NEIGHBOURS_PX = 60
"""Dots nearer to one another than this, from left to right, have their labels in the order of their heights."""

RIDGE_SPOTS = tuple(Spot(side * 6, -10 - 16 * line, side) for line in (0, 1, 2) for side in (1, -1))
"""Places of a ridge's words beside the foot of its line."""

MAX_SWEEPS = 12


def _spots_around(away: float) -> list[Spot]:
    """List the places around a dot at a distance: beside it, above, below, and at its corners."""
    r, corner = DOT_PX + away, 0.75 * DOT_PX + away
    down = corner + LINE_PX / 4
    beside = [Spot(r, 0, 1), Spot(-r, 0, -1), Spot(0, -r - LINE_PX / 2, 0), Spot(0, r + LINE_PX / 2, 0)]
    return [*beside, *(Spot(side * corner, y, side) for side in (1, -1) for y in (-down, down))]


STEP_SPOTS = (*_spots_around(4), *_spots_around(14))
"""Places of a case's label: at its dot, or a little off where that is taken."""


@dataclass(frozen=True, slots=True)
class SweepPlane:
    """The plane that a sweep is drawn in."""

    sweep: Sweep
    x_domain: Domain
    y_domain: Domain

    @property
    def top(self) -> float | None:
        """The highest flat roof."""
        return max((pipe.peak for pipe in self.sweep.pipes), default=None)

    @property
    def floor(self) -> float:
        """The lowest performance that is drawn."""
        return self.y_domain[0]

    def predicted(self, step: Step) -> tuple[float, float] | None:
        """Give the place that was predicted: on the roof, at the intensity of the compulsory bytes."""
        intensity, roof = step.predicted_intensity, step.roof_at(step.predicted_intensity)
        return (intensity, roof) if intensity and roof else None


def sweep_plane(sweep: Sweep) -> SweepPlane:
    """Choose the range of a sweep's plane: dots, predictions, roofs and ridges with half a decade of air."""
    plane = SweepPlane(sweep, (1.0, 1.0), (1.0, 1.0))
    predicted = [place for step in sweep.placed if (place := plane.predicted(step))]
    xs = [step.intensity_flop_per_byte or 0.0 for step in sweep.placed] + [x for x, _ in predicted]
    ys = [step.flop_per_s or 0.0 for step in sweep.placed] + [y for _, y in predicted]
    xs += [ridge for _, ridge in sweep.ridges]
    ys += [pipe.peak for pipe in sweep.pipes]
    low, high = aired(xs, LEAST_DECADES)
    # The names of flat roofs stand at their right end: dots and rings should not reach below them.
    free = (max(xs) / low**NAMES_PART) ** (1 / (1 - NAMES_PART))
    return SweepPlane(sweep, (low, max(high, free)), aired(ys, LEAST_DECADES))


def datasets(plane: SweepPlane, groups: Mapping[str, str]) -> dict[str, list[Row]]:
    """Make all rows of the chart; `groups` gives the group of each launch's key."""
    names = [_names(plane, size) for size in SIZES]
    sweep = plane.sweep
    return {
        "steps": [_step_row(plane, i, step, names, groups) for i, step in enumerate(sweep.placed)],
        "arrows": _arrows(plane),
        "slope": _slope_rows(plane, names),
        "pipes": [_pipe_row(plane, i, names) for i in range(len(sweep.pipes))],
        "ridges": [_ridge_row(plane, i, names) for i in range(len(sweep.ridges))],
    }


@dataclass(slots=True)
class _Names:
    """Where each text stands in one class of sizes; None for those that find no place."""

    steps: list[tuple[str, Spot] | None]
    flats: list[tuple[str, Spot] | None]
    ridges: list[Spot | None]
    slope: Along | None


def _names(plane: SweepPlane, size: SizeClass) -> _Names:
    """Place all texts at the smallest and the largest usual width of a class: cases first, then roofs and ridges."""
    sheets = [Sheet(plane.x_domain, plane.y_domain, width_px, size.height_px) for width_px in size.widths_px]
    drawn = [Drawing(sheet, _canvas(plane, sheet)) for sheet in sheets]
    canvases = [one.canvas for one in drawn]
    rings = [_rings(plane, sheet) for sheet in sheets]
    steps = _name_steps(plane, canvases, narrow=size.narrow)
    flats = [name_flat(flat, drawn, rings) for flat in _flats(plane.sweep)]
    ridges = [place(Wish(_ridge_text(x), x, plane.floor, RIDGE_SPOTS), canvases) for _, x in plane.sweep.ridges]
    slope = _slope(plane)
    return _Names(steps, flats, ridges, name_slope(slope, drawn, [rings]) if slope else None)


def _canvas(plane: SweepPlane, sheet: Sheet) -> Canvas:
    """Begin a drawing: dots and rings are never written over, lines only where there is no other place."""
    dots = [sheet.at(*_place_of(step)) for step in plane.sweep.placed]
    lines = [segment(*pair, width_px=PATH_PX) for pair in pairwise(dots)]
    lines += _roof_lines(plane, sheet)
    for step, dot in zip(plane.sweep.placed, dots, strict=True):
        if foot := plane.predicted(step):
            lines.append(segment(dot, sheet.at(*foot)))
    lines += [segment(sheet.at(x, plane.floor), sheet.at(x, pipe.peak)) for pipe, x in plane.sweep.ridges]
    boxes = [point_box(dot, DOT_PX) for dot in dots]
    return Canvas(sheet.at, sheet.width_px, sheet.height_px, taken=[*boxes, *_rings(plane, sheet)], lines=lines)


def _rings(plane: SweepPlane, sheet: Sheet) -> list[Box]:
    places = (plane.predicted(step) for step in plane.sweep.placed)
    return [point_box(sheet.at(*found), sqrt(RING_AREA_PX2) / 2) for found in places if found]


def _roof_lines(plane: SweepPlane, sheet: Sheet) -> list[Box]:
    memory = plane.sweep.memory
    lines = []
    if memory and (seen := sheet.visible(memory.peak, plane.top)):
        low, high = (sheet.at(x, x * memory.peak) for x in seen)
        lines.append(segment(low, high))
    for pipe in plane.sweep.pipes:
        start = _flat_start(plane, pipe.peak)
        lines.append(segment(sheet.at(start, pipe.peak), sheet.at(plane.x_domain[1], pipe.peak)))
    return lines


def _flat_start(plane: SweepPlane, peak: float) -> float:
    """Find where a flat roof begins: at the diagonal, or at the left edge."""
    memory = plane.sweep.memory
    return max(plane.x_domain[0], peak / memory.peak) if memory else plane.x_domain[0]


def _name_steps(plane: SweepPlane, canvases: Sequence[Canvas], *, narrow: bool) -> list[tuple[str, Spot] | None]:
    """Place the labels of the cases in the order, along the path or down the plane, that serves them best."""
    placed = plane.sweep.placed
    along = list(range(len(placed)))
    down = sorted(along, key=lambda at: -_place_of(placed[at])[1])
    tries = []
    for order in (along, along[::-1], down, down[::-1]):
        fresh = [replace(canvas, taken=list(canvas.taken)) for canvas in canvases]
        found = {at: _name_step(placed, at, fresh, narrow=narrow) for at in order}
        spots = [(_place_of(placed[at]), found[at][0]) for at in along]
        cost = sum(cost for _, cost in found.values()) + SWAPPED * _swaps(spots, canvases[0].at)
        tries.append((cost, found, fresh))
    _, best, used = min(tries, key=lambda one: one[0])
    for canvas, other in zip(canvases, used, strict=True):
        canvas.taken[:] = other.taken
    return [best[at][0] for at in range(len(placed))]


def _swaps(labels: Sequence[tuple[tuple[float, float], tuple[str, Spot] | None]], to_px: Place) -> int:
    """Count the pairs of neighbouring dots whose labels stand the other way round."""
    rows = [(*to_px(*dot), to_px(*dot)[1] + found[1].dy) for dot, found in labels if found]
    return sum(
        (one_y - other_y) * (one_label - other_label) < 0
        for (one_x, one_y, one_label), (other_x, other_y, other_label) in combinations(rows, 2)
        if abs(one_x - other_x) < NEIGHBOURS_PX
    )


def _name_step(
    placed: Sequence[Step], at: int, canvases: Sequence[Canvas], *, narrow: bool
) -> tuple[tuple[str, Spot] | None, float]:
    """Place a case's label, in short where the long one finds no place; return it with what it costs."""
    step = placed[at]
    texts = ((step.short, 0.0),) if narrow else ((step.label, 0.0), (step.short, SHORTENED))
    others = [_place_of(other) for other in placed if other is not step]
    for text, cost in texts:
        wish = Wish(text, *_place_of(step), STEP_SPOTS, bold=True, own=lambda to_px: _near(others, to_px))
        clear = [spot for spot in STEP_SPOTS if all(_is_nearest(wish, spot, others, one.at) for one in canvases)]
        for spots, doubt in ((clear, 0.0), (STEP_SPOTS, DOUBTFUL)):
            if spot := place(replace(wish, spots=spots), canvases):
                crosses = any(hits_any(text_box(wish, spot, canvas.at), canvas.lines) for canvas in canvases)
                return (text, spot), cost + doubt + hypot(spot.dx, spot.dy) + (CROSSING if crosses else 0.0)
    return None, DROPPED


def _is_nearest(wish: Wish, spot: Spot, others: Iterable[tuple[float, float]], to_px: Place) -> bool:
    """Tell whether a label at a spot is nearer to its own dot than to any other."""
    box = text_box(wish, spot, to_px)

    def distance(dot: tuple[float, float]) -> float:
        right, down = to_px(*dot)
        return hypot(max(abs(right - box.x) - box.half_width, 0.0), max(abs(down - box.y) - box.half_height, 0.0))

    return all(distance((wish.x, wish.y)) <= distance(other) for other in others)


def _place_of(step: Step) -> tuple[float, float]:
    return step.intensity_flop_per_byte or 1.0, step.flop_per_s or 1.0


def _near(places: Iterable[tuple[float, float]], to_px: Place) -> list[Box]:
    return [point_box(to_px(*one), DOT_PX + APART_PX) for one in places]


def _flats(sweep: Sweep) -> list[Flat]:
    """Name the flat roofs, in ever fewer words."""
    return [
        Flat(pipe.keys[0], pipe.peak, (f"{name}  {peak}", f"{name}  {peak.removesuffix('FLOP/s')}", name))
        for pipe in sweep.pipes
        for name, peak in [(_keys(pipe.keys), fmt.si(pipe.peak, "FLOP/s"))]
    ]


def _keys(keys: Iterable[str]) -> str:
    return ", ".join(resource_label(key) for key in keys)


def _slope(plane: SweepPlane) -> Slope | None:
    memory = plane.sweep.memory
    if memory is None:
        return None
    name = _keys(memory.keys)
    return Slope("dram", memory.peak, plane.top, (f"{name}  {fmt.si(memory.peak, 'B/s')}", name))


def _ridge_text(intensity: float) -> str:
    return f"ridge {fmt.intensity(intensity)}"


def _by_size(spots: Iterable[Spot | None]) -> list[list[float] | None]:
    """List a text's place for each class of sizes, the widest first."""
    return [[round(spot.dx), round(spot.dy), spot.side] if spot else None for spot in spots]


def _round(value: float) -> float:
    return fmt.round_significant(value, 5)


def _step_row(plane: SweepPlane, at: int, step: Step, names: Sequence[_Names], groups: Mapping[str, str]) -> Row:
    found = [one.steps[at] for one in names]
    foot = plane.predicted(step)
    measured = step.checked.measured
    key = step.keys[0] if step.keys else ""
    return {
        "i": at,
        "k": key,
        "g": groups.get(key, ""),
        "ks": list(step.keys),
        "x": _round(step.intensity_flop_per_byte or 0.0),
        "y": _round(step.flop_per_s or 0.0),
        "px": _round(foot[0]) if foot else None,
        "py": _round(foot[1]) if foot else None,
        "bound": step.bound,
        "texts": [one[0] if one else "" for one in found],
        "spots": _by_size(one[1] if one else None for one in found),
        "name": step.label,
        "verdict": BOUND_LABELS[step.bound],
        "intensity": fmt.intensity(step.intensity_flop_per_byte),
        "achieved": fmt.si(step.flop_per_s, "FLOP/s"),
        "roofText": _roof_text(step),
        "predicted": fmt.intensity(step.predicted_intensity),
        "timeText": fmt.duration(measured.time_ns),
    }


def _roof_text(step: Step) -> str:
    roof = step.roof_at(step.intensity_flop_per_byte)
    return f"{fmt.si(roof, 'FLOP/s')} ({fmt.percent(step.roof_share)} reached)" if roof else "not in the report"


def _arrows(plane: SweepPlane) -> list[Row]:
    """Put an arrow on each part of the path: its middle, and its direction in parts of both axes."""
    placed = plane.sweep.placed
    return [_arrow(plane, one, other) for one, other in pairwise(placed)]


def _arrow(plane: SweepPlane, one: Step, other: Step) -> Row:
    (x0, y0), (x1, y1) = _place_of(one), _place_of(other)
    return {
        "x": _round(sqrt(x0 * x1)),
        "y": _round(sqrt(y0 * y1)),
        "right": round(log10(x1 / x0) / decades(plane.x_domain), 4),
        "up": round(log10(y1 / y0) / decades(plane.y_domain), 4),
    }


def _slope_rows(plane: SweepPlane, names: Sequence[_Names]) -> list[Row]:
    """Make two rows of the memory roof; the first one carries its name."""
    memory = plane.sweep.memory
    if memory is None:
        return []
    low = max(plane.x_domain[0], plane.floor / memory.peak)
    high = min(plane.x_domain[1], (plane.top or plane.y_domain[1]) / memory.peak)
    found = [one.slope for one in names]
    places = [_round(low * (high / low) ** along.part) if along else None for along in found]
    return [
        {
            "x": _round(low),
            "y": _round(low * memory.peak),
            "texts": [along.text if along else "" for along in found],
            "xs": places,
            "ys": [_round(x * memory.peak) if x else None for x in places],
            "sides": [along.side if along else 0 for along in found],
        },
        {"x": _round(high), "y": _round(high * memory.peak)},
    ]


def _pipe_row(plane: SweepPlane, at: int, names: Sequence[_Names]) -> Row:
    peak = plane.sweep.pipes[at].peak
    found = [one.flats[at] for one in names]
    return {
        "x": _round(_flat_start(plane, peak)),
        "x2": plane.x_domain[1],
        "y": _round(peak),
        "texts": [one[0] if one else "" for one in found],
        "spots": _by_size(one[1] if one else None for one in found),
    }


def _ridge_row(plane: SweepPlane, at: int, names: Sequence[_Names]) -> Row:
    pipe, x = plane.sweep.ridges[at]
    return {
        "x": _round(x),
        "y": _round(plane.floor),
        "y2": _round(pipe.peak),
        "texts": [_ridge_text(x)] * len(names),
        "spots": _by_size(one.ridges[at] for one in names),
    }


def sweep_spec(sweep: Sweep, *, title: str, subtitle: Sequence[str], groups: Mapping[str, str]) -> dict[str, Any]:
    """Specify the plane with roofs, ridges, the path, and where each case was predicted.

    The page sets `picked`, the key of a launch, beside the size of the plane.
    """
    plane = sweep_plane(sweep)
    on = PathPlane(plane.x_domain, plane.y_domain, "Arithmetic intensity at HBM (FLOP/B)")
    way, rings = _prediction_layers(on)
    path = named("steps").mark_line(style="note", strokeWidth=2, **QUIET)
    # Words stand on cleared ground: they come before the marks, which they must not cut.
    layers = [
        *on.ridges(),
        *on.roofs(),
        way,
        path.encode(on.x(), on.y(), alt.Order("i:Q")),
        on.arrows(),
        *on.names("steps", "strong"),
        rings,
        _dots(on, {step.bound for step in sweep.placed}),
    ]
    return specify(layers, datasets(plane, groups), title=title, subtitle=subtitle, picked="")


def _prediction_layers(on: PathPlane) -> tuple[alt.Chart, alt.Chart]:
    """Draw the way from each dot to its prediction, and the ring there."""
    known = named("steps").transform_filter("datum.px !== null")
    way = known.mark_rule(style="gap", strokeDash=[1, 3], **QUIET)
    ring = known.mark_point(style="ring", size=RING_AREA_PX2, **QUIET)
    return (
        way.encode(on.x(), on.y(), alt.X2("px"), alt.Y2("py")),
        ring.encode(on.x("px"), on.y("py"), tooltip=_tooltip()),
    )


def _dots(on: PathPlane, bounds: set[Bound]) -> alt.Chart:
    dots: alt.Chart = (
        named("steps")
        .mark_point(filled=True, opacity=1, size=DOT_AREA_PX2, strokeWidth=1.5, cursor="pointer")
        .encode(on.x(), on.y(), *verdict_channels(bounds), tooltip=_tooltip(), strokeWidth=_picked())
    )
    return dots


def _picked() -> Any:
    return alt.condition("indexof(datum.ks, picked) >= 0", alt.value(4), alt.value(1.5))


def _tooltip() -> list[alt.Tooltip]:
    fields = {
        "name": "Case",
        "verdict": "Verdict",
        "intensity": "Intensity",
        "predicted": "Predicted",
        "achieved": "Achieved",
        "roofText": "Its roof",
        "timeText": "Time",
    }
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def sweeps(page: Content) -> Markup:
    """Show the sweeps of a page; nothing where there is none."""
    found = find_sweeps(page)
    shown = [(f"sweep-{i}", sweep) for i, sweep in enumerate(found[:MAX_SWEEPS])]
    groups = {launch.key: launch.group_key for launch in page.launches}
    blocks = [
        json_block(
            f"spec-{key}",
            sweep_spec(sweep, title=_title(sweep, synthetic=page.synthetic), subtitle=_subtitle(sweep), groups=groups),
        )
        for key, sweep in shown
    ]
    return render("report/sweeps", shown=shown, blocks=blocks, left_out=len(found) - len(shown), sizes=sizes_text)


def _title(sweep: Sweep, *, synthetic: bool) -> str:
    return f"{sweep.title}{': synthetic data' if synthetic else ''}"


def _subtitle(sweep: Sweep) -> tuple[str, ...]:
    kept = sizes_text(sweep.kept)
    return f"{sweep.gpu}{f', {kept}' if kept else ''}", "Rings: where each case was predicted"
