"""Exercise 2: the memory level that limits a kernel. Fill in what raises NotImplementedError."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def intensities(flop_per_s: float, bytes_per_s: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return FLOPs per byte at each level; None if the bytes of a level were not measured."""
    raise NotImplementedError


def shares(
    bytes_per_s: Mapping[str, float | None], peak_bytes_per_s: Mapping[str, float], stages: Mapping[str, float]
) -> dict[str, float]:
    """Return how busy each level is, from 0 to 1; levels without any measurement are left out.

    Args:
        bytes_per_s: The rate of each level; None if that was not measured.
        peak_bytes_per_s: The possible rate of each level.
        stages: How busy the busiest stage of each level is, from 0 to 1, if that was measured.
    """
    raise NotImplementedError


def limiting_level(busy: Mapping[str, float], bound: float = 0.6) -> str | None:
    """Return the busiest level if it is at least `bound` busy; None if no level is."""
    raise NotImplementedError
