"""The verdict: what limits a kernel, decided in a fixed order, first match wins.

overhead -> balanced -> memory or compute -> latency; unknown where nothing speaks. `at_roof` is a separate flag.
The limits are in `thresholds.toml`, NVIDIA's where it has any; its throughput per cents are read only where a report
holds nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rooflens.format import percent
from rooflens.model.counters.balance import STALLS, longest_wait
from rooflens.model.failed import failure_words
from rooflens.model.hotspots import READY
from rooflens.model.records import LEVELS, Bottleneck, Confidence, Finding, Move, Verdict, held_once, in_order, ratio
from rooflens.model.roofline.roof import dram_clock_part
from rooflens.model.roofline.unit_names import busy_words
from rooflens.model.roofline.units import STAGES
from rooflens.model.verdict import advice
from rooflens.model.verdict.bottleneck import (
    busiest_unit,
    compute_bottleneck,
    is_lsu_full,
    memory_bottleneck,
    plateau_bottleneck,
)
from rooflens.model.verdict.collecting import not_profiled
from rooflens.model.verdict.done import NEEDLESS_BYTES, moves_once, roof_reached
from rooflens.model.verdict.facts import Facts, room_of
from rooflens.model.verdict.library import caller_moves
from rooflens.model.verdict.limit import find_limit, floor_of_today
from rooflens.model.verdict.nvidia_rules import NVIDIA_RULE, SAME_CLASSES, read_nvidia
from rooflens.model.verdict.pipelined import beside_waits, each_once, fitting, with_tensor_moves
from rooflens.model.verdict.spelling import spelt
from rooflens.model.verdict.unmeasured import ONE_UNIT, unmeasured
from rooflens.model.verdict_classes import Bound

NOT_MEASURED = "cause not measured"
"""The cause of a kernel that waits, where nothing measured says most of why."""

_CONFIDENCE: tuple[Confidence, ...] = ("high", "medium", "low")
_DOUBTS = frozenset(
    {
        "short_and_replayed",
        "share_over_one",
        "share_of_active_cycles",
        "clocks_moved",
        "dram_clock_low",
        "partial_counters",
        "no_flop_counters",
        "one_side_only",
        "slower_while_profiled",
        "tensor_flop_estimated",
        "tensor_flop_unknown",
        "tensor_counter_reads_zero",
        "tensor_work_not_measured",
        "tcgen05_without_operation_counters",
        "wgmma_count_estimated",
    }
)
"""Flags that lower confidence by one step each."""
_LACKING = frozenset({"no_flop_counters", "sol_pair_only", "partial_counters", "one_side_only"})
"""Flags of a report from which more could be learned."""
"""States of a warp that could go on."""
WHAT_FILLS_A_UNIT = frozenset(
    {
        "uncoalesced_global_load",
        "uncoalesced_global_store",
        "local_memory",
        "low_reuse",
        "passed_through_global",
        "read_twice",
        "few_elements",
        "reduction_without_shuffles",
        "conversions",
        "integer_divisions",
        "indexed_constants",
        "curand_init",
        "debug_build",
        "bank_conflicts",
        "many_wavefronts",
        "thread_divergence",
        "partial_warps",
        "contended_atomics",
        "unfused_arithmetic",
        "slow_fp64",
        "fp64_divisions",
        "tensor_cores_unused",
    }
)
"""Findings about what fills a unit. Without any, relieving a full unit goes before waits and warps."""
FEW_WARPS = frozenset({"low_occupancy", "achieved_occupancy_gap"})
"""Findings of too few warps: more of them hide a wait as more loads in flight do, and neither causes the other."""


def decide(facts: Facts) -> Facts:
    """Decide what limits a kernel, and how far it is from it."""
    memory, compute = memory_bottleneck(facts), compute_bottleneck(facts)
    sides = in_order(memory, compute)
    facts = replace(facts, memory=memory, compute=compute, sides=sides)
    bound, limiter = _class_of(facts)
    missing = unmeasured(facts, bound, limiter)
    unseen: tuple[Bound, ...] = tuple(missing)
    busiest = sides[0].share if sides else None
    top_share = None if unseen and limiter is None else busiest
    decided = replace(
        facts,
        bound=bound,
        limiter=limiter,
        at_roof=limiter is not None and not unseen and _is_at_roof(facts, limiter),
        top_share=top_share,
        unseen=unseen,
        unmeasured=tuple(one for what in missing.values() for one in what),
        # Gaps that outweigh a launch make it overhead, whatever the sides that were not measured do.
        or_bound=() if bound == "overhead" and facts.outside.waiting else unseen,
        room=room_of(top_share, bound, facts.limits.open_room),
        full_for_a_while=bound in {"memory", "compute"} and (busiest or 0.0) < facts.limits.bound_share,
    )
    return replace(decided, limit=find_limit(decided), confidence=_confidence(decided))


def _confidence(facts: Facts) -> Confidence:
    """Say how far the counters carry the class: each doubt costs a step, and some things leave none.

    So it is where the class is open or unknown, and where something else speaks for a side whose unit was not measured
    itself.
    """
    sides = (*facts.sides, *filter(None, [facts.limiter]))
    is_stood_in = any((side.resource or "") not in facts.shares or _is_by_name(facts, side) for side in sides)
    if facts.bound == "unknown" or is_stood_in or facts.or_bound:
        return "low"
    doubts = len(_DOUBTS.intersection(facts.flags)) + facts.full_for_a_while
    return _CONFIDENCE[min(doubts, len(_CONFIDENCE) - 1)]


def _is_by_name(facts: Facts, side: Bottleneck) -> bool:
    """Return whether the share of a level is that of a peak which is published, or holds for another clock."""
    level = facts.levels.get(side.resource or "")
    is_known = level is None or level.roof is None or level.roof.is_measured
    return level is not None and not is_known and not facts.kernel.counters.keys() & _SHARE_OF[side.resource or ""]


_SHARE_OF: Mapping[str, frozenset[str]] = {
    level: frozenset(stage.share for stage in STAGES if stage.level == level) for level in LEVELS
}
"""Level -> counters of the shares of its stages."""


def _class_of(facts: Facts) -> tuple[Bound, Bottleneck | None]:
    """Return the class of a kernel, and its limiter where it is at one."""
    limits, duration_ns, memory, compute = facts.limits, facts.kernel.duration_ns, facts.memory, facts.compute
    busiest = facts.sides[0].share if facts.sides else 0.0
    is_busy = busiest >= limits.bound_share
    is_short = duration_ns is not None and duration_ns < limits.overhead_duration_ns
    if facts.kernel.failed:
        return "unknown", None
    if (facts.outside.waiting is not None and busiest < limits.at_roof_share) or (is_short and not is_busy):
        return "overhead", None
    limiter = facts.sides[0] if is_busy else plateau_bottleneck(facts)
    if limiter is None:
        return ("latency" if facts.sides or _shows_waiting(facts) else "unknown"), None
    if is_busy and memory and compute and abs(memory.share - compute.share) < limits.balanced_lead:
        return ("memory", memory) if _are_one_unit(memory, compute) else ("balanced", limiter)
    is_memory = limiter is memory if is_busy else limiter.resource in facts.levels
    return ("memory" if is_memory else "compute"), limiter


def _are_one_unit(memory: Bottleneck, compute: Bottleneck) -> bool:
    """Return whether NVIDIA's two per cents are of the unit that both cover, the input of L1 by the LSU pipe."""
    is_unnamed = memory.resource is None and compute.resource is None
    return is_unnamed and abs(memory.share - compute.share) < ONE_UNIT


def _shows_waiting(facts: Facts) -> bool:
    """Return whether launch, stalls or NVIDIA's rule show a reason for waiting, where no unit was measured."""
    kernel, limits = facts.kernel, facts.limits
    few_blocks = kernel.counters.get("waves", limits.small_grid_waves) < limits.small_grid_waves
    few_warps = kernel.counters.get("theoretical_occupancy", 1.0) < limits.quarter_share
    stalled = max((share for reason, share in kernel.stalls.items() if reason not in READY), default=0.0)
    said = read_nvidia(kernel.rules).bottleneck or ""
    return few_blocks or few_warps or stalled > limits.dominant_stall or "latency" in SAME_CLASSES.get(said, ())


def _is_at_roof(facts: Facts, limiter: Bottleneck) -> bool:
    """Judge against the attainable roof if known; a stage may still be at its peak.

    DRAM must be near its peak at its own clock, too: at the profiled one it may have been slower. L2's attainable roof
    is that of the path back to the SMs, so only what comes back counts.
    """
    kernel, limits, name = facts.kernel, facts.limits, limiter.resource or ""
    if name == "dram" and limiter.share * dram_clock_part(kernel) < limits.at_roof_device_share:
        return False
    level, pipe = facts.levels.get(name), facts.pipes.get(name)
    attainable = level.attainable_per_s if level else pipe.attainable_per_s if pipe else None
    per_s = level.bytes_per_s if level else pipe.amount_per_s if pipe else None
    if name == "l2":
        per_s = kernel.per_s(kernel.counters.get("l2_return_bytes"))
    return max(limiter.share, ratio(per_s, attainable) or 0.0) >= limits.at_roof_share


def make_verdict(facts: Facts, findings: Sequence[Finding]) -> Verdict:
    """Make the record of the verdict; the findings that cost time give the first moves."""
    kernel, bound, limiter, is_latency = facts.kernel, facts.bound, facts.limiter, facts.bound == "latency"
    costing = tuple(finding for finding in findings if finding.severity != "note")
    if "memory" in facts.unseen:  # more warps are no help where memory is full, which nobody knows
        costing = tuple(sorted(costing, key=lambda finding: finding.id in FEW_WARPS))
    causes = costing if is_latency else ()
    unmeasured = is_latency and not _explains_the_wait(facts, causes)
    cause = None
    if is_latency:
        cause = (longest_wait(kernel.stalls, kernel.counters) or NOT_MEASURED) if unmeasured else causes[0].title
    elif bound == "overhead":
        cause = "gaps around its launches" if facts.outside.waiting else "launch-sized kernel"
    elif bound == "unknown":
        cause = failure_words(kernel) if kernel.failed else "missing counters"
    elif facts.full_for_a_while:
        cause = "full for a part of its run"
    elif limiter is not None and limiter.resource is None:
        cause = longest_wait(kernel.stalls, kernel.counters)
    done = roof_reached(facts, findings)
    return Verdict(
        bound=bound,
        resource=limiter.resource if limiter else None,
        at_roof=facts.at_roof,
        cause=cause,
        limit=facts.limit,
        confidence=facts.confidence,
        moves=tuple(map(held_once, _moves(facts, costing, unmeasured=unmeasured))),
        bottleneck=limiter or busiest_unit(facts),
        memory=facts.memory,
        compute=facts.compute,
        is_nearly_alone=facts.is_nearly_alone,
        or_bound=facts.or_bound,
        today=floor_of_today(facts),
        does=facts.does,
        done=done,
        is_only_at_roof=done is not None and done.resource == "dram" and not moves_once(facts),
        unmeasured=facts.unmeasured,
        causes=tuple(held_once(cause.id) for cause in causes),
        is_wait_explained=not unmeasured if is_latency else None,
        full_for_a_while=facts.full_for_a_while,
        share_while_active=_share_while_active(facts) if limiter is None else None,
        is_brief=is_latency and _is_brief(facts),
    )


def _share_while_active(facts: Facts) -> float | None:
    """Return how busy the busiest unit is while SMs have work; None where that is no news, or not known."""
    top = next(iter(facts.sides), None)
    if top is None or facts.unseen or (top.unit or top.resource) in {None, "dram", "l2"}:
        return None
    active = facts.kernel.active_part
    return top.share / active if active and top.share <= active < facts.limits.nearly_all_share else None


def _is_brief(facts: Facts) -> bool:
    limits, time_ns = facts.limits, facts.kernel.duration_ns
    return time_ns is not None and limits.overhead_duration_ns <= time_ns < limits.short_duration_ns


def _explains_the_wait(facts: Facts, causes: Sequence[Finding]) -> bool:
    """Return whether the counters explain why a kernel waits.

    Stalls say what warps wait for. Without them a limiter does that explains most of what could be won, or of which
    nobody can tell how much it explains: factors multiply, so by their logarithms.
    """
    counters, room = facts.kernel.counters, facts.room
    is_counted = "warp_latency_cycles" in counters and any(f"stall_{why}_cycles" in counters for why in STALLS)
    if facts.kernel.stalls or is_counted or any(f"stall_{why}_share" in counters for why in STALLS):
        return bool(causes)
    if "memory" in facts.unseen:
        causes = [cause for cause in causes if cause.id not in FEW_WARPS]
    gains = [cause.gain for cause in causes if cause.severity == "limiter"]
    least = 0.0 if room is None else facts.limits.most_share * math.log(room)
    return any(gain is None or room is None or math.log(gain.factor) >= least for gain in gains)


def _moves(facts: Facts, costing: Sequence[Finding], *, unmeasured: bool) -> tuple[Move, ...]:
    """Choose the moves: by what each brings alone, those for the limiter among them, and last how to collect more.

    The full unit has a move of its own where nothing says what fills it, and filling it further is not the aim: DRAM
    below its roof is yet to be filled, and so is a unit that is full for a part of the run only. A kernel of which
    nothing is known but what it does in vain has to be collected after that, and one that ncu no longer profiles last.
    """
    kernel, command_line = facts.kernel, facts.outside.command_line
    if kernel.failed:
        return advice.failed_moves(kernel, command_line)
    asked = advice.collect_moves(kernel.function_name, kernel.compute_capability, command_line)
    if (library := facts.library) is not None:
        moves = caller_moves(facts, library)
        return (*asked, *moves) if facts.bound == "unknown" else moves
    ordered = _ordered_moves(facts, *_with_its_wait(costing, _at_limiter(facts, costing)), unmeasured=unmeasured)
    moves = tuple(each_once(beside_waits(facts, with_tensor_moves(facts, [*fitting(facts, ordered)]))))
    moves = tuple(spelt(facts, _with_fewer_bytes(facts, costing, moves), {one.id: one.limiters for one in costing}))
    can_collect = not_profiled(kernel.compute_capability) is None
    is_open = unmeasured and can_collect
    is_one_sided = "memory" in facts.unseen and facts.limiter is not None
    if facts.bound == "unknown":
        # Of a chip that ncu knows no longer nothing more can be had.
        known = tuple(move for move in moves if move.kind in _WASTE or not can_collect)
        return (*known, *asked, *(move for move in moves if move not in known))
    is_told = moves and not is_open and not is_one_sided and _LACKING.isdisjoint(facts.flags)
    return moves if is_told else (*moves, *asked)


def _with_its_wait(
    costing: Sequence[Finding], at_limiter: tuple[Move, ...]
) -> tuple[tuple[Finding, ...], tuple[Move, ...]]:
    """Make the move for a full pipe and the wait for it one: the first says what to do, the second what it costs."""
    wait = next((one for one in costing if one.id == _PIPE_WAIT), None)
    if wait is None or not at_limiter or at_limiter[0].kind == "collect":
        return tuple(costing), at_limiter
    first = at_limiter[0]
    cost = wait.move.rpartition(": ")[2]
    joined = replace(first, text=f"{first.text}; {cost}", finding=wait.id, where=wait.where, gain=wait.gain)
    return tuple(one for one in costing if one is not wait), (joined, *at_limiter[1:])


_PIPE_WAIT = "stall_math_pipe_throttle"


_FIRST = 3
"""Moves that a reader looks at."""


def _with_fewer_bytes(facts: Facts, costing: Sequence[Finding], moves: Sequence[Move]) -> tuple[Move, ...]:
    """Put fewer bytes among the first three moves where DRAM is nearly full of bytes that are asked for.

    More of them in flight win what is left of DRAM at most; whoever is there already needs fewer.
    """
    memory = facts.memory
    dram = facts.shares.get("dram", memory.share if memory is not None and memory.resource == "dram" else 0.0)
    is_asked_for = NEEDLESS_BYTES.isdisjoint(finding.id for finding in costing)
    if dram * dram_clock_part(facts.kernel) < facts.limits.at_roof_device_share or not is_asked_for:
        return tuple(moves)
    if any(move.kind == "fuse" for move in moves[:_FIRST]):
        return tuple(moves)
    others = [move for move in moves if move.kind != "fuse"]
    fewer = _in_numbers(advice.memory_moves(facts, "dram")[0], Bottleneck("dram", dram), facts.kernel.gpu)
    return (*others[: _FIRST - 1], fewer, *others[_FIRST - 1 :])


def _in_numbers(move: Move, unit: Bottleneck, gpu: str | None) -> Move:
    """Say how busy its unit is in a move without a number of the kernel."""
    return move if _MEASURED.search(move.text) else replace(move, text=f"{move.text}: {busy_words(unit, gpu)}")


def _ordered_moves(
    facts: Facts, costing: Sequence[Finding], at_limiter: Sequence[Move], *, unmeasured: bool
) -> tuple[Move, ...]:
    """Order the moves by what each brings alone, NVIDIA's estimates last.

    Waits at a unit that nothing else explains are its shadow and go behind its own move, and few warps behind waste
    where no stall says that they are what lacks. What needs another kernel goes behind what a full unit does in vain.
    Where the launch leaves nearly the whole GPU idle, more blocks go first, though nobody can tell what they bring.
    """
    limits = facts.limits
    of_limiter = math.inf if facts.at_roof else limits.untold_gain
    untold = {
        finding.id: finding.factor or (limits.untold_gain if finding.severity == "limiter" else 1.0)
        for finding in costing
    }
    has_waste = any(finding.kind in _WASTE for finding in costing)
    wasted = [
        finding.gain.factor if finding.gain else limits.untold_gain
        for finding in costing
        if facts.limiter is not None
        and finding.severity == "limiter"
        and finding.id in WHAT_FILLS_A_UNIT
        and finding.kind in _WASTE
    ]

    def rank(move: Move) -> tuple[bool, float, bool]:
        if facts.is_nearly_alone and move.finding == "small_grid":
            return False, -math.inf, False
        factor = move.gain.factor if move.gain else untold.get(move.finding or "", of_limiter)
        is_few_warps = move.finding in FEW_WARPS
        ahead = list(wasted) if move.kind in _REWRITING else []
        if at_limiter and (is_few_warps or (move.finding or "").startswith("stall_")):
            ahead.append(limits.untold_gain)
        if unmeasured and is_few_warps and has_waste:
            ahead.append(0.0)
        return move.finding == NVIDIA_RULE, -min(factor, *ahead, math.inf), bool(ahead)

    of_findings = (Move(one.move, one.kind, one.id, one.where, one.gain) for one in costing)
    moves = sorted((*at_limiter, *of_findings), key=rank)
    return tuple({move.text: move for move in moves}.values())


_MEASURED = re.compile(r"\d ?%|\dx\b|\d [kMGT]?(?:B|FLOP)\b")
"""A number of the kernel in a move: a share, a factor or an amount, and no `2 x 2` or `16-byte`."""
_WASTE = frozenset({"coalesce", "pad", "spill", "divergence", "shape"})
_REWRITING = frozenset({"tile", "results", "elements", "shuffle"})
"""What a full unit does in vain goes before what needs another kernel: that would waste as much."""


def _at_limiter(facts: Facts, costing: Sequence[Finding]) -> tuple[Move, ...]:
    """Choose the moves for a full unit: all if no finding costs time, one if no finding says what fills it."""
    kernel, levels, limiter = facts.kernel, facts.levels, facts.limiter
    at_limiter: tuple[Move, ...] = ()
    if limiter is not None and (facts.bound == "memory" or limiter.resource in levels):
        level = "lsu" if is_lsu_full(limiter.resource, levels["l1"]) else limiter.resource
        at_limiter = advice.memory_moves(facts, level)
        queued = sum(facts.stall_shares.get(reason, 0.0) for reason in _QUEUED)
        if limiter.resource is None and queued >= facts.limits.dominant_stall:
            shared = "take load off shared memory, with larger fragments per warp and wider accesses"
            waits = f"{shared}: warps spend {percent(queued)} of their time waiting for it (MIO queue)"
            at_limiter = (Move(waits, "results"), *at_limiter)
    elif limiter is not None:
        at_limiter = advice.compute_moves(facts, limiter)
    is_filling = facts.full_for_a_while or (limiter is not None and limiter.resource == "dram" and not facts.at_roof)
    if costing:
        telling = [finding for finding in costing if finding.id in WHAT_FILLS_A_UNIT]
        is_told = is_filling or any(_explains_the_unit(facts, finding) for finding in telling)
        at_limiter = () if is_told else at_limiter[:1]
        at_limiter = tuple(move for move in at_limiter if move.kind not in {finding.kind for finding in telling})
    if limiter is None:
        return at_limiter
    return tuple(_in_numbers(move, limiter, kernel.gpu) for move in at_limiter)


def _explains_the_unit(facts: Facts, finding: Finding) -> bool:
    """Return whether what fills a unit in vain is a good part of what can be won, or one of both is not known.

    Factors multiply, so parts are those of their logarithms.
    """
    most = facts.limit.factor
    if finding.gain is None or not most:
        return True
    return math.log(finding.gain.factor) >= facts.limits.quarter_share * math.log(most)


_QUEUED = ("mio_throttle", "short_scoreboard")
"""Reasons of warps that wait for the queue to shared memory."""
