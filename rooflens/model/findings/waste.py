"""What waste costs: the part of a kernel's time that goes with it, and how much that matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens.model.findings.rule import LATENCY
from rooflens.model.records import shares_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Severity

_MOST_SPARED = 0.999
"""Never is all of a kernel waste: a factor that would be infinite stays a number."""


@dataclass(frozen=True, slots=True)
class Waste:
    """Where a waste is, and how much of what is done there it makes up.

    Attributes:
        parts: Level or pipe -> the part of its work that is waste, 0 to 1.
        waits: Part of the time in which warps wait that goes with the waste, 0 to 1, and the stalls that are
            such waits; empty where it makes no warp wait.
    """

    parts: Mapping[str, float]
    waits: float = 0.0
    stalls: tuple[str, ...] = ()

    @property
    def bears_on(self) -> frozenset[str]:
        """Return what it keeps busy, for `Found`."""
        return frozenset(self.parts) | (frozenset({LATENCY}) if self.stalls else frozenset())


def spared(facts: Facts, waste: Waste) -> float:
    """Return the part of the time that the waste costs, 0 to 1: by the unit it keeps busiest, or by the waits.

    A unit that is busy for a share s of the time, a part w of which is waste, is done s x w earlier without it.
    """
    busy = [part * share for name, part in waste.parts.items() if (share := facts.share(name)) is not None]
    waits = 0.0 if facts.at_roof else waste.waits * stalled(facts, waste.stalls)
    return min(_MOST_SPARED, max((*busy, waits), default=0.0))


def stalled(facts: Facts, reasons: Iterable[str]) -> float:
    """Return the part of the warps' waiting that is for these reasons, 0 to 1; 0 where it was not sampled."""
    return min(1.0, sum(facts.kernel.stalls.get(reason, 0.0) for reason in reasons))


def speedup(facts: Facts, waste: Waste) -> float | None:
    """Return how much faster a kernel is at most when this waste goes; None where it costs nothing that is measured.

    No unit can be done sooner than its remaining work takes: that holds where another one is nearly as busy.
    """
    part = spared(facts, waste)
    if not part:
        return None
    shares = shares_of(facts.levels, facts.pipes)
    left = max((share * (1 - waste.parts.get(name, 0.0)) for name, share in shares.items()), default=0.0)
    return max(1.0, 1 / max(1 - part, left))


def weigh(facts: Facts, waste: Waste) -> Severity:
    """Say how much a waste matters.

    It limits a kernel whose wall does much of its work in vain, or that waits for little else. It is a note where it
    costs less of the time than `contributing_cost_share`, or where a wall that is full has none of it.
    """
    limits, wall = facts.limits, facts.wall.resource if facts.wall else None
    elsewhere = facts.at_roof and wall is not None and not waste.parts.get(wall)
    if elsewhere or spared(facts, waste) < limits.contributing_cost_share:
        return "note"
    if waste.parts.get(wall or "", 0.0) >= limits.limiting_waste_share:
        return "limiter"
    waits = waste.waits * stalled(facts, waste.stalls) if facts.bound == "latency" else 0.0
    return "limiter" if waits >= limits.limiting_waste_share else "contributes"
