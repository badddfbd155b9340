"""Occupancy: how many warps an SM could hold and does hold, what sets the limit, and what the last wave leaves idle.

Source: Nsight Compute's Occupancy section. A launch may put on an SM as many blocks as the scarcest of its resources
allows; a wave is as many blocks as all SMs hold at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflens.model.records import Kernel

LIMITERS: dict[str, str] = {
    "blocks_limit_registers": "registers",
    "blocks_limit_smem": "shared memory",
    "blocks_limit_warps": "warps a block",
    "blocks_limit_blocks": "block slots",
    "blocks_limit_barriers": "barriers",
}
"""Counter of the blocks that an SM can hold by one resource -> that resource."""

_FULL = 0.999
"""Theoretical occupancy from here up fills every warp slot: nothing limits it."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The warps of an SM.

    Attributes:
        achieved: Resident warps over the most an SM can hold, mean over the active cycles, 0 to 1.
        theoretical: Warps that the launch allows over the most an SM can hold, 0 to 1.
        block_limits: Resource -> blocks that an SM can hold by it, the scarcest first.
        limiters: The scarcest resources; empty where every warp slot can be filled or the report does not say.
        waves: Blocks of the grid over those that all SMs hold at once.
        tail_share: Part of the SM time of all waves that the last one leaves idle, 0 to 1.
    """

    achieved: float | None = None
    theoretical: float | None = None
    block_limits: tuple[tuple[str, float], ...] = ()
    limiters: tuple[str, ...] = ()
    waves: float | None = None
    tail_share: float | None = None


def find_occupancy(kernel: Kernel) -> Occupancy:
    """Read the occupancy of one kernel; what the report does not hold stays None or empty."""
    counters = kernel.counters
    limits = sorted(
        ((text, counters[name]) for name, text in LIMITERS.items() if name in counters), key=lambda limit: limit[1]
    )
    theoretical, waves = counters.get("theoretical_occupancy"), counters.get("waves")
    limited = theoretical is None or theoretical < _FULL
    return Occupancy(
        achieved=counters.get("achieved_occupancy"),
        theoretical=theoretical,
        block_limits=tuple(limits),
        limiters=tuple(text for text, blocks in limits if blocks == limits[0][1]) if limited else (),
        waves=waves,
        tail_share=None if waves is None else tail_share(waves),
    )


def occupancy_limiter(kernel: Kernel) -> str | None:
    """Name what allows the fewest blocks on an SM; None where nothing limits or the report does not say."""
    return next(iter(find_occupancy(kernel).limiters), None)


def tail_share(waves: float) -> float | None:
    """Return the part of the SM time of all waves that the last, partial one leaves idle, 0 to 1; None without waves.

    It assumes blocks of equal time: 1.25 waves take the time of two and leave 0.375 of it; 0.25 waves leave 0.75.
    """
    return 1 - waves / math.ceil(waves) if waves > 0 else None
