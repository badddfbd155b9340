"""Exercise 3: the gain of fusing two kernels. Fill in what raises NotImplementedError."""

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
    """Return the least time of a kernel, in seconds, where memory and arithmetic overlap perfectly."""
    raise NotImplementedError


def fused(first: Work, second: Work, intermediate_bytes: float, *, still_needed: bool = False) -> Work:
    """Return the work of one kernel that does both.

    Args:
        first: Writes the intermediate array.
        second: Reads it.
        intermediate_bytes: Size of that array.
        still_needed: Another kernel reads the array later, so it must still be written.
    """
    raise NotImplementedError


def gain(first: Work, second: Work, intermediate_bytes: float, roofs: Roofs) -> float:
    """Return how many times faster the one kernel is than the two, one after the other."""
    raise NotImplementedError
