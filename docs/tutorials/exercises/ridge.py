"""Exercise 1: the intersection of a GPU's two roofs. Fill in what raises NotImplementedError."""

from __future__ import annotations


def ridge(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Return the intensity, in FLOPs per byte, at which arithmetic and memory take equally long."""
    raise NotImplementedError


def attainable(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Return the most FLOP/s that a kernel of `intensity` FLOPs per byte can reach."""
    raise NotImplementedError


def limiter(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> str:
    """Return "memory" left of the ridge, "compute" from the ridge on."""
    raise NotImplementedError


def peak_at_clock(sm_count: int, multiply_adds_per_cycle: int, clock_hz: float) -> float:
    """Return the peak in FLOP/s of a pipe that does this many multiply-adds per cycle on each SM."""
    raise NotImplementedError
