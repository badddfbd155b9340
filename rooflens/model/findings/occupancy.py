"""Findings about warps: how many the launch allows on an SM, and how many are really there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import count, percent, si, significant
from rooflens.model.findings.rule import LATENCY, FindingRule, Found, is_usual_wait, stall, stall_shares
from rooflens.model.records import Evidence, ratio
from rooflens.model.roofline.levels import shares_of
from rooflens.model.roofline.occupancy import (
    MOST_THREADS,
    block_limits,
    next_step,
    occupancy_limiters,
    set_aside_bytes,
    warps_of,
)
from rooflens.model.verdict.sentences import resource_label

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Severity
    from rooflens.model.roofline.occupancy import Step

_WAITS = frozenset({LATENCY})


def low_occupancy(facts: Facts) -> Found | None:
    """Say that the launch allows few warps on an SM, and what would allow more.

    An SM hides latency by switching to another warp. It holds as many blocks as the scarcest of registers, shared
    memory, warp slots and block slots allows; all that tie are named, with the amount that would let one more in,
    and the speed-up if time fell with each warp added. Counters: the theoretical occupancy and the
    `launch__occupancy_limit_*`. Confirm by changing the launch and profiling again. It is a note where schedulers
    have enough warps, or the grid no more blocks. Such a grid, if it fills most slots and its warps wait mostly as
    in any kernel, needs larger blocks: twice the warps are at most twice as fast. More independent work per thread
    comes first where warps wait long on fixed latencies, or where delivering operands keeps a unit busiest.
    It does not show which wins.

    Try:
    - change what the evidence names, by the step it gives, and measure again
    - registers: `__launch_bounds__`, a smaller tile per thread, in Triton more `num_warps`; watch for `local_memory`
    - shared memory: fewer stages (`num_stages`), smaller tiles
    - otherwise keep more independent work in flight in each warp, which needs no occupancy
    """
    allowed = facts.counter("theoretical_occupancy")
    if not allowed or allowed >= facts.limits.full_occupancy_share:
        return None
    if (larger := _larger_blocks(facts)) is not None:
        return larger
    limits = _limits(facts)
    reasons = [limit.words for limit in limits]
    because = f": {'; '.join(reasons)}" if reasons else ""
    together = ", and all of these have to change together" if len(reasons) > 1 else ""
    return Found(
        evidence=(
            facts.measured("theoretical_occupancy", "share"),
            *(number for limit in limits for number in limit.evidence),
        ),
        move=_either_way(facts, f"raise occupancy, now at most {percent(allowed)}{because}{together}"),
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(min([1 / allowed, *(limit.more for limit in limits if limit.more)])),
        severity=_severity(facts),
    )


_DELIVERY = frozenset({"l1", "smem", "lsu", "mio"})
"""Levels and pipes that bring operands to the threads: they carry less where a thread reuses what it holds."""


def _either_way(facts: Facts, raise_it: str) -> str:
    """Offer both ways to hide waiting, more warps and more work a thread, the one with evidence first."""
    shares = shares_of(facts.levels, facts.pipes)
    busiest = max(shares, key=lambda name: shares[name], default=None)
    stalls = facts.kernel.stalls
    leading = max(stalls, key=lambda reason: stalls[reason], default=None)
    are_long = leading == "wait" and not is_usual_wait(facts, stall_shares(facts))
    if are_long and stalls["wait"] > facts.limits.dominant_stall:
        return f"give each thread more independent work, as warps wait on fixed latencies most; or {raise_it}"
    if busiest not in _DELIVERY or shares[busiest] < facts.limits.contributing_share:
        return f"{raise_it}; or keep the warps as they are and give each thread more independent work"
    label = resource_label(busiest, facts.kernel.gpu)
    return (
        f"let each thread compute more results from what it loads, as {label} is {percent(shares[busiest])} busy "
        f"delivering operands, even at a lower occupancy; or {raise_it}"
    )


def _severity(facts: Facts) -> Severity | None:
    """Tell occupancy that costs nothing: warps are ready and issue as it is, or the grid has no more blocks to hold."""
    return "note" if _has_no_more_blocks(facts) or _has_warps_enough(facts) else None


def _has_no_more_blocks(facts: Facts) -> bool:
    blocks, sms = facts.counter("grid_size"), facts.counter("sm_count")
    limits = block_limits(facts.kernel)
    return bool(limits and blocks and sms and blocks <= sms * limits[0][1])


def _larger_blocks(facts: Facts) -> Found | None:
    """Find that only more warps a block are left to fill waits that every kernel has.

    The grid has no more blocks, and fills enough of the slots that its size is not what is wrong with it.
    """
    waves, threads = facts.counter("waves"), facts.counter("block_size")
    if waves is None or waves <= facts.limits.empty_grid_waves or not _has_no_more_blocks(facts):
        return None
    if not threads or 2 * threads > MOST_THREADS or not is_usual_wait(facts, stall_shares(facts)):
        return None
    allowed, block = facts.measured("theoretical_occupancy", "share"), facts.measured("block_size", "threads")
    warps = warps_of(threads)
    do = (
        f"share the work of a block of {count(int(threads), 'thread')} among more warps, such as {2 * warps:.0f} "
        f"instead of {warps:.0f}, as the grid has no more blocks and occupancy is at most {percent(allowed.value)}"
    )
    found = stall(facts, "wait", do, extra=(allowed, block))
    if found is None:
        return None
    return replace(found, speedup_up_to=facts.without_wait(2.0), where=(), confidence="medium")


def _has_warps_enough(facts: Facts) -> bool:
    """Return whether schedulers have a ready warp and issue most of the time; False where that is not measured."""
    ready, issued = facts.counter("eligible_warps_per_cycle"), facts.counter("issue_active_per_cycle")
    if ready is None or issued is None:
        return False
    return ready >= facts.limits.eligible_warps and issued >= facts.limits.covered_issue_share


class _Limit(Struct, frozen=True):
    """What allows no more blocks on an SM.

    Attributes:
        more: Warps that its named step allows over those allowed now, as a factor; None where no step is named.
    """

    words: str
    evidence: tuple[Evidence, ...] = ()
    more: float | None = None


def _limits(facts: Facts) -> list[_Limit]:
    """Say each limiter in words with its numbers, which are its evidence."""
    limits = block_limits(facts.kernel)
    if not limits:
        return []
    blocks = limits[0][1]
    room = next((limit for _, limit in limits if limit > blocks), math.inf)
    return [_limit(facts, limiter, blocks, room) for limiter in occupancy_limiters(facts.kernel)]


def _limit(facts: Facts, limiter: str, blocks: float, room: float) -> _Limit:
    """Describe one limiter; `room` is how many blocks an SM can hold by what does not limit yet."""
    step = next_step(facts.kernel, limiter)
    if limiter == "shared memory" and (wider := _wider(facts, blocks, room)):
        return wider
    if step is None:
        return _Limit(f"{limiter} allow{'s' if limiter == 'shared memory' else ''} {_blocks(blocks)}")
    more = ratio(min(step.blocks, room), blocks)
    if limiter == "registers":
        words = (
            f"{step.now:.0f} registers per thread allow {_blocks(blocks)}, {step.to:.0f} would allow {step.blocks:.0f}"
        )
    elif limiter == "shared memory":
        now, to = si(step.now, "B"), si(step.to, "B")
        words = f"{now} of shared memory per block allow {_blocks(blocks)}, {to} would allow {step.blocks:.0f}"
    else:
        words, more = (
            _resized(limiter, step, blocks),
            ratio(step.blocks * warps_of(step.to), blocks * warps_of(step.now)),
        )
    evidence = (
        Evidence(f"{limiter} now", step.now, step.unit, _SOURCES[limiter]),
        Evidence(f"{limiter} that would allow more", step.to, step.unit, "CUDA's occupancy arithmetic"),
    )
    return _Limit(words, evidence, more)


def _resized(limiter: str, step: Step, blocks: float) -> str:
    """Say which size of block would fill more of an SM's slots."""
    if limiter == "warps a block":
        return (
            f"blocks of {count(int(step.now), 'thread')} leave warp slots empty with {_blocks(blocks)}, blocks of "
            f"{step.to:,.0f} would fill more of them with {step.blocks:.0f}"
        )
    return (
        f"blocks of {count(int(step.now), 'thread')} use up the block slots with {_blocks(blocks)}, blocks of "
        f"{step.to:,.0f} would fill the warp slots too"
    )


_SOURCES = {
    "registers": "launch__registers_per_thread",
    "shared memory": "launch__shared_mem_per_block_allocated",
    "warps a block": "launch__block_size",
    "block slots": "launch__block_size",
}


def _wider(facts: Facts, blocks: float, room: float) -> _Limit | None:
    """Say that the SM could set aside more shared memory than it did for this launch."""
    held, most = set_aside_bytes(facts.kernel.counters), facts.counter("sm_smem_bytes")
    block, driver = facts.counter("smem_per_block_bytes"), facts.counter("smem_driver_bytes") or 0.0
    if held is None or most is None or not block or most // block <= blocks:
        return None
    words = (
        f"{si(block - driver, 'B')} of shared memory per block allow {_blocks(blocks)} in the {si(held, 'B')} that the "
        f"SM reserved, and it can reserve {si(most, 'B')}, enough for {most // block:.0f} (the carveout preference)"
    )
    numbers = (
        Evidence("shared memory reserved", held, "B", "launch__shared_mem_config_size"),
        Evidence("shared memory an SM can reserve", most, "B", facts.kernel.counter_sources.get("sm_smem_bytes", "")),
    )
    return _Limit(words, numbers, ratio(min(most // block, room), blocks))


def _blocks(limit: float) -> str:
    return f"{count(int(limit), 'block')} per SM"


def achieved_occupancy_gap(facts: Facts) -> Found | None:
    """Say that far fewer warps are on an SM than the launch allows.

    The launch would allow more warps than are measured: blocks are too few to fill the SMs, they end at different
    times, or they are so short that launching new ones cannot keep up, as the instructions per warp show; within a
    block, warps that exit early leave their slots empty until the last one is done. Counters: theoretical occupancy,
    and achieved occupancy over the active cycles. Confirm with the waves of the grid and with the busiest SM against
    the mean. It is a note where the schedulers have enough warps already. It does not show which of these it is where
    none stands out.

    Try:
    - fill the grid first where `small_grid` is reported too, and balance the work where `load_imbalance` is
    - let each thread process several elements (a grid-stride loop), where warps exit almost as soon as they start
    - launch smaller blocks, whose slots are freed sooner
    """
    allowed, achieved = facts.counter("theoretical_occupancy"), facts.counter("achieved_occupancy")
    if not allowed or not achieved or allowed - achieved <= facts.limits.occupancy_gap_share:
        return None
    few = _few_instructions(facts)
    numbers = (facts.measured("theoretical_occupancy", "share"), facts.measured("achieved_occupancy", "share"))
    return Found(
        evidence=numbers if few is None else (*numbers, few),
        move=f"{_fill(facts, few)}: achieved occupancy is {percent(achieved)}, theoretical {percent(allowed)}",
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(allowed / achieved),
        severity="note" if _is_small(facts) or _has_warps_enough(facts) else None,
    )


def _is_small(facts: Facts) -> bool:
    """Return whether the grid is too small to fill the slots: then `small_grid` says what there is to say."""
    waves = facts.counter("waves")
    return waves is not None and waves < facts.limits.small_grid_waves


def _few_instructions(facts: Facts) -> Evidence | None:
    """Return how many instructions a warp executes where they are few; None, too, where more blocks are needed first.

    They are counted by opcode, or else by address, or else in all.
    """
    executed, source = (
        float(sum(facts.kernel.warp_opcodes.values())),
        "sass__inst_executed_per_opcode_with_modifier_all",
    )
    if not executed:
        executed, source = facts.kernel.code_totals.get("warp_inst", 0.0), "inst_executed"
    if not executed and facts.counter("executed_inst"):
        counted = facts.measured("executed_inst", "inst")
        executed, source = counted.value, counted.source
    blocks, block = facts.counter("grid_size"), facts.counter("block_size")
    each = ratio(executed or None, blocks * warps_of(block) if blocks and block else None)
    if each is None or each >= facts.limits.short_warp_instructions or _is_small(facts):
        return None
    return Evidence("instructions a warp", each, "inst", f"{source} / (launch__grid_size x warps of a block)")


def _fill(facts: Facts, few: Evidence | None) -> str:
    """Say what fills the slots; `few` is what a warp executes where that is little."""
    if _is_small(facts):
        return f"launch more blocks than the {significant(facts.counter('waves'))} waves of this grid"
    if few is not None:
        executed = count(round(few.value), "instruction")
        return f"loop over several elements per thread, as each warp executes only {executed}"
    return "give blocks, and the warps in them, equal work"


OCCUPANCY: tuple[FindingRule, ...] = (
    FindingRule("low_occupancy", "low occupancy", low_occupancy, (("theoretical_occupancy",),)),
    FindingRule(
        "achieved_occupancy_gap",
        "low achieved occupancy",
        achieved_occupancy_gap,
        (("theoretical_occupancy", "achieved_occupancy"),),
    ),
)
