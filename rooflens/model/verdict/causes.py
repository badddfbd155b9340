"""Causes of latency: which of the usual reasons a kernel shows, strongest first, each with its evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.format import percent, significant
from rooflens.model.roofline.occupancy import occupancy_limiter, tail_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflens.model.records import Kernel
    from rooflens.model.verdict.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a kernel waits.

    Attributes:
        text: What people read: `grid below one wave`.
        kind: What the advice is chosen by: grid, occupancy, memory, smem, sync, dependency, imbalance or tail.
        evidence: The numbers that show it.
    """

    text: str
    kind: str
    evidence: str


STALLS: dict[str, tuple[str, str]] = {
    "long_scoreboard": ("waits for global memory", "memory"),
    "lg_throttle": ("waits for the queue of global memory instructions", "memory"),
    "tex_throttle": ("waits for the texture queue", "memory"),
    "short_scoreboard": ("waits for shared memory or special functions", "smem"),
    "mio_throttle": ("waits for the shared-memory queue", "smem"),
    "barrier": ("waits at barriers", "sync"),
    "membar": ("waits at memory fences", "sync"),
    "gmma": ("waits for warpgroup matrix instructions", "dependency"),
    "warpgroup_arrive": ("waits for the warpgroup", "sync"),
    "wait": ("waits for fixed instruction latency", "dependency"),
    "math_pipe_throttle": ("waits for a math pipe", "dependency"),
    "dispatch_stall": ("waits for the dispatcher", "dependency"),
    "branch_resolving": ("waits for branches", "dependency"),
    "no_instruction": ("waits for instructions to arrive", "dependency"),
    "no_instructions": ("waits for instructions to arrive", "dependency"),
    "imc_miss": ("waits for constants", "memory"),
    "drain": ("waits for writes to drain at exit", "memory"),
    "sleeping": ("sleeps", "sync"),
    "misc": ("waits for other reasons", "dependency"),
}
"""Stall reason -> what it means, and the kind of advice. `not_selected` is absent: such warps were ready."""


def find_causes(kernel: Kernel, limits: Thresholds) -> tuple[Cause, ...]:
    """Find the causes of latency, in the order in which they explain it."""
    causes = tuple(_causes(kernel, limits))
    return causes or tuple(_largest_stall(kernel))


def _causes(kernel: Kernel, limits: Thresholds) -> Iterator[Cause]:
    waves = kernel.counters.get("waves")
    if waves is not None and waves < limits.small_grid_waves:
        yield Cause(
            "grid below one wave", "grid", f"{significant(waves, 2)} waves: {_grid(kernel)} do not fill the GPU once"
        )
    if (cause := _occupancy(kernel, limits)) is not None:
        yield cause
    if (cause := _stall(kernel, limits)) is not None:
        yield cause
    if (cause := _imbalance(kernel, limits)) is not None:
        yield cause
    idle = tail_share(waves) if waves is not None and waves > limits.small_grid_waves else None
    if waves is not None and idle is not None and idle >= limits.tail_share:
        yield Cause(
            "tail",
            "tail",
            f"{significant(waves)} waves: {percent(idle)} of the SM time of {math.ceil(waves)} waves is idle",
        )


def _grid(kernel: Kernel) -> str:
    blocks, sms = kernel.counters.get("grid_size"), kernel.counters.get("sm_count")
    return (
        f"{blocks:.0f} block{'' if blocks == 1 else 's'} on {sms:.0f} SMs"
        if blocks is not None and sms is not None
        else "the blocks"
    )


def _occupancy(kernel: Kernel, limits: Thresholds) -> Cause | None:
    achieved = kernel.counters.get("achieved_occupancy")
    allowed = kernel.counters.get("theoretical_occupancy")
    limiter = occupancy_limiter(kernel)
    if allowed is None or limiter is None or allowed >= limits.low_occupancy:
        return None
    measured = f"occupancy {percent(achieved)}" if achieved is not None else "occupancy"
    return Cause(f"occupancy limited by {limiter}", "occupancy", f"{measured}, at most {percent(allowed)} by {limiter}")


def _stall(kernel: Kernel, limits: Thresholds) -> Cause | None:
    eligible = kernel.counters.get("eligible_warps_per_cycle")
    reasons = {reason: share for reason, share in kernel.stalls.items() if reason in STALLS}
    if not reasons or (eligible is not None and eligible >= limits.eligible_warps):
        return None
    reason = max(reasons, key=lambda name: reasons[name])
    if reasons[reason] <= limits.dominant_stall:
        return None
    meaning, kind = STALLS[reason]
    ready = f"{significant(eligible, 2)} eligible warps a cycle, " if eligible is not None else ""
    return Cause(f"{reason}: {meaning}", kind, f"{ready}{percent(reasons[reason])} of stalls: {meaning}")


def _largest_stall(kernel: Kernel) -> Iterator[Cause]:
    """Name the largest stall of a kernel where no cause stands out."""
    reasons = {reason: share for reason, share in kernel.stalls.items() if reason in STALLS}
    if reasons:
        reason = max(reasons, key=lambda name: reasons[name])
        meaning, kind = STALLS[reason]
        evidence = f"no cause stands out; the largest stall, {percent(reasons[reason])}: {meaning}"
        yield Cause(f"no single one, most {meaning}", kind, evidence)


def _imbalance(kernel: Kernel, limits: Thresholds) -> Cause | None:
    mean, busiest = kernel.counters.get("sm_cycles_active_avg"), kernel.counters.get("sm_cycles_active_max")
    if not mean or busiest is None or busiest / mean < limits.imbalance_ratio:
        return None
    return Cause("imbalance between SMs", "imbalance", f"the busiest SM works {significant(busiest / mean)}x the mean")
