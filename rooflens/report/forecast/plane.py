"""Where predictions are in the datasheet's roofline of a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite, log10

from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.predict.forecast import Forecast, ForecastRow, forecast
from rooflens.model.predict.forecast import moving as moving_sizes
from rooflens.model.roofline.unit_names import resource_label
from rooflens.report.plane.roofs import named_flat, named_slope
from rooflens.report.plane.simple import At, Dot, Drawn
from rooflens.report.words.forecast import crossing_words, sizes_text
from rooflens.report.words.labels import BOUND_LABELS

APART_DECADES = 0.09
"""Of longer sweeps only steps that stand so far from the one before are drawn; the others would make a thick line."""

MOST_NAMED = 5
"""Parts of a composite operation that are named at their dots, the longest first."""

STEP_PART = 0.15
"""Area of a step's dot as a part of the largest; dots of parts grow with their share of the floor."""


def planes(rows: Sequence[ForecastRow], places: Sequence[Mapping[int, str]] = ()) -> tuple[Drawn, ...]:
    """Place each row; all planes share their axes, so that GPUs can be compared by eye.

    Args:
        rows: An operation on one GPU in one type each, with its sizes.
        places: For each row, what a reader chooses its steps by.
    """
    alone = [_plane(row, places[i] if places else {}) for i, row in enumerate(rows)]
    spots = tuple(spot for plane in alone for spot in [*plane.spots, *_ridges(plane)])
    return tuple(replace(plane, also=spots) for plane in alone)


def _ridges(plane: Drawn) -> Iterator[At]:
    yield from ((flat.peak / slope.peak, flat.peak) for flat in plane.flats for slope in plane.slopes)


def _plane(row: ForecastRow, places: Mapping[int, str]) -> Drawn:
    result = row.steps[-1][1]
    is_composite = len(row.steps) == 1 and bool(result.parts)
    dots = _part_dots(result) if is_composite else _step_dots(row)
    crossings = [] if is_composite else [dot for sizes, _ in row.crossings if (dot := _crossing(row, sizes))]
    walked = sorted([*dots, *crossings], key=lambda dot: dot.x) if len(row.steps) > 1 else []
    measured = _measured_dots(row)
    slope = result.bandwidth_bytes_per_s
    return Drawn(
        title="",
        dots=(*dots, *crossings, *(one for one in measured[:1])),
        slopes=(named_slope(("dram",), slope, None),),
        flats=tuple(named_flat((key,), peak) for key, peak in _pipes(row)),
        paths=(tuple((dot.x, dot.y) for dot in walked),) if len(walked) > 1 else (),
        links=(tuple((dot.x, dot.y) for dot in measured),) if measured else (),
        rings=tuple((dot.x, dot.y) for dot in crossings),
        chosen={
            at: (found.intensity, found.roof_flop_per_s or 0.0)
            for i, at in places.items()
            if _is_placed(found := row.steps[i][1])
        },
    )


def _is_placed(result: Forecast) -> bool:
    """Return whether logarithmic axes can place a forecast."""
    return bool(result.roof_flop_per_s) and result.intensity > 0 and isfinite(result.intensity)


def _step_dots(row: ForecastRow) -> tuple[Dot, ...]:
    """Place the steps that keep apart, both ends among them; the ends are named."""
    placed = [(sizes, result) for sizes, result in row.steps if _is_placed(result)]
    chosen: list[Dot] = []
    for at, (sizes, result) in enumerate(placed):
        dot = _forecast_dot(row, sizes, result)
        if at in {0, len(placed) - 1} or _decades_apart(chosen[-1], dot) >= APART_DECADES:
            chosen.append(dot)
    if len(chosen) > 1 and _decades_apart(chosen[0], chosen[-1]) < APART_DECADES:
        first, last = chosen[0], chosen[-1]
        return (replace(last, label=f"{first.name} to {last.name}", name=f"{first.name} to {last.name}"),)
    first, *others = (
        replace(dot, label=dot.name) if at in {0, len(chosen) - 1} else dot for at, dot in enumerate(chosen)
    )
    return (first, *others)


def _part_dots(whole: Forecast) -> tuple[Dot, ...]:
    """Place the parts of a composite operation, the longest named; area is their share of the floor."""
    placed = sorted((part for part in whole.parts if _is_placed(part)), key=lambda part: -part.t_lower_s)
    longest_s = (placed[0].t_lower_s if placed else 0.0) or 1.0
    dots = [
        Dot(
            part.intensity,
            part.roof_flop_per_s or 0.0,
            part.regime,
            part.label,
            part=part.t_lower_s / longest_s,
            facts=_forecast_facts(part),
        )
        for part in placed
    ]
    for first, *others in Drawn("", tuple(dots)).together()[:MOST_NAMED]:
        more = f" and {len(others)} more" if others else ""
        dots[first] = replace(dots[first], label=f"{dots[first].name}{more}")
    return tuple(dots)


def _forecast_dot(row: ForecastRow, sizes: Mapping[str, int], result: Forecast) -> Dot:
    name = sizes_text(row, sizes) if len(row.steps) > 1 and moving_sizes(row) else row.operation.name
    return Dot(
        result.intensity,
        result.roof_flop_per_s or 0.0,
        result.regime,
        name,
        part=STEP_PART,
        facts=_forecast_facts(result),
    )


def _forecast_facts(result: Forecast) -> dict[str, str]:
    return {
        "Regime": BOUND_LABELS[result.regime],
        "Intensity": fmt.intensity(result.intensity),
        "At best": fmt.si(result.roof_flop_per_s, "FLOP/s"),
        "Of the peak": f"{fmt.percent(result.share_of_peak)} ({resource_label(result.peak)})",
        "Floor": fmt.duration(result.t_lower_s * 1e9),
    }


def _crossing(row: ForecastRow, sizes: Mapping[str, int]) -> Dot | None:
    """Place the sizes from which the regime is another one; None if they have no place."""
    result = forecast(row.operation, sizes, row.dtype, row.gpu, row.options)
    if not _is_placed(result):
        return None
    said = crossing_words(row, sizes, result.regime)
    return replace(_forecast_dot(row, sizes, result), name=said, label=said)


def _measured_dots(row: ForecastRow) -> list[Dot]:
    """Place the measured rate, and the roof above it."""
    result = row.steps[0][1]
    if not result.measured_s or not _is_placed(result):
        return []
    rate, top = result.flop / result.measured_s, result.roof_flop_per_s or 0.0
    said = f"measured: {fmt.percent(rate / top)} of its roof"
    return [Dot(result.intensity, rate, "unknown", said, label=said), Dot(result.intensity, top, "", "")]


def _pipes(row: ForecastRow) -> tuple[tuple[str, float], ...]:
    """List the FLOP pipes by peak, highest first; pipes of equal peak share the first name."""
    last = row.steps[-1][1]
    results: Iterable[Forecast] = [last, *last.parts]
    peaks = {one.peak_flop_per_s: one.peak for one in reversed([*results]) if one.flop or not last.parts}
    return tuple((key, peak) for peak, key in sorted(peaks.items(), reverse=True))


def _decades_apart(dot: Dot, other: Dot) -> float:
    return max(abs(log10(dot.x / other.x)), abs(log10(dot.y / other.y)))
