"""Bounds of a kernel's time: what its work and its traffic need at their peaks, and the time it took.

    T_math = sum over types of FLOP_i / peak_i        T_level = bytes of the busiest stage / its peak
    T_lower = max(T_math, T_DRAM)                      T_upper = T_math + T_DRAM

The lower bound is reached where arithmetic and traffic overlap fully, the upper one where they do not overlap at all;
a kernel above it waits for something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from rooflens.model.records import Analysis

Position = Literal["below", "near", "between", "above"]

NEAR_LOWER = 1.2
"""Up to this factor over the lower bound a kernel counts as near it: better overlap would gain less than a fifth."""
NEAR_UPPER = 1.05
"""Up to this factor over the sum a kernel counts as doing both in turn: no peak is reached to the last per cent."""
_PASSES_DISAGREE = 0.98
"""Under this part of the lower bound a time is more than rounding: the replay passes disagreed."""


class Bounds(Struct, frozen=True):
    """Times in nanoseconds; of the mean launch where a record stands for several.

    Attributes:
        measured_ns: What the kernel took.
        math_ns: T_math; 0 without arithmetic, None where a part of it or of its peaks is unknown.
        math_parts_ns: Its parts by pipe, those without work left out.
        level_ns: Memory level -> T_level, as far as known.
    """

    measured_ns: float
    math_ns: float | None
    math_parts_ns: Mapping[str, float]
    level_ns: Mapping[str, float]

    @property
    def memory_ns(self) -> float | None:
        """T_DRAM: the traffic to DRAM at its peak."""
        return self.level_ns.get("dram")

    @property
    def lower_ns(self) -> float | None:
        """The larger of T_math and T_DRAM: both overlap fully."""
        return None if self.math_ns is None or self.memory_ns is None else max(self.math_ns, self.memory_ns)

    @property
    def upper_ns(self) -> float | None:
        """The sum of T_math and T_DRAM: they do not overlap."""
        return None if self.math_ns is None or self.memory_ns is None else self.math_ns + self.memory_ns

    @property
    def position(self) -> Position | None:
        """Return where the measured time lies relative to the bounds; None without bounds or without any work."""
        lower_ns, upper_ns = self.lower_ns, self.upper_ns
        if not lower_ns or upper_ns is None:
            return None
        if self.measured_ns < _PASSES_DISAGREE * lower_ns:
            return "below"
        if self.measured_ns <= NEAR_LOWER * lower_ns:
            return "near"
        return "between" if self.measured_ns <= NEAR_UPPER * upper_ns else "above"


def time_bounds(analysis: Analysis) -> Bounds | None:
    """Find the bounds of one kernel's time; None where its time is unknown.

    A share is the time that a resource needs at its peak over the time the kernel took, for sums of launches too.
    """
    measured_ns = analysis.kernel.duration_ns
    if not measured_ns or analysis.kernel.failed:
        return None
    parts = {name: pipe.share for name, pipe in analysis.pipes.items() if pipe.is_arithmetic and pipe.amount}
    known = [share for share in parts.values() if share is not None]
    complete = analysis.flop_total is not None and len(known) == len(parts)
    levels = {name: level.share for name, level in analysis.levels.items()}
    return Bounds(
        measured_ns=measured_ns,
        math_ns=measured_ns * sum(known) if complete else None,
        math_parts_ns={name: measured_ns * share for name, share in parts.items() if share is not None},
        level_ns={name: measured_ns * share for name, share in levels.items() if share is not None},
    )
