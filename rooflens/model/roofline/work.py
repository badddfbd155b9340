"""The main work of a kernel: what its place on a roofline is drawn from.

Integer tensor operations are not FLOPs, so a kernel has up to two kinds of work. The main one is that which needs more
time at its peaks. A point drawn from the other, as of the fp32 epilogue of an int8 product, would be a false picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from rooflens.model.records import Analysis, Level, Pipe, ratio

Unit = Literal["FLOP", "op"]


class MainWork(Struct, frozen=True):
    """Operations of a kernel's main kind.

    Attributes:
        total: How many; None if a part is unknown.
        peak_per_s: What its mix of types attains at its own peaks; None if one is unknown.
    """

    unit: Unit
    total: float | None
    per_s: float | None
    peak_per_s: float | None

    def intensity(self, level: Level) -> float | None:
        """Return the operations per byte that a level moved; None without any."""
        return ratio(self.total, level.amount_bytes) or None

    def roof_per_s(self, level: Level) -> float | None:
        """Return the roof over it at a level, min(P, AI x BW); None without intensity or a known roof."""
        intensity = self.intensity(level)
        if intensity is None:
            return None
        slope = intensity * (level.peak_bytes_per_s or 0.0)
        return min((one for one in (slope, self.peak_per_s) if one), default=None)


def main_unit(pipes: Iterable[Pipe]) -> Unit:
    """Tell which kind of work needs more time at its peaks; more operations where a peak is unknown."""
    working = [pipe for pipe in pipes if pipe.is_arithmetic and pipe.amount]
    by_share = all(pipe.share is not None for pipe in working)
    weights = {"FLOP": 0.0, "op": 0.0}
    for pipe in working:
        weights[pipe.unit] += (pipe.share if by_share else pipe.amount) or 0.0
    return "op" if weights["op"] > weights["FLOP"] else "FLOP"


def main_work(analysis: Analysis) -> MainWork:
    """Find the main work of a launch."""
    if main_unit(analysis.pipes.values()) == "FLOP":
        return MainWork("FLOP", analysis.flop_total, analysis.flop_per_s, analysis.flop_peak_per_s)
    pipes = [pipe for pipe in analysis.pipes.values() if pipe.unit == "op" and pipe.amount]
    total = sum(pipe.amount or 0.0 for pipe in pipes) if analysis.flop_total is not None else None
    times_s = [ratio(pipe.amount, pipe.peak_per_s) for pipe in pipes]
    known = [time_s for time_s in times_s if time_s]
    return MainWork(
        "op", total, analysis.kernel.per_s(total), ratio(total, sum(known)) if len(known) == len(times_s) else None
    )
