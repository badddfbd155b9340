"""What was not measured of a kernel and may be busier than all that was: its class is open to that side then.

A list of hand-picked counters holds DRAM's bytes and FLOPs, and nothing of L1, L2 or the issue slots. A kernel that
leaves DRAM and the FLOP pipes idle may wait, or be at one of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.records import Bottleneck, ratio
from rooflens.model.roofline.occupancy import MOST_THREADS, warp_slots
from rooflens.model.roofline.pipes import are_pipes_seen
from rooflens.model.roofline.units import LSU_INPUT, SHARED_DATA, WHOLE
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict_classes import Bound

COMPUTE_PER_CENTS = ("sol_compute", "sol_instructions_share")
"""NVIDIA's per cents of the compute side."""
_MEMORY_PER_CENTS = ("sol_memory", "sol_memory_access_share", "sol_memory_request_share")
"""NVIDIA's per cents of the whole memory side."""
_LEVEL_PER_CENTS: Mapping[str, tuple[str, ...]] = {
    "dram": (),
    "l2": ("sol_l2_share",),
    "l1": ("sol_l1_share", "sol_l1_active_share", "sol_sm_memory_share"),
}
"""Level -> NVIDIA's per cents of it."""
_SEES_L1 = frozenset({"data", SHARED_DATA, LSU_INPUT, WHOLE})
"""Stages that fill up where L1 does: what is looked up in it, or returned by it, may be little while these are full."""
HALF_A_PER_CENT = 0.005
"""Per cents that NVIDIA rounds to whole ones are off by no more: 19 % are 18.5 % at least."""
ONE_UNIT = 0.0003
"""Two per cents that are equal to the digits printed are of one unit."""
_FEWEST_SLOTS = 32
"""Slots for warps of an SM of CC 7.5: no chip from Volta on has fewer."""

MEMORY, COMPUTE, OTHER_PIPES = "memory", "compute", "other pipes"


def unmeasured(facts: Facts, bound: Bound, limiter: Bottleneck | None) -> dict[Bound, tuple[str, ...]]:
    """Return the sides that may be busier than all that was measured, and what of each was not.

    A kernel that waits may be at any unit that nobody looked at. One with a limiter may be at the other side where
    nothing of that was measured and the limiter is not full. Shares of L1 alone do not count as memory.

    Returns:
        Side -> levels, `other pipes`, or the side itself where nothing of it was measured.
    """
    memory, compute = _of_memory(facts), _of_compute(facts)
    if limiter is None and bound == "latency":
        memory, compute = _that_blocks_can_fill(facts, memory, compute)
        found: dict[Bound, tuple[str, ...]] = {"memory": memory, "compute": compute}
        return {side: what for side, what in found.items() if what}
    nothing: dict[Bound, tuple[str, ...]] = {}
    if memory == (MEMORY,):
        nothing["memory"] = memory
    if compute == (COMPUTE,):
        nothing["compute"] = compute
    if limiter is None:
        return nothing if bound == "overhead" else {}
    is_full = limiter.share >= facts.limits.at_roof_share
    if bound == "compute":
        is_full = facts.shares.get(limiter.resource or "", 0.0) >= facts.limits.at_roof_share
    return {} if is_full or bound == "balanced" else {side: what for side, what in nothing.items() if side != bound}


def _of_memory(facts: Facts) -> tuple[str, ...]:
    """Return the levels of which neither a share nor a per cent of NVIDIA's is known."""
    if any(facts.counter(name) is not None for name in _MEMORY_PER_CENTS):
        return ()
    seen = {
        level
        for level, per_cents in _LEVEL_PER_CENTS.items()
        if level in facts.shares or any(facts.counter(name) is not None for name in per_cents)
    }
    if facts.memory is not None and facts.memory.resource == "dram":
        seen.add("dram")  # by the bytes that are known to cross it
    if not seen & {"dram", "l2"} and facts.counter("sol_sm_memory_share") is None:
        return (MEMORY,)
    if "l1" in seen and not _sees_l1(facts):
        seen.remove("l1")
    # What L2 moves comes from DRAM or goes to L1.
    return () if {"dram", "l1"} <= seen else tuple(level for level in _LEVEL_PER_CENTS if level not in seen)


def _sees_l1(facts: Facts) -> bool:
    is_told = any(facts.counter(name) is not None for name in _LEVEL_PER_CENTS["l1"])
    stages = facts.levels["l1"].stages
    return is_told or not stages or not _SEES_L1.isdisjoint(stages)


def _of_compute(facts: Facts) -> tuple[str, ...]:
    """Return the compute side where nothing of it was measured, or its other pipes where only some were."""
    if any(facts.counter(name) is not None for name in COMPUTE_PER_CENTS):
        return ()
    if facts.compute is None:
        return (COMPUTE,)
    is_issue = facts.compute.resource == "issue" or "issue" in facts.shares
    return () if is_issue or are_pipes_seen(facts.pipes) else (OTHER_PIPES,)


def _that_blocks_can_fill(
    facts: Facts, memory: tuple[str, ...], compute: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Leave out what the blocks of a small grid cannot fill: units of SMs that have none stay idle."""
    kernel = facts.kernel
    part = ratio(kernel.grid_blocks, facts.counter("sm_count"))
    if part is None or part >= 1:
        return memory, compute
    warps = (kernel.block_threads or MOST_THREADS) / WARP_THREADS
    if part * warps < facts.limits.little_share * (warp_slots(kernel) or _FEWEST_SLOTS):
        return (), ()
    if part >= facts.limits.bound_share:
        return memory, compute
    levels = tuple(_LEVEL_PER_CENTS) if memory == (MEMORY,) else memory
    # Half of the SMs can fill L2: one takes 64 bytes a cycle, and L2 returns 28 to 64 for each.
    idle = {"l1", *(("l2",) if part < facts.limits.most_share else ())}
    return tuple(level for level in levels if level not in idle), ()
