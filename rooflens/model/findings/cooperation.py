"""Findings about how the threads of a block cooperate: what they pass on, and how they end in one value.

A block that reduces has few values to store and many steps to take: several elements per thread make the steps
worthwhile, and the last of them are within one warp.
"""

from __future__ import annotations

import math

from msgspec import Struct

from rooflens.format import percent, significant
from rooflens.model.counters.execution import WARP_THREADS
from rooflens.model.counters.families import SECTOR_BYTES
from rooflens.model.findings.cost import LATENCY, Waste, weigh
from rooflens.model.findings.rule import FindingDraft, FindingRule
from rooflens.model.findings.stalls import instructions_a_warp
from rooflens.model.records import Evidence, ratio
from rooflens.model.roofline.occupancy import warps_of
from rooflens.model.roofline.opcodes import WIDEST_BYTES, executed
from rooflens.model.verdict.facts import Facts

_LOAD_STALLS = ("long_scoreboard", "lg_throttle")


def passed_through_global(facts: Facts) -> FindingDraft | None:
    """Say that the threads of a block pass values to each other through global memory, barrier by barrier."""
    sectors, fetched = facts.counter("global_load_sectors"), _fetched_bytes(facts)
    waiting = facts.stall_shares.get("barrier", 0.0)
    if (
        facts.kernel.program_smem_bytes != 0
        or not sectors
        or fetched is None
        or not facts.counter("global_store_requests")
    ):
        return None
    part = 1 - fetched / (sectors * SECTOR_BYTES)
    if waiting < facts.limits.negligible_share or part < facts.limits.limiting_waste_share:
        return None
    # A waiting kernel waits for these loads, however busy the units on their way are.
    parts = {"l2": part, "l1": part} if facts.limiter is not None else {}
    waste = Waste(parts, waits=part, stalls=_LOAD_STALLS)
    return FindingDraft(
        evidence=(
            Evidence("loaded again", part, "share", "1 - bytes that miss L2 / bytes that loads touch"),
            Evidence("barrier stalls", waiting, "share", "samples or cycles of the warps"),
        ),
        move="exchange values in shared memory, such as to reduce there, as threads of a block seem to pass them on "
        f"through global memory: {percent(part)} of the bytes loaded were loaded before, warps spend "
        f"{percent(waiting)} of their time at barriers, and the launch has no shared memory",
        waste=waste,
        confidence="medium",
    )


def _fetched_bytes(facts: Facts) -> float | None:
    """Return the bytes that L2 had to fetch for the SMs: as counted, as read by DRAM, or from its hit rate."""
    counted = [facts.counter(name) for name in ("l2_read_miss_bytes", "dram_read_bytes")]
    looked_up, hits = facts.counter("l2_bytes"), facts.counter("l2_hit_rate")
    missed = None if looked_up is None or hits is None else looked_up * (1 - hits)
    return next((fetched for fetched in (*counted, missed) if fetched is not None), None)


_VALUES = (4.0, 8.0)
"""Bytes of what is reduced."""
_IDLE_STEP = 4
"""A step of a warp that has nothing to add: it counts, compares, waits at the barrier, and goes back.

One that adds executes two loads, the sum and a store as well: with fewer instructions it is unrolled or shuffles.
"""
_WARP_STEPS = int(math.log2(WARP_THREADS))
_ACCESSES_A_STEP, _SHUFFLES_A_STEP = 3, 1
"""Two loads and a store of shared memory, and the shuffle that stands for them."""
_TREE_STALLS = ("barrier", "short_scoreboard", "mio_throttle", "wait")
_TREE_UNITS = ("l1", "smem", "lsu", "mio", "issue", "alu")


class _Reduction(Struct, frozen=True):
    """A block that ends in one value, by steps in shared memory.

    Attributes:
        elements: Mean number of values that a thread loads; None if not counted.
        steps: Number of halving steps for the threads of a block.
        instructions: Number of instructions that a warp executes; None if not counted.
    """

    threads: float
    elements: Evidence | None
    steps: int
    instructions: Evidence | None


def _reduction(facts: Facts) -> _Reduction | None:
    """Recognize a reduction: each thread has one value in shared memory, and a block stores one."""
    threads, blocks, held = facts.counter("block_size"), facts.counter("grid_size"), facts.kernel.program_smem_bytes
    if not threads or not blocks or threads <= WARP_THREADS or held is None:
        return None
    value = next((value for value in _VALUES if abs(held / threads / value - 1) <= facts.limits.noise_share), None)
    if value is None or not _stores_one_value(facts, value, blocks):
        return None
    loaded, elements = _fetched_bytes(facts) or facts.counter("dram_bytes"), None
    if loaded:
        source = f"bytes that miss L2, else those of DRAM / threads / {value:.0f} B"
        elements = Evidence("elements per thread", loaded / (threads * blocks) / value, "elements", source)
    return _Reduction(threads, elements, math.ceil(math.log2(threads)), instructions_a_warp(facts))


def _stores_one_value(facts: Facts, value: float, blocks: float) -> bool:
    """Return whether a block stores once or, if stores are not counted, stores one value per sector.

    Scattered stores by all threads look the same, but their sectors keep L2 busier than DRAM.
    """
    filled, requests = facts.counter("global_store_bytes_per_sector"), facts.counter("global_store_requests")
    if requests is None and facts.kernel.warp_opcodes:
        requests = executed(facts.kernel.warp_opcodes, ("STG", "ST"))
    if requests is not None:
        return 0 < requests <= (1 + facts.limits.negligible_share) * blocks
    l2, dram = facts.shares.get("l2"), facts.shares.get("dram")
    is_one = filled is not None and abs(filled / value - 1) <= facts.limits.noise_share
    return is_one and l2 is not None and dram is not None and l2 < dram


def few_elements(facts: Facts) -> FindingDraft | None:
    """Say that each thread loads few elements for all the steps in which its block reduces them."""
    block = _reduction(facts)
    if block is None or block.elements is None or block.elements.value >= facts.limits.several:
        return None
    return _weighed(
        facts,
        # Two elements are under way at once, and share the steps.
        Waste(dict.fromkeys(_TREE_UNITS, 0.5), waits=0.5, stalls=(*_TREE_STALLS, *_LOAD_STALLS)),
        (block.elements,),
        "add up several elements in each thread before its block reduces them, for fewer blocks: a thread loads "
        f"{significant(block.elements.value)} elements for {block.steps} steps in blocks of {block.threads:,.0f} "
        "threads",
    )


def reduction_without_shuffles(facts: Facts) -> FindingDraft | None:
    """Say that the last steps of a block's reduction are within one warp, yet go through shared memory."""
    block = _tree(facts)
    if block is None:
        return None
    warps = warps_of(block.threads)
    # Half of the warps take part in the first step, half of these in the next, and one warp in each of the last.
    accesses = warps + _ACCESSES_A_STEP * (warps - 1 + _WARP_STEPS)
    part = (_ACCESSES_A_STEP - _SHUFFLES_A_STEP) * _WARP_STEPS / accesses
    return _weighed(
        facts,
        Waste(dict.fromkeys(("l1", "smem", "lsu", "mio"), part), waits=_of_last_warp(block), stalls=_TREE_STALLS),
        _of_steps(block),
        f"finish with shuffles: {_WARP_STEPS} of the {block.steps} steps are within one warp, "
        f"{percent(_of_last_warp(block))}, and need no shared memory{_executed(block)}",
    )


def barriers_in_last_warp(facts: Facts) -> FindingDraft | None:
    """Say that the last steps of a block's reduction need no barrier."""
    block = _tree(facts)
    if block is None:
        return None
    opcodes, blocks = facts.kernel.warp_opcodes, facts.counter("grid_size") or 0.0
    if opcodes and executed(opcodes, ("BAR",)) < block.steps * warps_of(block.threads) * blocks:
        return None
    parts = dict.fromkeys(_TREE_UNITS, _spared_by_leaving(block))
    return _weighed(
        facts,
        Waste(parts, waits=_of_last_warp(block), stalls=("barrier",)),
        _of_steps(block),
        "leave the block's barriers out of the last warp, and unroll the steps for a block size known when "
        f"compiling: {_WARP_STEPS} of the {block.steps} steps, {percent(_of_last_warp(block))}, are within one warp"
        f"{_executed(block)}",
    )


def _spared_by_leaving(block: _Reduction) -> float:
    """Return the share of instructions saved if all warps but one leave before the steps within a warp."""
    if block.instructions is None:
        return 0.0
    warps = warps_of(block.threads)
    return min(1.0, _WARP_STEPS * (warps - 1) * _IDLE_STEP / (warps * block.instructions.value))


def _tree(facts: Facts) -> _Reduction | None:
    """Return the reduction that takes each step in shared memory, branch and barrier included."""
    block = _reduction(facts)
    if block is None or block.instructions is None or executed(facts.kernel.warp_opcodes, ("SHFL",)):
        return None
    return block if block.instructions.value >= 2 * _IDLE_STEP * block.steps else None


def _of_last_warp(block: _Reduction) -> float:
    return min(1.0, _WARP_STEPS / block.steps)


def _executed(block: _Reduction) -> str:
    return f"; each warp executes {block.instructions.value:.0f} instructions" if block.instructions else ""


def _of_steps(block: _Reduction) -> tuple[Evidence, ...]:
    numbers = () if block.instructions is None else (block.instructions,)
    return *numbers, Evidence("steps in one warp", _of_last_warp(block), "share", "5 / log2(threads)")


def _weighed(facts: Facts, waste: Waste, evidence: tuple[Evidence, ...], move: str) -> FindingDraft:
    """Weigh the cost of the steps; if neither a full unit nor stalls show it, they are assumed to cost something."""
    severity = weigh(facts, waste)
    is_unknown = not facts.kernel.stalls and not facts.stall_shares and not facts.at_roof
    is_delivering = facts.limiter is not None and facts.limiter.resource in _TREE_UNITS
    return FindingDraft(
        evidence=evidence,
        move=move,
        waste=waste,
        changes="instructions",
        confidence="medium",
        severity="contributes" if severity == "note" and (is_unknown or is_delivering) else severity,
    )


def few_bytes_in_flight(facts: Facts) -> FindingDraft | None:
    """Say that each thread loads little while DRAM, the busiest unit, is not full, if no stall was measured."""
    side, waves = facts.memory, facts.counter("waves")
    if side is None or side.resource != "dram" or facts.at_roof or facts.stall_shares or facts.full_for_a_while:
        return None
    threads = (facts.counter("grid_size") or 0.0) * (facts.counter("block_size") or 0.0)
    sectors, fill = facts.counter("global_load_sectors"), facts.counter("global_load_bytes_per_sector")
    each = ratio(sectors and sectors * (fill or SECTOR_BYTES), threads)
    if each is None or each > WIDEST_BYTES or waves is None or waves / 2 < facts.limits.small_grid_waves:
        return None
    if side.share < facts.limits.contributing_share or (fill or SECTOR_BYTES) < SECTOR_BYTES / 2:
        return None
    idle = max(0.0, 1 - side.share / facts.limits.copy_share)
    return FindingDraft(
        evidence=(
            Evidence("bytes loaded per thread", each, "B", "bytes of the sectors of global loads / threads"),
            Evidence("DRAM busy", side.share, "share", facts.levels["dram"].source or "dram__throughput"),
            facts.measured("waves", "waves"),
        ),
        move="process several elements per thread, with their loads before the first use, or load 16 bytes at once: a "
        f"thread loads {significant(each)} bytes, in {significant(waves)} waves, and DRAM is only "
        f"{percent(side.share)} busy",
        bears_on=frozenset({LATENCY, "dram"}),
        gain=facts.without_wait(1 / (1 - idle / 2)) if idle else None,
        confidence="low",
    )


COOPERATION: tuple[FindingRule, ...] = (
    FindingRule(
        "passed_through_global",
        "values passed on through global memory",
        "tile",
        passed_through_global,
        (
            ("global_load_sectors", "global_store_requests", "l2_read_miss_bytes"),
            ("global_load_sectors", "global_store_requests", "dram_read_bytes"),
            ("global_load_sectors", "global_store_requests", "l2_bytes", "l2_hit_rate"),
        ),
    ),
    FindingRule(
        "few_elements",
        "few elements per thread in a reduction",
        "elements",
        few_elements,
        (
            *(("block_size", name) for name in ("l2_read_miss_bytes", "dram_read_bytes", "dram_bytes")),
            ("block_size", "l2_bytes", "l2_hit_rate"),
        ),
    ),
    FindingRule(
        "reduction_without_shuffles",
        "a reduction that ends in shared memory",
        "shuffle",
        reduction_without_shuffles,
        (("block_size", "executed_inst"), ("block_size", "warp_opcodes")),
    ),
    FindingRule(
        "barriers_in_last_warp",
        "barriers in the last warp of a reduction",
        "barrier",
        barriers_in_last_warp,
        (("block_size", "executed_inst"), ("block_size", "warp_opcodes")),
    ),
    FindingRule(
        "few_bytes_in_flight",
        "few bytes in flight",
        "elements",
        few_bytes_in_flight,
        (("global_load_sectors", "grid_size", "block_size", "waves"),),
    ),
)
