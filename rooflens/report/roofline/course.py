"""The path of a kernel across the plane while it runs: its position in its ramp, on its plateau and in its tail.

Drawn for tensor work alone: the tensor pipe does nothing but these operations, so its samples say how their rate goes,
where those of other pipes hold index arithmetic too. Rates are the kernel's means, scaled by what each phase had of the
mean sample: the phases, weighted by their time, add up to the dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from rooflens import format as fmt
from rooflens.model.records import Analysis, Phases
from rooflens.model.roofline.work import main_work
from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import PAGE, QUIET, rounded, written
from rooflens.report.plane.plane import PhasePoint, Plane

LEVEL = "dram"
"""The level at which the path is drawn: its traffic is sampled."""

_PIPE = "tensor_pipe"
_MOST_OF_ALL = 0.9
"""From this part of the FLOPs on the path of the tensor pipe is that of the kernel."""


def phase_points(analysis: Analysis) -> tuple[PhasePoint, ...]:
    """Place the phases of a run; empty if there are fewer than two, or where the report cannot tell."""
    series, phases, level = analysis.kernel.series, analysis.phases, analysis.levels[LEVEL]
    rate = main_work(analysis).per_s
    if series is None or phases is None or not rate or not level.bytes_per_s or not _is_tensor_work(analysis):
        return ()
    work, traffic = (_shares(phases, series.shares.get(name, ())) for name in (_PIPE, LEVEL))
    points = tuple(
        PhasePoint(name, part, rate * work[name] / (level.bytes_per_s * traffic[name]), rate * work[name])
        for name, part in _phase_parts(phases)
        if work.get(name) and traffic.get(name)
    )
    return points if len(points) > 1 else ()


def _is_tensor_work(analysis: Analysis) -> bool:
    """Tell whether the work that the kernel is placed by is done by the tensor pipe."""
    tensor = sum(amount for name, amount in analysis.flop.items() if name.startswith("tensor_"))
    return main_work(analysis).unit == "op" or tensor >= _MOST_OF_ALL * (analysis.flop_total or 0.0) > 0


def _phase_parts(phases: Phases) -> tuple[tuple[str, float], ...]:
    return (("ramp", phases.ramp), ("plateau", phases.plateau), ("tail", phases.tail))


def _shares(phases: Phases, share: Sequence[float | None]) -> dict[str, float]:
    """Return the mean of each phase over that of the run; empty if nothing was sampled."""
    means: dict[str, float] = {}
    begin = 0.0
    for name, part in _phase_parts(phases):
        end = begin + part
        known = sampled(share[round(begin * len(share)) : round(end * len(share))])
        means |= {name: fmean(known)} if known else {}
        begin = end
    known = sampled(share)
    mean = fmean(known) if known else 0.0
    return {name: value / mean for name, value in means.items()} if mean else {}


def sampled(share: Sequence[float | None]) -> list[float]:
    """Leave out samples that are missing."""
    return [value for value in share if value is not None]


def course_rows(plane: Plane) -> list[dict[str, Any]]:
    """Make one row per phase of each launch that has a path, in the order of the run."""
    return [
        {
            "k": launch.key,
            "g": launch.group_key,
            "i": i,
            "x": rounded(point.intensity_flop_per_byte),
            "y": rounded(point.flop_per_s),
            "words": f"{point.phase} {fmt.percent(point.part)}",
        }
        for launch in plane.launches
        for i, point in enumerate(launch.phases)
    ]


NAME_PX, NEAR_PX = 330, 24
"""Room at the right edge that names of flat roofs take, and how near to one a phase has no name."""


def course_layers(picked: str, flat_per_s: Sequence[str]) -> Iterator[alt.Chart]:
    """Draw the path of the picked launch, with a small dot for each phase, and its name where there is room.

    Args:
        picked: The expression that holds for rows of the picked launch.
        flat_per_s: Rates of the flat roofs, as numbers of an expression.
    """
    rows = alt.Chart().transform_filter(f"level === '{LEVEL}' && {picked}")
    yield rows.mark_line(style="gap", **QUIET).encode(**PAGE.at, order=alt.Order("i:Q"), detail=alt.Detail("k:N"))
    yield rows.mark_point(style="ridge", size=30, **QUIET).encode(**PAGE.at)
    near = [f"abs(log({rate} / datum.y)) / LN10 * h / spanY < {NEAR_PX}" for rate in flat_per_s]
    crowded = f"log(x1 / datum.x) / LN10 * w / spanX < {NAME_PX} && ({' || '.join(near) or 'false'})"
    yield from written(
        rows.transform_filter(f"w >= 480 && !({crowded})"), "note", align="left", baseline="middle", dx=8
    )
