"""A plane of predictions as the rows its chart draws: the dots of an operation on the roofs of a datasheet."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import altair as alt

from rooflens import format as fmt
from rooflens.model.predict.forecast import Regime
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.forecast.plane import Dot, PredictPlane
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.plane.axes import axes
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import AT, QUIET, Spec, table, unchecked
from rooflens.report.plane.path import NOWHERE, PathPlane, arrows, rounded, strong_names
from rooflens.report.plane.placement import Text, around, beside
from rooflens.report.plane.roofs import Roofs, flat_roof, slope_roof
from rooflens.report.plane.viewport import Sheet, SizeClass, point_box

Row = dict[str, Any]


SMALLEST_PX2, LARGEST_PX2 = 70, 520

STEP_PX2 = 130

RING_PX2 = 340
"""Areas: dots of parts grow with their share of the floor, those of steps do not; the ring of a crossing."""

APART_PX = 5
"""Distance that a label keeps from the dots of others: it may not seem to be theirs."""

_TOOLTIP = "merge({title: datum.name}, datum.facts)"


def datasets(plane: PredictPlane) -> dict[str, list[Row]]:
    """Make all rows of the chart."""
    rows, places = _path_plane(plane).datasets(
        lambda sheet, size: _texts(plane, sheet, size),
        lambda sheet: _dot_boxes(plane, sheet),
        # Names are all that tells parts apart.
        roofs_last=plane.of_parts,
    )
    return {
        "dots": [_dot_row(plane, dot) | {"p": places.get(f"dot {i}", NOWHERE)} for i, dot in enumerate(plane.dots)],
        "path": [{"i": i, "x": rounded(x), "y": rounded(y)} for i, (x, y) in enumerate(plane.path)],
        "crossing": [
            _dot_row(plane, dot) | {"p": places.get(f"crossing {i}", NOWHERE)} for i, dot in enumerate(plane.crossings)
        ],
        "achieved": [row | {"p": places.get("achieved", NOWHERE)} for row in _achieved_rows(plane)],
        **rows,
    }


def _path_plane(plane: PredictPlane) -> PathPlane:
    slope = slope_roof(("dram",), plane.bandwidth_bytes_per_s)
    flats = tuple(flat_roof((key,), peak) for key, peak in plane.pipes)
    return PathPlane(Roofs((slope,), flats, plane.x_domain, plane.y_domain), plane.path)


def area_px2(plane: PredictPlane, dot: Dot) -> float:
    """Choose how large a dot is drawn."""
    if not plane.of_parts:
        return STEP_PX2
    most = max(part.time_share for part in plane.dots) or 1.0
    return round(SMALLEST_PX2 + (LARGEST_PX2 - SMALLEST_PX2) * dot.time_share / most)


def crossing_text(dot: Dot) -> str:
    """Say at which size the regime changes: `compute-bound from n = 887`."""
    return f"{dot.regime}-bound from {dot.label}"


def _dot_boxes(plane: PredictPlane, sheet: Sheet) -> list[Box]:
    boxes = [point_box(sheet.at(dot.x, dot.y), _radius_px(plane, dot)) for dot in plane.dots]
    boxes += [point_box(sheet.at(dot.x, dot.y), sqrt(RING_PX2) / 2) for dot in plane.crossings]
    if plane.achieved:
        boxes.append(point_box(sheet.at(*plane.achieved), sqrt(STEP_PX2) / 2))
    return boxes


def _radius_px(plane: PredictPlane, dot: Dot) -> float:
    return sqrt(area_px2(plane, dot)) / 2


def _texts(plane: PredictPlane, sheet: Sheet, size: SizeClass) -> Iterator[tuple[str, Text]]:
    """Ask for all texts at dots, what matters most first: the change of regime, what was measured, then the dots."""
    for i, dot in enumerate(plane.crossings):
        names = (crossing_text(dot), f"{dot.regime}-bound from {dot.short}", f"from {dot.short}")
        yield f"crossing {i}", Text(names, dot.x, dot.y, around(sqrt(RING_PX2) / 2), bold=True)
    if plane.achieved:
        share = fmt.percent(plane.achieved[1] / (plane.row.steps[0][1].roof_flop_per_s or plane.achieved[1]))
        reached = f"{share} of its roof"
        rates = (f"{fmt.si(plane.achieved[1], 'FLOP/s')}: {reached}", reached)
        yield "achieved", Text(rates, *plane.achieved, around(sqrt(STEP_PX2) / 2), bold=True)
    ends = set() if size.narrow else {0, len(plane.dots) - 1}
    for i in _order(plane):
        yield f"dot {i}", _dot_text(plane, i, sheet, is_end=i in ends)


def _order(plane: PredictPlane) -> list[int]:
    """Put the longest parts first; or both ends of a sweep, then the middle of what is left."""
    count = len(plane.dots)
    if plane.of_parts:
        return sorted(range(count), key=lambda i: -plane.dots[i].time_share)
    return list(dict.fromkeys([0, count - 1, *_halving(0, count - 1)])) if count else []


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


def _dot_text(plane: PredictPlane, i: int, sheet: Sheet, *, is_end: bool) -> Text:
    dot = plane.dots[i]
    whole = plane.of_parts or is_end
    spots = (around if whole else beside)(_radius_px(plane, dot))
    names = (dot.label, dot.short) if whole else (dot.short,)
    apart = tuple(
        point_box(sheet.at(other.x, other.y), _radius_px(plane, other) + APART_PX)
        for other in plane.dots
        if other is not dot
    )
    return Text(names, dot.x, dot.y, spots, bold=True, own=apart)


def _dot_row(plane: PredictPlane, dot: Dot) -> Row:
    result = dot.result
    return {
        "x": rounded(dot.x),
        "y": rounded(dot.y),
        "bound": dot.regime,
        "area": area_px2(plane, dot),
        "name": dot.label,
        "facts": {
            "Regime": BOUND_LABELS[dot.regime],
            "Intensity": fmt.intensity(result.intensity),
            "At best": fmt.si(result.roof_flop_per_s, "FLOP/s"),
            "Of the peak": f"{fmt.percent(result.share_of_peak)} ({resource_label(result.peak)})",
            "Floor": fmt.duration(result.t_lower_s * 1e9),
        },
    }


def _achieved_rows(plane: PredictPlane) -> list[Row]:
    if plane.achieved is None:
        return []
    x, y = plane.achieved
    top = plane.row.steps[0][1].roof_flop_per_s or y
    return [{"x": rounded(x), "y": rounded(y), "y2": rounded(top)}]


@unchecked
def predict_spec(plane: PredictPlane, *, title: str, subtitle: list[str]) -> Spec:
    """Specify the plane: roofs, ridges, the path of the dot, and where its regime changes."""
    achieved = table("achieved")
    layers = [
        # The path lies on the roofs: broad and pale, it leaves them to be seen.
        table("path")
        .mark_line(style="note", strokeWidth=6, opacity=0.3, strokeJoin="round", **QUIET)
        .encode(**AT, order=alt.Order("i:Q")),
        arrows(),
        achieved.mark_rule(style="gap", strokeDash=[1, 3], **QUIET).encode(
            x=alt.X("x:Q"), y=alt.Y("y:Q"), y2=alt.Y2("y2")
        ),
        *strong_names("achieved"),
        achieved.mark_point(style="ring", size=STEP_PX2, **QUIET).encode(**AT),
        *strong_names("crossing"),
        *strong_names("dots"),
        _dots({dot.regime for dot in plane.dots}),
        table("crossing")
        .mark_point(style="ring", size=RING_PX2, strokeWidth=2, tooltip=alt.ExprRef(_TOOLTIP), **QUIET)
        .encode(**AT),
    ]
    return _path_plane(plane).specify(layers, datasets(plane), title=title, subtitle=subtitle)


def _dots(regimes: set[Regime]) -> alt.Chart:
    look: dict[str, Any] = {"description": alt.ExprRef("datum.name"), "tooltip": alt.ExprRef(_TOOLTIP)}
    dots = table("dots").mark_point(filled=True, opacity=1, strokeWidth=1.5, **look)
    return dots.encode(
        **axes(),
        **verdict_channels(regimes, wraps=False),
        size=alt.Size("area:Q", scale=None, legend=None),
        order=alt.Order("area:Q", sort="descending"),
    )
