"""Estimate the cost of a collection before it starts, and name the unknowns."""

from __future__ import annotations

from dataclasses import dataclass

_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))


@dataclass(frozen=True, slots=True)
class Cost:
    """What the cost of a collection depends on; None where it is not known.

    Attributes:
        launches: Launches in the un-profiled run.
        kernel_ns: Time of all these launches together.
        passes: Passes of each kernel, by the scheduler's count.
        max_launches: The most launches that are profiled.
        one_of_each: Whether each distinct launch is profiled once.
        saves_memory: Whether memory is saved before and restored after each pass.
    """

    launches: int | None
    kernel_ns: int | None
    passes: int | None
    max_launches: int
    one_of_each: bool
    saves_memory: bool


def estimate(cost: Cost) -> str:
    """Write the estimate: launches x passes x time + saved memory."""
    return f"estimate: {_launches(cost)} x {_passes(cost)} x {_time(cost)}{_memory(cost)}"


def _launches(cost: Cost) -> str:
    which = "distinct launches" if cost.one_of_each else "launches"
    if cost.launches is None:
        return f"at most {cost.max_launches} {which} (how many is not known)"
    return f"at most {min(cost.launches, cost.max_launches)} {which}"


def _passes(cost: Cost) -> str:
    if cost.passes is None:
        return "passes (not counted)"
    return f"{cost.passes} pass{'' if cost.passes == 1 else 'es'} (ncu adds 1 to 3)"


def _time(cost: Cost) -> str:
    if cost.kernel_ns is None or not cost.launches:
        return "the kernels' time (not known)"
    each = f"{_scaled(cost.kernel_ns / cost.launches)} each"
    if cost.passes is None:
        return each
    profiled = min(cost.launches, cost.max_launches)
    return f"{each} = {_scaled(cost.kernel_ns / cost.launches * profiled * cost.passes)}"


def _memory(cost: Cost) -> str:
    if not cost.saves_memory:
        return "; the program is run again for each pass, nothing is saved"
    return " + saving and restoring what the kernels write, for each pass (how much is not known)"


def _scaled(duration_ns: float) -> str:
    for unit, scale in _UNITS:
        if duration_ns >= scale:
            return f"{duration_ns / scale:.3g} {unit}"
    return f"{duration_ns:.3g} ns"
