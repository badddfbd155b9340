"""Exercise 2, solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def intensities(flop_per_s: float, bytes_per_s: Mapping[str, float | None]) -> dict[str, float | None]:
    """Both rates are over the same time, so their quotient is FLOPs per byte: one height, an intensity per level."""
    return {level: flop_per_s / rate if rate else None for level, rate in bytes_per_s.items()}


def shares(
    bytes_per_s: Mapping[str, float | None], peak_bytes_per_s: Mapping[str, float], stages: Mapping[str, float]
) -> dict[str, float]:
    """A level is as busy as its busiest stage, and its bytes count as one."""
    by_bytes = {level: rate / peak_bytes_per_s[level] for level, rate in bytes_per_s.items() if rate is not None}
    return {level: max(by_bytes.get(level, 0.0), stages.get(level, 0.0)) for level in by_bytes | stages}


def limiting_level(busy: Mapping[str, float], bound: float = 0.6) -> str | None:
    """Below the bound no level is the limiter: the kernel waits, or computes."""
    level = max(busy, key=busy.__getitem__, default=None)
    return level if level is not None and busy[level] >= bound else None
