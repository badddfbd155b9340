"""Where an analysis stands in the roofline plane, and the roofs of several: SI base units, no drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeGuard

from msgspec import Struct

from rooflens.model.records import Analysis
from rooflens.model.roofline.roofs import BAND_FROM_RATIO, RoofLine, level_roofs, pipe_roofs
from rooflens.model.roofline.work import main_work
from rooflens.report.words.labels import UNITS


class Place(Struct, frozen=True):
    """Where a kernel stands at one memory level, by its main work.

    Attributes:
        roof_flop_per_s: min(P, AI x BW) with the kernel's own peaks; None if its report holds neither.
        unit: `FLOP`, or `OP` where its main work is integer tensor operations: its numbers count those then.
    """

    level: str
    intensity_flop_per_byte: float
    flop_per_s: float
    roof_flop_per_s: float | None
    unit: str = "FLOP"


class RoofSet(Struct, frozen=True):
    """The roofs of several kernels: the diagonal ones, fastest first, and the flat ones, highest first.

    Attributes:
        clocks_hz: Lowest and highest SM clock of these kernels, both the median where they are alike; None if no
            report states it.
    """

    levels: tuple[RoofLine, ...]
    pipes: tuple[RoofLine, ...]
    clocks_hz: tuple[float, float] | None


def places(analysis: Analysis) -> list[Place]:
    """Place a kernel at each level where it has an intensity."""
    work = main_work(analysis)
    if not drawable(work.per_s):
        return []
    return [
        Place(name, intensity, work.per_s, _roof(intensity, level.peak_bytes_per_s, work.peak_per_s), UNITS[work.unit])
        for name, level in analysis.levels.items()
        if drawable(intensity := work.intensity(level))
    ]


def roofs_over(analyses: Iterable[Analysis]) -> RoofSet:
    """Find the roofs of those kernels that have a place; of all where none has."""
    known = list(analyses)
    # A short copy at an idle clock must not bend the roofs of the kernels that are drawn under them.
    drawn = [analysis for analysis in known if places(analysis)] or known
    clocks_hz = [hz for analysis in drawn if (hz := analysis.kernel.counters.get("sm_clock_hz"))]
    return RoofSet(level_roofs(drawn), pipe_roofs(drawn), _range(clocks_hz))


def drawable(value: float | None) -> TypeGuard[float]:
    """Return whether a logarithmic axis can place a value."""
    return value is not None and 0 < value < inf


def _roof(intensity: float, peak_bytes_per_s: float | None, flop_peak_per_s: float | None) -> float | None:
    """Work out min(P, AI x BW) of a launch, over what its report holds of the two."""
    slope = intensity * (peak_bytes_per_s or 0.0)
    return min((v for v in (slope, flop_peak_per_s) if v), default=None)


def _range(clocks: Sequence[float]) -> tuple[float, float] | None:
    """Find the range of clocks, or the median twice where no band is drawn: a line is at the median of the peaks."""
    from statistics import median  # noqa: PLC0415 - only where a plane is drawn

    if not clocks:
        return None
    low, high = min(clocks), max(clocks)
    middle = median(clocks)
    return (middle, middle) if high / low < BAND_FROM_RATIO else (low, high)
