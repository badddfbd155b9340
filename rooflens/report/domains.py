"""Ranges of logarithmic axes around the values that they show."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Domain = tuple[float, float]
"""From the low end to the high end, in the units of the axis."""

HALF_DECADE = sqrt(10)


def aired(values: Sequence[float], least_decades: float) -> Domain:
    """Put half a decade of air around values; a range that would be too short grows at its low end."""
    low, high = min(values, default=1.0) / HALF_DECADE, max(values, default=1000.0) * HALF_DECADE
    return min(low, high / 10**least_decades), high
