"""Inside a kernel's run: its sampled units as lines over time, its plateau as a band, and words that say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import RESIDENT, Analysis, Phases, Series
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.roofline.work import main_work
from rooflens.report.roofline.course import LEVEL, phase_points, sampled
from rooflens.report.words.labels import UNITS

MOST_POINTS = 80
"""Points of a line at most: a half of a card is hardly wider than six times as many pixels."""
TABLE_ROWS = 8
IDLE_SHARE = 0.02
"""A unit that never reaches this part of its peak is named and not drawn."""

_WIDTH = 1000
"""Of the drawing, in its own units; it is stretched to the room there is."""
_MEMORY_DASHES = {"dram": "", "l2": "7 3", "l1": "7 3 2 3"}
_PIPE_DASHES = {"tensor_pipe": "", "fma": "7 3", "alu": "7 3 2 3", "xu": "2 3"}
"""Dash by unit: as the roofs of the levels have it. Any other unit is drawn in ink."""
_FAR_APART = 0.1
"""Means of samples and counters that differ by more of the peak are pointed out: they come from different passes."""
_A_PART = 0.005
"""A shorter phase is noise."""


class CourseLine(Struct, frozen=True):
    """One unit over the run.

    Attributes:
        kind: Class of its colour: memory, compute, or another.
        dash: Pattern of its stroke; empty for a solid line.
        leads: It is the busiest unit on the plateau.
    """

    label: str
    kind: str
    dash: str
    leads: bool
    path: str


class Band(Struct, frozen=True):
    """The plateau, in units of the drawing."""

    start: int
    width: int


class Course(Struct, frozen=True):
    """The figure, and the same in words and numbers.

    Attributes:
        width: Of the drawing; it is 100 high, from 100 % of the peak down to 0.
        warps: Area of the resident warps as a path; empty if not sampled.
        words: What the figure shows, for those who do not see it.
        sentence: The phases; empty without a clear plateau.
        path: The kernel's point on the roofline in each phase; empty if the report cannot tell.
        doubt: What the samples say otherwise than the counters; empty if they agree.
        idle: Units that did next to nothing.
        columns: The columns of the table besides the time.
        rows: Start of a part of the run in nanoseconds, and the mean share of every column in it.
    """

    width: int
    duration_ns: float
    lines: tuple[CourseLine, ...]
    warps: str
    plateau: Band | None
    words: str
    sentence: str
    path: str
    doubt: str
    idle: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[float, tuple[float | None, ...]], ...]


def course(series: Series, analysis: Analysis) -> Course:
    """Draw the samples taken while a kernel ran."""
    gpu, phases = analysis.kernel.gpu, analysis.phases
    units = {name: share for name, share in series.shares.items() if name != RESIDENT}
    drawn = {name: share for name, share in units.items() if max(sampled(share), default=0.0) >= IDLE_SHARE}
    warps = series.shares.get(RESIDENT, ())
    columns = {resource_label(name, gpu): share for name, share in drawn.items()}
    columns |= {"resident warps": warps} if warps else {}
    samples = max(len(share) for share in series.shares.values())
    duration_ns = analysis.kernel.duration_ns or samples * series.interval_ns
    lead = phases.resource if phases else None
    return Course(
        width=_WIDTH,
        duration_ns=duration_ns,
        lines=tuple(_course_line(name, share, gpu, leads=name == lead) for name, share in drawn.items()),
        warps=_area(warps),
        plateau=None if phases is None else Band(_x(phases.ramp), _x(phases.plateau)),
        words=_course_words(columns, phases, duration_ns, gpu),
        sentence=_sentence(phases, gpu),
        path=_roofline_path(analysis),
        doubt=_doubt(analysis, units.get("dram", ())),
        idle=tuple(resource_label(name, gpu) for name in units if name not in drawn),
        columns=tuple(columns),
        rows=tuple(_course_rows(columns, samples, duration_ns)),
    )


def _course_line(name: str, share: Sequence[float | None], gpu: str | None, *, leads: bool) -> CourseLine:
    dashes = {**_MEMORY_DASHES, **_PIPE_DASHES}
    kind = "memory" if name in _MEMORY_DASHES else "compute" if name in _PIPE_DASHES else "other"
    return CourseLine(resource_label(name, gpu), kind, dashes.get(name, ""), leads, _path(share))


def _x(part: float) -> int:
    return round(_WIDTH * part)


def _points(share: Sequence[float | None]) -> list[tuple[int, int] | None]:
    """Place the samples, or the means of neighbours where there are many, at the middle of their time."""
    parts = _course_parts(share, min(MOST_POINTS, len(share)))
    means = [_mean(part) for part in parts]
    return [
        None if mean is None else (_x((i + 0.5) / len(means)), round(100 * (1 - min(1.0, mean))))
        for i, mean in enumerate(means)
    ]


def _path(share: Sequence[float | None]) -> str:
    """Write a line that breaks where samples are missing."""
    points = _points(share)
    starts = [i == 0 or points[i - 1] is None for i in range(len(points))]
    return "".join(
        f"{'M' if start else 'L'}{point[0]} {point[1]}" for point, start in zip(points, starts, strict=True) if point
    )


def _area(share: Sequence[float | None]) -> str:
    """Write the area under a line from the run's start to its end; a missing sample counts as its neighbours."""
    points = [point for point in _points(share) if point is not None] if share else []
    if not points:
        return ""
    line = "".join(f"L{x} {y}" for x, y in points)
    return f"M0 100L0 {points[0][1]}{line}L{_WIDTH} {points[-1][1]}V100z"


def _course_rows(
    columns: Mapping[str, Sequence[float | None]], samples: int, duration_ns: float
) -> Iterator[tuple[float, tuple[float | None, ...]]]:
    count = min(TABLE_ROWS, samples)
    parts = [_course_parts(share, count) for share in columns.values()]
    for i in range(count):
        yield duration_ns * i / count, tuple(_mean(part[i]) for part in parts)


def _course_parts(share: Sequence[float | None], count: int) -> list[Sequence[float | None]]:
    """Cut samples into parts of about equal length, none empty."""
    cuts = [round(i * len(share) / count) for i in range(count + 1)]
    return [share[start:end] for start, end in pairwise(cuts)]


def _mean(share: Sequence[float | None]) -> float | None:
    known = sampled(share)
    return fmean(known) if known else None


def _course_words(
    columns: Mapping[str, Sequence[float | None]], phases: Phases | None, duration_ns: float, gpu: str | None
) -> str:
    means = (f"{name} {fmt.percent(_mean(share))}" for name, share in columns.items())
    said = _sentence(phases, gpu)
    return f"Over {fmt.duration(duration_ns)}, on average: {', '.join(means)}.{f' {said}' if said else ''}"


def _doubt(analysis: Analysis, samples: Sequence[float | None]) -> str:
    """Compare the mean of DRAM's samples with the share by the counters: their passes and peaks are not the same."""
    sampled, counted = _mean(samples), analysis.levels["dram"].share
    if sampled is None or counted is None or abs(sampled - counted) <= _FAR_APART:
        return ""
    label = resource_label("dram", analysis.kernel.gpu)
    return f"{label} averages {fmt.percent(sampled)} in these samples and {fmt.percent(counted)} in the counters."


def _roofline_path(analysis: Analysis) -> str:
    """Say where the dot of the roofline goes: `On the roofline at HBM3: ramp 210 FLOP/B, 12.0 TFLOP/s; plateau ...`."""
    points = phase_points(analysis)
    if not points:
        return ""
    unit = UNITS[main_work(analysis).unit]
    places = (
        f"{point.phase} {fmt.intensity(point.intensity_flop_per_byte, unit)}, {fmt.si(point.flop_per_s, f'{unit}/s')}"
        for point in points
    )
    return f"On the roofline at {resource_label(LEVEL, analysis.kernel.gpu)}: {'; '.join(places)}."


def _sentence(phases: Phases | None, gpu: str | None) -> str:
    """Say the phases: `Plateau: tensor pipe 71 % for 43 % of the run; tail 52 %, with 28 % of the plateau's warps.`."""
    if phases is None:
        return ""
    ramp = [f"ramp {fmt.percent(phases.ramp)}"] if phases.ramp > _A_PART else []
    plateau = f"plateau: {resource_label(phases.resource, gpu)} {fmt.percent(phases.share)}"
    parts = [*ramp, f"{plateau} for {fmt.percent(phases.plateau)} of the run"]
    if phases.tail > _A_PART:
        few = phases.warps_in_tail
        warps = "" if few is None else f", with {fmt.percent(few)} of the plateau's warps"
        parts.append(f"tail {fmt.percent(phases.tail)}{warps}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."
