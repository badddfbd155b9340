"""Exercise 1, solved."""

from __future__ import annotations


def ridge(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """FLOP / peak = bytes / bandwidth, solved for FLOP / bytes."""
    return peak_flop_per_s / bandwidth_bytes_per_s


def attainable(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """The lower of the two roofs: the slope left of the ridge, the flat one right of it."""
    return min(peak_flop_per_s, intensity * bandwidth_bytes_per_s)


def limiter(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> str:
    """Which of the two is the lower one."""
    return "memory" if intensity < ridge(peak_flop_per_s, bandwidth_bytes_per_s) else "compute"


def peak_at_clock(sm_count: int, multiply_adds_per_cycle: int, clock_hz: float) -> float:
    """A multiply-add is two FLOP."""
    return 2 * sm_count * multiply_adds_per_cycle * clock_hz
