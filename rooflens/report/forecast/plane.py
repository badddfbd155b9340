"""Where predictions stand in the datasheet's roofline of a GPU: plain rows, SI base units, no drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, log10

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.predict.forecast import Forecast, Regime, Row, forecast
from rooflens.model.predict.forecast import moving as moving_sizes
from rooflens.report.plane.plane import Domain, aired, free_edge
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
    xs = [x for plane in alone for x in _xs(plane)]
    ys = [y for plane in alone for y in _ys(plane)]
    low, high = aired(xs, LEAST_DECADES)
    furthest = max((dot.x for plane in alone for dot in plane.dots), default=low)
    # The names of flat roofs stand at their right end: dots should not reach below them.
    free = free_edge(furthest, low, NAMES_PART)
    return tuple(replace(plane, x_domain=(low, max(high, free)), y_domain=aired(ys, LEAST_DECADES)) for plane in alone)


def _xs(plane: PredictPlane) -> list[float]:
    return [*(dot.x for dot in plane.dots), *(ridge for _, ridge, _ in plane.ridges)]


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
