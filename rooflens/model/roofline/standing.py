"""Where a kernel stands in the plane: the one rule for reports, ladders, comparisons and sweeps.

A kernel stands at the level that binds it; where a pipe or a wait does, at the level whose roof is nearest. Its dot is
at the work per byte of that level, and at its work per second. What it is measured against is the roof that is drawn
there; or, where a stage or a pipe without a line of its own is fuller, that unit's: the work per second at which it
would be full.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct

from rooflens.model.records import LEVELS, Analysis, Roof
from rooflens.model.roofline.work import MainWork, Unit, main_work

SAME_ROOF = 0.02
"""Roofs that differ by less are one: shares come from different passes."""


class Binding(Struct, frozen=True):
    """What fills up first for a kernel, and has no line of its own in the plane: a short bar over its dot.

    Attributes:
        unit: Level or pipe: `l1`, `issue`, `alu`.
        stage: The stage of that level, such as `lsu_input`; None for a pipe.
        share: How full it is, 0 to 1.
        per_s: The kernel's work per second if it were full: achieved / share.
        bytes_per_s: The same for a stage in bytes of its level, which is its roof at this traffic; None for a pipe.
    """

    unit: str
    stage: str | None
    share: float
    per_s: float
    bytes_per_s: float | None


class Standing(Struct, frozen=True):
    """A kernel in the plane of one memory level.

    Attributes:
        level: The level whose bytes its intensity counts.
        intensity: Work per byte.
        per_s: Work per second.
        unit: `FLOP`, or `op` where its main work is integer tensor operations.
        slope: The roof of the level; None if it is not known.
        roof_per_s: min(P, AI x BW), which is drawn over it; None if neither is known.
        binding: What is nearer than that and has no line; None where the drawn roof is what binds.
        is_limit: The level is the one that binds the kernel by its verdict.
    """

    level: str
    intensity: float
    per_s: float
    unit: Unit
    slope: Roof | None
    roof_per_s: float | None
    binding: Binding | None = None
    is_limit: bool = False

    @property
    def limit_per_s(self) -> float | None:
        """What it is measured against: its binding unit's roof, else the drawn one."""
        return self.binding.per_s if self.binding is not None else self.roof_per_s

    @property
    def share(self) -> float | None:
        """How near it is to that, 0 to 1; None if no roof is known."""
        limit = self.limit_per_s
        return self.per_s / limit if limit else None


def standings(analysis: Analysis) -> tuple[Standing, ...]:
    """Place a kernel at each level where it has an intensity; at none if its work was not counted or is 0."""
    work = main_work(analysis)
    if not work.per_s or not 0 < work.per_s < inf:
        return ()
    found = (_standing_at(analysis, name, work) for name in LEVELS)
    return tuple(one for one in found if one is not None)


class Ceiling(Struct, frozen=True):
    """What DRAM allows a kernel at its intensity, whatever its time.

    Attributes:
        intensity: Work per byte of DRAM.
        per_s: min(P, AI x BW); None if no roof is known.
        unit: As in `Standing`.
    """

    intensity: float
    per_s: float | None
    unit: Unit


def ceiling(analysis: Analysis) -> Ceiling | None:
    """Return what DRAM allows a kernel; None where its work or the bytes of DRAM are not known."""
    work, dram = main_work(analysis), analysis.levels["dram"]
    intensity = work.intensity(dram)
    return None if intensity is None else Ceiling(intensity, work.roof_per_s(dram), work.unit)


def standing(analysis: Analysis) -> Standing | None:
    """Place a kernel where it is judged; None if it stands nowhere."""
    return judged(standings(analysis))


def judged(standings: Sequence[Standing]) -> Standing | None:
    """Return where a kernel is judged: at the level that binds it, else at the one with the nearest roof."""
    limits = [one for one in standings if one.is_limit]
    return min(limits or standings, key=lambda one: one.roof_per_s or inf, default=None)


def _standing_at(analysis: Analysis, name: str, work: MainWork) -> Standing | None:
    level = analysis.levels.get(name)
    intensity = None if level is None else work.intensity(level)
    if level is None or intensity is None or not 0 < intensity < inf or work.per_s is None:
        return None
    roof_per_s = work.roof_per_s(level)
    is_limit = analysis.verdict.resource == name
    return Standing(
        name,
        intensity,
        work.per_s,
        work.unit,
        level.roof,
        roof_per_s,
        _binding(analysis, name, work.per_s, roof_per_s, is_limit=is_limit),
        is_limit,
    )


def _binding(
    analysis: Analysis, name: str, per_s: float, roof_per_s: float | None, *, is_limit: bool
) -> Binding | None:
    """Find what is fuller than the drawn roof: the level's busiest stage, and the kernel's limiter without a line."""
    level, limiter = analysis.levels[name], analysis.verdict.bottleneck
    unit, stage, share = name, level.binding_stage, level.share if level.binding_stage is not None else None
    is_of_level = limiter is not None and limiter.resource == name
    if limiter is not None and (is_limit or limiter.resource not in LEVELS) and limiter.share > (share or 0.0):
        unit, share = limiter.unit or limiter.resource or "", limiter.share
        filled = analysis.levels.get(unit)
        stage = filled.leading_stage if filled is not None else None
        # Counted pipes have a flat roof of their own on the chart; a second line for one would say it twice.
        if not is_of_level and _has_a_line(analysis, unit):
            return None
    if not share or not unit:
        return None
    # What the level would move with its busiest unit full: a roof only where it is below the one that is drawn.
    full_per_s = per_s / share
    if roof_per_s is not None and full_per_s >= roof_per_s * (1 - SAME_ROOF):
        return None
    bytes_per_s = level.bytes_per_s / share if stage is not None and level.bytes_per_s else None
    return Binding(unit, stage, share, full_per_s, bytes_per_s)


def _has_a_line(analysis: Analysis, unit: str) -> bool:
    """Return whether a pipe's own roof is drawn: that of counted arithmetic."""
    pipe = analysis.pipes.get(unit)
    return pipe is not None and pipe.is_arithmetic and pipe.roof is not None
