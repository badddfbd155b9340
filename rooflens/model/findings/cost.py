"""What a waste costs: the share of a kernel's time that goes to it, and how much faster the kernel is without it.

All wastes are weighed in this one unit, whatever they keep busy: from it come gain, severity, order and the table of
where the time goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from rooflens.model.records import LEVELS, Cost, Severity, ratio
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict_classes import Bound

LATENCY = "latency"
"""Among what a finding bears on: a kernel that waits, where no unit is full."""
IDLE = "idle"
"""A resource that a finding can bear on: SMs that idle for part of the run."""
WAITS = frozenset({LATENCY})

MOST_SPARED = 0.999
"""Never is all of a kernel waste: a factor that would be infinite stays a number."""


class Waste(Struct, frozen=True):
    """The units that a waste keeps busy, and its share of the work of each.

    Attributes:
        parts: Level or pipe -> the share of its work that is waste, 0 to 1.
        waits: Share of the warps' waiting time that belongs to the waste, 0 to 1, and the stalls that are
            such waits; empty if it makes no warp wait.
        serial: Share of what warps do one after the other that is waste, as the other paths of a branch: it takes time
            that fills no unit, 0 to 1.
    """

    parts: Mapping[str, float]
    waits: float = 0.0
    stalls: tuple[str, ...] = ()
    serial: float = 0.0

    @property
    def bears_on(self) -> frozenset[str]:
        """Return the units that the waste keeps busy, for `FindingDraft.bears_on`."""
        return frozenset(self.parts) | (frozenset({LATENCY}) if self.stalls else frozenset())


def spared(facts: Facts, waste: Waste) -> float:
    """Return the share of the time that the waste costs, 0 to 1: by the unit it keeps busiest, or by the waits.

    A unit that is busy for a share s of the time, a part w of which is waste, is done s x w earlier without it. Units
    work in parallel: behind a limiter, a unit that is far from full does its work meanwhile, and its waste costs
    nothing.
    """
    waits = 0.0 if facts.at_roof else waste.waits * stalled(facts, waste.stalls)
    return min(MOST_SPARED, max(_busy_in_vain(facts, waste), waits))


def _busy_in_vain(facts: Facts, waste: Waste) -> float:
    """Return the share of the time in which a unit whose work is that of the whole kernel works for a waste."""
    limiter = facts.limiter.resource if facts.limiter else None
    least = 0.0 if limiter is None else facts.limits.contributing_share
    shares = {name: facts.shares.get(name, 0.0) for name in waste.parts}
    busy = (part * shares[name] for name, part in waste.parts.items() if name == limiter or shares[name] >= least)
    return max(busy, default=0.0)


def cost_of(facts: Facts, waste: Waste | None, bears_on: Collection[str], most: float | None) -> Cost | None:
    """Return what a waste costs of the elapsed time, from what is proven to what it can be; None if nothing tells.

    Args:
        facts: The kernel.
        waste: What it keeps busy in vain; None where only its gain is modelled.
        bears_on: What it bears on.
        most: How much faster the kernel can be without it, at most; None if unknown.

    Returns:
        The low end is what its unit works in vain, of a limiter or of a unit that is busy beside it; waits prove no
        more than that warps wait. The high end is the time that its removal wins.
    """
    if most is None:
        return None
    high = 1 - 1 / most
    if waste is not None:
        return Cost(min(high, _busy_in_vain(facts, waste)), high)
    return Cost(0.0 if LATENCY in bears_on else high, high)


def stalled(facts: Facts, reasons: Iterable[str]) -> float:
    """Return the share of the warps' time that they wait for these reasons, 0 to 1; 0 if it was not measured."""
    return min(1.0, sum(facts.stall_shares.get(reason, 0.0) for reason in reasons))


def speedup(facts: Facts, waste: Waste) -> float | None:
    """Model how much faster a kernel is without a waste; None if it costs nothing that is measured.

    The waste is load, which is subtracted from each unit, and then the next unit is the limit. The rest of the kernel's
    time scales with its busiest unit, for which it waits. If the waste makes warps wait, those waits disappear too:
    where the busiest unit does none of it, and nobody measured what a waiting kernel waits for, nothing tells.
    """
    if not spared(facts, waste):
        return None
    # A side that is known by other means than its own counters, as DRAM by its bytes, is busy all the same.
    shares = {**{side.resource or "": side.share for side in facts.sides}, **facts.shares}
    top = max(shares.values(), default=0.0)
    left = max((share * (1 - waste.parts.get(name, 0.0)) for name, share in shares.items()), default=0.0)
    waiting = 0.0 if facts.at_roof else stalled(facts, waste.stalls)
    after = min(left / top if top else 1.0, 1 - waste.waits * waiting, 1 - _in_series(facts, waste))
    if after == 1 and waste.waits and not _are_waits_known(facts):
        return None
    return max(1.0, 1 / max(after, left, _elsewhere(facts, waste, waiting), 1 - MOST_SPARED))


def _are_waits_known(facts: Facts) -> bool:
    """Return whether a kernel does not wait, or what its warps wait for was measured."""
    return facts.bound != "latency" or bool(facts.kernel.stalls) or any(map(_is_a_stall, facts.kernel.counters))


def _in_series(facts: Facts, waste: Waste) -> float:
    """Return the share of the time that warps of a kernel without a limiter spend on a waste, one after the other."""
    return waste.serial if facts.bound == "latency" else 0.0


def _elsewhere(facts: Facts, waste: Waste, waiting: float) -> float:
    """Return the share of the time that a kernel without a limiter spends on something else than a waste, 0 to 1.

    While the units of the waste are idle, and no warp waits for them, its removal wins nothing. What warps do one after
    the other takes their time whatever the units do, and a unit that was not measured may be busy. Units of SMs without
    a block idle all the time, so that those of the others are busier than the mean.
    """
    busy = [facts.shares.get(name) for name in waste.parts]
    if facts.limiter is not None or waste.serial or None in busy:
        return 0.0
    working = min(1.0, ratio(facts.kernel.grid_blocks, facts.counter("sm_count")) or 1.0)
    of_sms = (
        (share or 0.0) / (1.0 if name in _SHARED_BY_ALL else working)
        for name, share in zip(waste.parts, busy, strict=True)
    )
    return max(0.0, 1 - max((waiting, *of_sms)))


_SHARED_BY_ALL = frozenset({"dram", "l2"})
"""Levels that all SMs share: one block can fill them as well as many."""


def loads_unseen(unseen: Collection[Bound], shares: Mapping[str, float], units: Iterable[str]) -> bool:
    """Return whether a unit of memory is affected that was not measured, so that its cost is unknown."""
    return "memory" in unseen and any(unit in LEVELS and unit not in shares for unit in units)


def _is_much_of_the_unmeasured(facts: Facts, waste: Waste) -> bool:
    """Return whether a waste is so much of what was not measured that its cost is unknown.

    It is much of the work of memory levels if none of these was measured, or L1 only while SMs have work, or of busy
    levels if the kernel waits and no stall was measured.
    """
    parts = {name: part for name, part in waste.parts.items() if name in LEVELS}
    active = facts.counter("sol_l1_active_share") or 0.0
    if all(facts.shares.get(name) is None for name in parts):
        return max(parts.values(), default=0.0) >= facts.limits.limiting_waste_share
    if facts.shares.get("l1") is None and active >= facts.limits.bound_share:
        return parts.get("l1", 0.0) >= facts.limits.limiting_waste_share
    if not waste.stalls or _are_waits_known(facts):
        return False
    busy = {
        name: part for name, part in parts.items() if facts.shares.get(name, 0.0) >= facts.limits.contributing_share
    }
    return max(busy.values(), default=0.0) >= facts.limits.limiting_waste_share


def next_unit(facts: Facts, waste: Waste) -> str | None:
    """Name the unit of a waste that is nearly as busy as the limiter, which itself does none of it; None without one.

    The kernel is near two limits: relieved of the first one, it is at this. A full DRAM is not relieved of its bytes
    that easily.
    """
    limiter, limits = facts.limiter, facts.limits
    if limiter is None or limiter.resource is None or (facts.at_roof and limiter.resource == "dram"):
        return None
    if waste.parts.get(limiter.resource) or waste.parts.get(limiter.unit or ""):
        return None
    near = {
        name: facts.shares[name]
        for name, part in waste.parts.items()
        if facts.shares.get(name, 0.0) > max(limiter.share - limits.balanced_lead, limits.bound_share)
        and part >= limits.limiting_waste_share
    }
    return max(near, key=near.__getitem__, default=None)


def _is_a_stall(counter: str) -> bool:
    return counter.startswith("stall_") and counter.endswith(("_cycles", "_share"))


def weigh(facts: Facts, waste: Waste) -> Severity:
    """Judge how much a waste matters.

    It limits a kernel whose limiter does much of its work in vain, or that hardly waits for anything else. It is a note
    if it costs less of the time than `contributing_cost_share`, or if a full limiter has none of it and no unit nearly
    as busy has.
    """
    limits, limiter = facts.limits, facts.limiter.resource if facts.limiter else None
    elsewhere = facts.at_roof and limiter is not None and not waste.parts.get(limiter)
    least = 1 / (1 - limits.contributing_cost_share)
    if elsewhere or (speedup(facts, waste) or 1.0) < least:
        is_unknown = loads_unseen(facts.unseen, facts.shares, waste.parts) or (
            not elsewhere and _is_much_of_the_unmeasured(facts, waste)
        )
        return "contributes" if is_unknown or next_unit(facts, waste) is not None else "note"
    if waste.parts.get(limiter or "", 0.0) >= limits.limiting_waste_share:
        return "limiter"
    waits = waste.waits * stalled(facts, waste.stalls) if facts.bound == "latency" else 0.0
    return "limiter" if waits >= limits.limiting_waste_share else "contributes"
