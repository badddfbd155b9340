"""Where predictions are in the datasheet's roofline of a GPU, and its chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite, log10, sqrt
from typing import Any

import altair as alt
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.predict.forecast import Forecast, Regime, Row, forecast
from rooflens.model.predict.forecast import moving as moving_sizes
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.plane.axes import axes
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import AT, QUIET, Spec, table, unchecked
from rooflens.report.plane.path import NOWHERE, PathPlane, arrows, rounded, strong_names
from rooflens.report.plane.placement import Text, around, beside
from rooflens.report.plane.plane import Domain, aired, free_edge
from rooflens.report.plane.roofs import Roofs, flat_roof, slope_roof
from rooflens.report.plane.viewport import Sheet, SizeClass, point_box
from rooflens.report.text import forecast as forecasts

ALL_DOTS = 24
APART_DECADES = 0.09
"""Of longer sweeps only steps that stand so far from the one before are drawn; the others would make a thick line."""

LEAST_DECADES = 3.5
NAMES_PART = 0.3
"""Part of the width that is kept for the names of flat roofs, right of the last dot."""

SAME_PLACE_DECADES = 0.015
SAME_PART_DECADES = 0.08
"""Dots nearer to one another than this, on both axes, are drawn as one: about two pixels; those of parts are larger."""


class Dot(Struct, frozen=True):
    """One step of a sweep, or one part of a composite operation, or several at one place.

    Attributes:
        label: What tells it apart: `n = 128`.
        short: The same where there is little room: `128`.
        time_share: Part of the floor of the whole, 0 to 1; 1 for steps.
        merged: How many stand here.
    """

    label: str
    short: str
    result: Forecast
    x: float
    y: float
    time_share: float = 1.0
    merged: int = 1

    @property
    def regime(self) -> Regime:
        """What bounds it."""
        return self.result.regime


class PredictPlane(Struct, frozen=True):
    """The plane of one operation, type and GPU.

    Attributes:
        dots: Steps in the order of the sweep, or the parts of a single composite prediction.
        path: Places that the dot walks through, the change of regime among them; empty where nothing walks.
        crossings: Where the regime changes along the sweep.
        pipes: Flat roofs by pipe, the highest first, in FLOP per second.
        unplaced: Parts or steps without FLOPs.
        left_out: Steps that are not drawn because they stand too near to others.
    """

    row: Row
    dots: tuple[Dot, ...]
    path: tuple[tuple[float, float], ...]
    crossings: tuple[Dot, ...]
    pipes: tuple[tuple[str, float], ...]
    unplaced: int
    left_out: int
    x_domain: Domain = (1.0, 1.0)
    y_domain: Domain = (1.0, 1.0)

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The slope: bandwidth of DRAM."""
        return self.row.steps[-1][1].bandwidth_bytes_per_s

    @property
    def ridges(self) -> tuple[tuple[str, float, float], ...]:
        """Each pipe with the intensity from which it is the lower roof, and its peak."""
        return tuple((key, peak / self.bandwidth_bytes_per_s, peak) for key, peak in self.pipes)

    @property
    def of_parts(self) -> bool:
        """True where the dots are parts of one composite prediction."""
        return len(self.row.steps) == 1 and bool(self.row.steps[0][1].parts)

    @property
    def achieved(self) -> tuple[float, float] | None:
        """Place of the measured rate; None where there is none."""
        measured_s, result = self.row.measured_s, self.row.steps[0][1]
        return (result.intensity, result.flop / measured_s) if measured_s and _is_placed(result) else None


def planes(rows: Iterable[Row]) -> tuple[PredictPlane, ...]:
    """Place each row; all planes share their axes, so that GPUs can be compared by eye."""
    alone = [_plane(row) for row in rows]
    xs = [x for plane in alone for x in [*(dot.x for dot in plane.dots), *(ridge for _, ridge, _ in plane.ridges)]]
    ys = [y for plane in alone for y in _ys(plane)]
    low, high = aired(xs, LEAST_DECADES)
    furthest = max((dot.x for plane in alone for dot in plane.dots), default=low)
    # The names of flat roofs stand at their right end: dots should not reach below them.
    free = free_edge(furthest, low, NAMES_PART)
    return tuple(replace(plane, x_domain=(low, max(high, free)), y_domain=aired(ys, LEAST_DECADES)) for plane in alone)


def _ys(plane: PredictPlane) -> list[float]:
    reached = [plane.achieved[1]] if plane.achieved else []
    return [*(dot.y for dot in plane.dots), *(peak for _, peak in plane.pipes), *reached]


def _plane(row: Row) -> PredictPlane:
    result = row.steps[-1][1]
    if len(row.steps) == 1 and result.parts:
        placed = [part for part in result.parts if _is_placed(part)]
        return PredictPlane(
            row=row,
            dots=_merged([_part_dot(part, result) for part in placed], _parts_together, SAME_PART_DECADES),
            path=(),
            crossings=(),
            pipes=_pipes(result.parts),
            unplaced=len(result.parts) - len(placed),
            left_out=0,
        )
    return _swept_plane(row)


def _swept_plane(row: Row) -> PredictPlane:
    at = [i for i, (_, result) in enumerate(row.steps) if _is_placed(result)]
    turns = [i for i in range(1, len(row.steps)) if row.steps[i][1].regime != row.steps[i - 1][1].regime]
    drawn = _thinned(row, at, turns)
    dots = {i: _step_dot(row, *row.steps[i]) for i in drawn}
    crossings = {i: dot for i, (sizes, _) in zip(turns, row.crossings, strict=True) if (dot := _crossing(row, sizes))}
    walked = [dot for i in range(len(row.steps)) for dot in (crossings.get(i), dots.get(i)) if dot]
    path = [(dot.x, dot.y) for dot in walked]
    return PredictPlane(
        row=row,
        dots=_merged(list(dots.values()), _steps_together),
        path=tuple(path) if len(path) > 1 else (),
        crossings=tuple(crossings.values()),
        pipes=_pipes([row.steps[-1][1], *row.steps[-1][1].parts]),
        unplaced=len(row.steps) - len(at),
        left_out=len(at) - len(drawn),
    )


def _is_placed(result: Forecast) -> bool:
    """Return whether logarithmic axes can place a forecast."""
    return bool(result.roof_flop_per_s) and result.intensity > 0 and isfinite(result.intensity)


def _thinned(row: Row, at: Sequence[int], turns: Iterable[int]) -> list[int]:
    """Choose the steps that are drawn: first, last, those beside a change of regime, and others that keep apart."""
    if len(at) <= ALL_DOTS:
        return list(at)
    wanted = {at[0], at[-1], *({i for turn in turns for i in (turn - 1, turn)} & set(at))}
    chosen = [at[0]]
    for i in at[1:]:
        if i in wanted or _steps_apart(row, chosen[-1], i) >= APART_DECADES:
            chosen.append(i)
    return chosen


def _steps_apart(row: Row, one: int, other: int) -> float:
    return _decades_apart(*(_step_dot(row, *row.steps[i]) for i in (one, other)))


def _step_dot(row: Row, sizes: Mapping[str, int], result: Forecast) -> Dot:
    label = forecasts.sizes_text(row, sizes)
    moving = moving_sizes(row) if len(row.steps) > 1 else []
    short = f"{sizes[moving[0]]:,}" if moving else label
    return Dot(label, short, result, result.intensity, result.roof_flop_per_s or 0.0)


def _part_dot(part: Forecast, whole: Forecast) -> Dot:
    share = part.t_lower_s / whole.t_lower_s if whole.t_lower_s else 0.0
    return Dot(part.label, part.label, part, part.intensity, part.roof_flop_per_s or 0.0, share)


def _crossing(row: Row, sizes: Mapping[str, int]) -> Dot | None:
    """Place the sizes at which the regime changes; None where they have no place."""
    result = forecast(row.operation, sizes, row.dtype, row.gpu, row.link, out_dtype=row.out_dtype)
    return _step_dot(row, sizes, result) if _is_placed(result) else None


def _pipes(results: Iterable[Forecast]) -> tuple[tuple[str, float], ...]:
    """List the pipes that do FLOPs, the highest first; those of one peak by the first name."""
    peaks = {result.peak_flop_per_s: result.peak for result in reversed([*results]) if result.flop}
    if not peaks:
        peaks = {result.peak_flop_per_s: result.peak for result in results}
    return tuple((key, peak) for peak, key in sorted(peaks.items(), reverse=True))


def _merged(
    dots: Sequence[Dot], together: Callable[[Sequence[Dot]], Dot], near: float = SAME_PLACE_DECADES
) -> tuple[Dot, ...]:
    """Draw dots of one regime that stand at one place as one."""
    found: list[list[Dot]] = []
    for dot in dots:
        group = next(
            (group for group in found if _decades_apart(group[0], dot) < near and group[0].regime == dot.regime), None
        )
        if group is None:
            found.append([dot])
        else:
            group.append(dot)
    return tuple(group[0] if len(group) == 1 else together(group) for group in found)


def _decades_apart(one: Dot, other: Dot) -> float:
    return max(abs(log10(one.x / other.x)), abs(log10(one.y / other.y)))


def _steps_together(group: Sequence[Dot]) -> Dot:
    first, last = group[0], group[-1]
    label, short = f"{first.label} to {last.short}", f"{first.short} to {last.short}"
    return replace(last, label=label, short=short, merged=len(group))


def _parts_together(group: Sequence[Dot]) -> Dot:
    longest = max(group, key=lambda dot: dot.time_share)
    label, short = f"{longest.label} and {len(group) - 1} more", f"{longest.label} +{len(group) - 1}"
    share = min(1.0, sum(dot.time_share for dot in group))
    return replace(longest, label=label, short=short, time_share=share, merged=len(group))


Datum = dict[str, Any]


SMALLEST_PX2, LARGEST_PX2 = 70, 520

STEP_PX2 = 130

RING_PX2 = 340

HERE_PX2 = 520
"""Areas: dots of parts grow with their share of the floor, those of steps do not; the rings of a crossing, and of the
size that is chosen."""

APART_PX = 5
"""Distance that a label keeps from the dots of others: it may not seem to be theirs."""

_TOOLTIP = "merge({title: datum.name}, datum.facts)"


def datasets(plane: PredictPlane) -> dict[str, list[Datum]]:
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


def _dot_row(plane: PredictPlane, dot: Dot) -> Datum:
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


def _achieved_rows(plane: PredictPlane) -> list[Datum]:
    if plane.achieved is None:
        return []
    x, y = plane.achieved
    top = plane.row.steps[0][1].roof_flop_per_s or y
    return [{"x": rounded(x), "y": rounded(y), "y2": rounded(top)}]


def _here_rows(plane: PredictPlane, places: Mapping[int, str]) -> list[Datum]:
    """Place the steps that a reader can choose, drawn or not."""
    steps = ((at, plane.row.steps[i][1]) for i, at in places.items())
    return [
        {"at": at, "x": rounded(result.intensity), "y": rounded(result.roof_flop_per_s)}
        for at, result in steps
        if _is_placed(result)
    ]


@unchecked
def predict_spec(plane: PredictPlane, *, title: str, subtitle: Sequence[str], places: Mapping[int, str]) -> Spec:
    """Specify the plane: roofs, ridges, the path of the dot, where its regime changes, and the size that is chosen.

    The page sets `at`, one of `places`: what a reader chooses each step by.
    """
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
        table("here")
        .transform_filter("datum.at === at")
        .mark_point(style="ring", size=HERE_PX2, strokeWidth=3, **QUIET)
        .encode(**AT),
    ]
    rows = datasets(plane) | {"here": _here_rows(plane, places)}
    first = places[max(places)] if places else ""
    return _path_plane(plane).specify(layers, rows, title=title, subtitle=subtitle, at=first)


def _dots(regimes: set[Regime]) -> alt.Chart:
    look: dict[str, Any] = {"description": alt.ExprRef("datum.name"), "tooltip": alt.ExprRef(_TOOLTIP)}
    dots = table("dots").mark_point(filled=True, opacity=1, strokeWidth=1.5, **look)
    return dots.encode(
        **axes(),
        **verdict_channels(regimes, wraps=False),
        size=alt.Size("area:Q", scale=None, legend=None),
        order=alt.Order("area:Q", sort="descending"),
    )
