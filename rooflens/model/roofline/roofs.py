"""The roofs of one GPU's plane: what its launches' own reports hold, one line for each level and pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.records import LEVELS, Analysis, Pipe, Roof, RoofSource
from rooflens.model.roofline.flops import instruction_roofs
from rooflens.model.roofline.roof import FULL_CLOCK_FROM_RATIO, at_top_clock
from rooflens.model.roofline.standing import standings
from rooflens.model.roofline.work import main_work

ROOF_FROM_SHARE = 0.01
"""A pipe that does less than this part of a launch's FLOPs gets no roof: compilers load constants with fp16 pipes."""

SAME_ROOF_RATIO = 1.02
"""Roofs nearer to each other than this are one line with two names."""

BAND_FROM_RATIO = 1.03
"""Roofs whose launches differ by more than this get a band from the lowest to the highest."""

"""DRAM whose top clock gives more than this over the profiled one gets a second roof."""


class RoofLine(Struct, frozen=True):
    """One roof of the plane: the median of the launches' own peaks, and their spread.

    Where launches know theirs by different sources, only the most trusted one counts: a rated clock bends no line.

    Attributes:
        keys: Levels or pipes that share this line.
        roof: One of these peaks: where they are from, and at which clock they hold.
        peak: Bytes per second for a level, FLOP per second for a pipe.
        attainable: Median of the attainable roofs of the keys, in the same unit; None if none is known.
        instruction: `mma`, `wgmma` or `tcgen05` where the chip has two roofs for this tensor type; else empty.
        full_clock: Median peak of DRAM at its own top clock, where that is well over the profiled one.
    """

    keys: tuple[str, ...]
    peak: float
    low: float
    high: float
    roof: Roof
    attainable: float | None = None
    instruction: str = ""
    full_clock: float | None = None

    @property
    def spread(self) -> bool:
        """Whether the peaks of its launches differ by more than a line is wide."""
        return self.high / self.low > BAND_FROM_RATIO

    @property
    def is_measured(self) -> bool:
        """Whether it holds for the profiled runs; else it is drawn dashed, with its name (`roof.of`)."""
        return self.roof.is_measured


class LaunchPeak(Struct, frozen=True):
    """One launch's peak at one level or pipe."""

    key: str
    roof: Roof
    attainable_per_s: float | None = None
    instruction: str = ""
    full_clock_per_s: float | None = None


class RoofSet(Struct, frozen=True):
    """The roofs of several kernels: the diagonal ones, fastest first, and the flat ones, highest first.

    Attributes:
        clocks_hz: Lowest and highest SM clock of these kernels, both the median where they are alike; None if no
            report states it.
    """

    levels: tuple[RoofLine, ...] = ()
    pipes: tuple[RoofLine, ...] = ()
    clocks_hz: tuple[float, float] | None = None


def roofs_over(analyses: Iterable[Analysis]) -> RoofSet:
    """Find the roofs of those kernels that have a place; of all where none has."""
    known = list(analyses)
    # A short copy at an idle clock must not bend the roofs of the kernels that are drawn under them.
    drawn = [analysis for analysis in known if standings(analysis)] or known
    clocks_hz = [hz for analysis in drawn if (hz := analysis.kernel.counters.get("sm_clock_hz"))]
    return RoofSet(level_roofs(drawn), pipe_roofs(drawn), _clock_range(clocks_hz))


def level_roofs(analyses: Iterable[Analysis]) -> tuple[RoofLine, ...]:
    """Make one roof per memory level, the fastest first."""
    return _roofs([peak for analysis in analyses for peak in _level_peaks(analysis)])


def pipe_roofs(analyses: Iterable[Analysis]) -> tuple[RoofLine, ...]:
    """Make one roof per pipe that does main work worth drawing, the highest first; dense, at the profiled clock."""
    return _roofs([peak for analysis in analyses for peak in _pipe_peaks(analysis)])


def _level_peaks(analysis: Analysis) -> Iterator[LaunchPeak]:
    for name in LEVELS:
        level = analysis.levels.get(name)
        if level is not None and level.roof is not None:
            top = at_top_clock(analysis.kernel) if name == "dram" else None
            yield LaunchPeak(
                name, level.roof, level.attainable_per_s, full_clock_per_s=None if top is None else top.value
            )


def _pipe_peaks(analysis: Analysis) -> Iterator[LaunchPeak]:
    work = main_work(analysis)
    least = ROOF_FROM_SHARE * (work.total or inf)
    for name, pipe in analysis.pipes.items():
        if pipe.unit == work.unit and pipe.is_arithmetic and pipe.roof and (pipe.amount or 0.0) >= least:
            yield from _instruction_peaks(analysis, name, pipe, pipe.roof)


def _instruction_peaks(analysis: Analysis, name: str, pipe: Pipe, pipe_roof: Roof) -> Iterator[LaunchPeak]:
    """Yield the pipe's peak, or those of both instructions: the one that was not used is what could be reached."""
    both = instruction_roofs(analysis.kernel, name)
    if not both:
        yield LaunchPeak(name, pipe_roof, pipe.attainable_per_s)
    for key, roof in both.items():
        used = max(roof.value, pipe_roof.value) / min(roof.value, pipe_roof.value) < SAME_ROOF_RATIO
        yield LaunchPeak(key, roof, pipe.attainable_per_s if used else None, _instruction(key))


def _instruction(key: str) -> str:
    return next((name for name in ("wgmma", "tcgen05") if key.endswith(name)), "mma")


def _roofs(peaks: Iterable[LaunchPeak]) -> tuple[RoofLine, ...]:
    """Make one roof per key, the highest first, and merge those that would be drawn on top of each other."""
    by_key: dict[str, list[LaunchPeak]] = {}
    for peak in peaks:
        by_key.setdefault(peak.key, []).append(peak)
    one_each = sorted((_roof(key, own) for key, own in by_key.items()), key=lambda roof: -roof.peak)
    roofs: list[RoofLine] = []
    for roof in one_each:
        if roofs and roofs[-1].peak / roof.peak < SAME_ROOF_RATIO:
            roofs[-1] = _merged_roof(roofs[-1], roof)
        else:
            roofs.append(roof)
    return tuple(roofs)


def _roof(key: str, peaks: Sequence[LaunchPeak]) -> RoofLine:
    from statistics import median  # noqa: PLC0415 - only where a plane is drawn

    first = min((peak.roof for peak in peaks), key=_trust)
    peaks = [peak for peak in peaks if _trust(peak.roof) == _trust(first)]
    values = [peak.roof.value for peak in peaks]
    known = [peak.attainable_per_s for peak in peaks if peak.attainable_per_s]
    instruction = next((peak.instruction for peak in peaks if peak.instruction), "")
    # What is attained is never drawn above the roof itself.
    attainable = min(median(known), median(values)) if known else None
    full_clock = median([peak.full_clock_per_s or 0.0 for peak in peaks])
    return RoofLine(
        (key,),
        median(values),
        min(values),
        max(values),
        first,
        attainable,
        instruction,
        full_clock if full_clock > FULL_CLOCK_FROM_RATIO * median(values) else None,
    )


def _trust(roof: Roof) -> tuple[int, bool]:
    """Order roofs, the most trusted first: by source, and the clock of the run before a rated one."""
    return get_args(RoofSource).index(roof.source), roof.clock == "rated"


def _merged_roof(line: RoofLine, other: RoofLine) -> RoofLine:
    attained = [roof.attainable for roof in (line, other) if roof.attainable]
    lowest = min(attained) if attained else None
    return replace(
        line,
        keys=(*line.keys, *other.keys),
        roof=min(line.roof, other.roof, key=_trust),
        attainable=lowest,
        instruction=line.instruction or other.instruction,
        full_clock=line.full_clock or other.full_clock,
    )


def _clock_range(clocks: Sequence[float]) -> tuple[float, float] | None:
    """Find the range of clocks, or the median twice where no band is drawn: a line is at the median of the peaks."""
    from statistics import median  # noqa: PLC0415 - only where a plane is drawn

    if not clocks:
        return None
    low, high = min(clocks), max(clocks)
    middle = median(clocks)
    return (middle, middle) if high / low < BAND_FROM_RATIO else (low, high)
