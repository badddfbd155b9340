"""Exercise 3, solved."""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """The work of a kernel: FLOPs, and bytes to and from DRAM."""

    flop: float
    bytes: float


class Roofs(NamedTuple):
    """What a GPU can do per second."""

    flop_per_s: float
    bytes_per_s: float


def time_s(work: Work, roofs: Roofs) -> float:
    """Both run at once: the longer one is the time."""
    return max(work.flop / roofs.flop_per_s, work.bytes / roofs.bytes_per_s)


def fused(first: Work, second: Work, intermediate_bytes: float, *, still_needed: bool = False) -> Work:
    """The array is written once and read once: both are saved, or only the read if it is needed later."""
    trips = 1 if still_needed else 2
    return Work(first.flop + second.flop, first.bytes + second.bytes - trips * intermediate_bytes)


def gain(first: Work, second: Work, intermediate_bytes: float, roofs: Roofs) -> float:
    """Kernels run one by one, so their times add up."""
    apart = time_s(first, roofs) + time_s(second, roofs)
    return apart / time_s(fused(first, second, intermediate_bytes), roofs)
