"""Findings about how a launch fills the GPU: its time, its grid, the load of the SMs, their warps, and their lanes."""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import count, duration, percent, si, significant
from rooflens.model.counters.execution import SCHEDULERS_PER_SM, WARP_THREADS
from rooflens.model.findings.cost import IDLE, LATENCY, MOST_SPARED, WAITS, Waste, speedup, stalled, weigh
from rooflens.model.findings.memory import accesses_of_l1, works_by_atomics
from rooflens.model.findings.reuse import DELIVERY
from rooflens.model.findings.rule import FindingDraft, FindingRule
from rooflens.model.findings.stalls import instructions_a_warp, is_usual_wait, stall
from rooflens.model.hotspots import MOST_PLACES
from rooflens.model.records import Confidence, Evidence, Hotspot, Limiter, MoveKind, Place, Severity, ratio
from rooflens.model.roofline.occupancy import (
    MOST_THREADS,
    SM_REGISTERS,
    allowed_by_registers,
    block_limits,
    block_smem_bytes,
    blocks_by_registers,
    few_blocks,
    next_step,
    occupancy_limiters,
    set_aside_bytes,
    sm_smem_bytes,
    step_to,
    tail_share,
    warps_of,
)
from rooflens.model.roofline.opcodes import works_by_warpgroups
from rooflens.model.roofline.unit_names import resource_label
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.pipelined import is_large_tile

_IDLE_WAITS = frozenset({LATENCY, IDLE})
_GRID = {"grid_size": "blocks", "sm_count": "SMs"}
"""What a grid is judged by, besides the part of the block slots that it fills: counter -> unit."""


def short_kernel(facts: Facts) -> FindingDraft | None:
    """Say that the kernel is as short as its launch."""
    time_ns = facts.kernel.duration_ns
    if time_ns is None or time_ns >= facts.limits.overhead_duration_ns:
        return None
    return FindingDraft(
        evidence=(facts.measured("duration_ns", "ns"),),
        move=f"fuse it with its neighbours, batch more work into it, or launch it from a CUDA graph: it runs "
        f"{duration(time_ns)}, no longer than a launch takes",
        bears_on=frozenset({LATENCY}),
    )


def launch_gaps(facts: Facts) -> FindingDraft | None:
    """Say that the GPU is idle around a launch of this kernel for longer than the kernel runs."""
    launch = facts.outside.waiting
    if launch is None:
        return None
    source = "a trace without the profiler, median of the launches"
    return FindingDraft(
        evidence=(
            Evidence("gap around a launch", launch.gap_ns, "ns", source),
            Evidence("duration of a launch", launch.time_ns, "ns", source),
        ),
        move="capture the launches in a CUDA graph and do not make the host wait: the GPU is idle for "
        f"{duration(launch.gap_ns)} around a launch of {duration(launch.time_ns)}",
        bears_on=frozenset({LATENCY}),
        severity="contributes" if facts.at_roof else None,
    )


def small_grid(facts: Facts) -> FindingDraft | None:
    """Say that the grid has fewer blocks than the GPU holds at once."""
    waves, (blocks, sms) = facts.counter("waves"), (facts.counter(name) for name in _GRID)
    an_sm = ratio(blocks, sms)
    is_lone = blocks == 1 and sms is None
    is_below_sms = (an_sm is not None and 0 < an_sm < 1) or (is_lone and facts.is_long)
    if not is_below_sms and (not waves or waves >= facts.limits.small_grid_waves):
        return None
    beside: Severity = "note" if facts.at_roof else "contributes"
    share = f"{percent(waves)} of the block slots" if waves else ""
    words, gain, severity = f"the grid fills {share}", 1 / waves if waves else None, None
    if is_lone:
        words = "all of it runs in 1 block, on one SM"
    counted = tuple(facts.measured(name, unit) for name, unit in _GRID.items() if facts.counter(name) is not None)
    source = facts.kernel.counter_sources.get("waves", "waves")
    filled = (Evidence("block slots filled", waves, "share", source),) if waves else ()
    if an_sm and blocks and sms:
        if an_sm < 1:
            words = f"{few_blocks(facts.kernel.counters)}, {sms - blocks:,.0f} of which stay idle"
        else:
            words = f"{count(int(blocks), 'block')} fill {share} of {sms:,.0f} SMs"
        filled = filled if an_sm >= 1 else ()
        # With a block on every SM, more blocks only even out the load and hide waits; a limiting unit leaves no waits.
        gain = 1 / an_sm if an_sm < 1 else math.ceil(an_sm) / an_sm if facts.limiter else gain
        severity = None if an_sm < 1 or (waves or 0.0) <= facts.limits.most_share else beside
        # SMs without a block lose their time for certain, a wait only as far as something else hides it.
        if facts.bound == "latency" and 1 / an_sm >= facts.limits.limiter_gain:
            severity = "limiter"
    how = "launch more blocks: split the work finer, split the reduction, or batch"
    threads = (blocks or 0.0) * (facts.counter("block_size") or 0.0)
    if facts.is_nearly_alone and an_sm and an_sm < 1:
        if 0 < threads <= WARP_THREADS:
            how = f"spread the work over the GPU, as all of it runs in {count(int(threads), 'thread')}"
        words += f" (a block on every SM makes it at most {significant(1 / an_sm)} times as fast)"
    return FindingDraft(
        evidence=(*counted, *filled),
        move=f"{how}: {words}",
        bears_on=_IDLE_WAITS,
        # If the GPU runs next to nothing, no counter shows how much of the work is independent.
        gain=None if facts.is_nearly_alone or gain is None else facts.without_wait(gain),
        severity=severity,
    )


def tail_wave(facts: Facts) -> FindingDraft | None:
    """Say that the last wave of blocks does not fill the GPU, and SMs were measured idle."""
    waves, active = facts.counter("waves"), facts.kernel.active_part
    if waves is None or waves <= 1 or active is None or 1 - active < facts.limits.tail_idle_share:
        return None
    idle = 1 - active
    rest = waves - math.floor(waves)
    computed = tail_share(waves)
    if not computed or not rest:
        return None
    # SMs that would be idle with whole waves too are not a reason to change the waves.
    severity: Severity | None = None
    waste = min(idle, computed)
    if waste < facts.limits.tail_idle_share:
        severity = "note"
    elif waste < facts.limits.quarter_share:
        severity = "note" if facts.at_roof else "contributes"
    do, kind, numbers, limiters = _fill_last_wave(facts, waves)
    return FindingDraft(
        evidence=(facts.measured("waves", "waves"), _idle(facts, idle), *numbers),
        move=f"{do}: of {significant(waves)} waves (a wave fills all SMs once) the last is {percent(rest)} full, and "
        f"SMs idle for {percent(idle)} of the time",
        bears_on=_IDLE_WAITS,
        gain=facts.without_wait(1 / (1 - waste)),
        severity=severity,
        kind=kind,
        limiters=limiters,
    )


def _fill_last_wave(facts: Facts, waves: float) -> tuple[str, MoveKind, tuple[Evidence, ...], tuple[Limiter, ...]]:
    """Say how to avoid the last wave: by enough blocks per SM to save a wave, if they fit; else by its shape."""
    limits, whole = block_limits(facts.kernel), math.ceil(waves)
    now = limits[0][1] if limits else 0.0
    needed = math.ceil(waves * now / (whole - 1)) if whole > 1 else 0
    steps = {name: step_to(facts.kernel, name, needed) for name, blocks in limits if blocks < needed}
    known = {
        name: step for name, step in steps.items() if step is not None and step.to >= facts.limits.most_share * step.now
    }
    if not needed or not steps or len(known) < len(steps) or _is_full_by_design(facts):
        return "choose a block size that fills the last wave, or write a persistent kernel", "balance", (), ()
    less = {name: step for name, step in known.items() if step.to < step.now}
    registers, held = less.get("registers"), less.get("shared memory")
    how = [f"at most {registers.to:.0f} registers per thread, now {registers.now:.0f}"] if registers else []
    how += [f"at most {si(held.to, 'B')} of shared memory per block, now {si(held.now, 'B')}"] if held else []
    numbers = tuple(Evidence(f"{name} now", step.now, step.unit, _SOURCES[name]) for name, step in less.items())
    room = f" ({', '.join(how)})" if how else " (a larger carveout of shared memory)"
    words = f"let SMs hold {needed} blocks at once instead of {now:.0f}, for {count(whole - 1, 'wave')}{room}"
    return words, "occupancy", numbers, tuple(less) or ("carveout",)


def _idle(facts: Facts, idle: float) -> Evidence:
    names = ("sm_cycles_active_avg", "sm_cycles_elapsed_avg", "elapsed_cycles")
    sources = [facts.kernel.counter_sources.get(name, name) for name in names if facts.counter(name) is not None]
    return Evidence("idle SM time", idle, "share", f"1 - {sources[0]} / {sources[1]}")


class _Uneven(Struct, frozen=True):
    """How unevenly the units of one kind work.

    Attributes:
        ratio: Busiest unit over the mean of those that have work.
        waste: Share of the run saved if all units did as much as the mean, 0 to 1.
    """

    key: str
    name: str
    ratio: float
    waste: float
    evidence: Evidence


_BALANCED_UNITS = {
    key: (name, f"{key}_cycles_active_avg", f"{key}_cycles_active_max", f"{key}_cycles_elapsed_avg", otherwise)
    for key, name, otherwise in (
        ("sm", "SM", "elapsed_cycles"),
        ("smsp", "SM sub-partition", "elapsed_cycles"),
        ("l1", "L1 cache", "elapsed_cycles"),
        ("l2", "L2 slice", ""),
        ("dram", "DRAM channel", ""),
    )
}
"""Kind of unit -> its name, and the counters of cycles: active in the mean and in the busiest, and all, two ways."""
_SM_UNITS, _MEMORY_UNITS = ("sm", "smsp", "l1"), ("l2", "dram")


def _most_uneven(facts: Facts, units: tuple[str, ...], units_at_work: float = 1.0) -> _Uneven | None:
    counters, sources, worst = facts.kernel.counters, facts.kernel.counter_sources, None
    for key in units:
        name, mean_name, most_name, elapsed_name, otherwise = _BALANCED_UNITS[key]
        mean, most = counters.get(mean_name), counters.get(most_name)
        elapsed = counters.get(elapsed_name) or counters.get(otherwise)
        if not mean or not most or most < mean or not elapsed:
            continue
        source = f"{sources.get(most_name, most_name)} / {sources.get(mean_name, mean_name)}"
        if units_at_work > 1:
            mean, source = min(most, mean * units_at_work), f"{source} x blocks / SMs"
        waste = (1 - mean / most) * min(1.0, mean / elapsed)
        if worst is None or waste > worst.waste:
            evidence = Evidence(f"busiest {name} over the mean", most / mean, "x", source)
            worst = _Uneven(key, name, most / mean, waste, evidence)
    return worst


def _cost(facts: Facts, waste: float) -> Severity | None:
    return "note" if waste < facts.limits.little_share else None


def load_imbalance(facts: Facts) -> FindingDraft | None:
    """Say that some SMs, or parts of them, work longer than others."""
    sms_a_block = max(1.0, ratio(facts.counter("sm_count"), facts.counter("grid_size")) or 1.0)
    worst = _most_uneven(facts, _SM_UNITS, sms_a_block)
    if worst is None:
        return _tail_seen(facts) or _idle_seen(facts)
    if worst.waste < facts.limits.negligible_share:
        return _tail_seen(facts) or _empty_seen(facts)
    return FindingDraft(
        evidence=(worst.evidence,),
        move=f"split the work finer or schedule it dynamically: the busiest {worst.name} works "
        f"{significant(worst.ratio)}x as long as the average one",
        bears_on=_IDLE_WAITS,
        gain=facts.without_wait(1 / (1 - worst.waste)),
        severity=_cost(facts, worst.waste),
    )


def _empty_seen(facts: Facts) -> FindingDraft | None:
    """Report the imbalance if SMs without a block explain all of it; `small_grid` gives their cost."""
    worst = _most_uneven(facts, _SM_UNITS)
    if worst is None or worst.waste < facts.limits.negligible_share:
        return None
    return FindingDraft(
        evidence=(worst.evidence,),
        move=f"launch a block for every SM: counting those without one, the busiest {worst.name} works "
        f"{significant(worst.ratio)}x as long as the average one",
        severity="note",
        kind="blocks",
    )


def _tail_seen(facts: Facts) -> FindingDraft | None:
    """Report it from the time series: a long tail in which ever fewer warps run."""
    phases = facts.phases
    if phases is None or phases.warps_in_tail is None:
        return None
    waste = phases.tail * (1 - phases.warps_in_tail)
    if waste < facts.limits.negligible_share:
        return None
    evidence = (
        Evidence("part of the run after the plateau", phases.tail, "share", "time series"),
        Evidence("warps in that part over those on the plateau", phases.warps_in_tail, "share", "time series"),
    )
    return FindingDraft(
        evidence=evidence,
        move=f"split the work finer or schedule it dynamically: for the last {percent(phases.tail)} of the run only "
        f"{percent(phases.warps_in_tail)} of the warps are left",
        bears_on=_IDLE_WAITS,
        gain=facts.without_wait(1 / (1 - waste)),
        confidence="medium",
        severity=_cost(facts, waste),
    )


def _idle_seen(facts: Facts) -> FindingDraft | None:
    """Report it from the mean SM alone: in a kernel that is not short it idles longer than the last wave explains."""
    waves, active, time_ns = facts.counter("waves"), facts.kernel.active_part, facts.kernel.duration_ns
    if waves is None or waves < 1 or active is None or time_ns is None or time_ns < facts.limits.short_duration_ns:
        return None
    idle = 1 - active
    waste = idle - (tail_share(waves) or 0.0)
    if waste < facts.limits.little_share:
        return None
    return FindingDraft(
        evidence=(facts.measured("waves", "waves"), _idle(facts, idle)),
        move=f"split the work finer or schedule it dynamically: SMs are idle for {percent(idle)} of the time, more "
        f"than the last of {significant(waves)} waves explains, so some blocks take longer than others",
        bears_on=_IDLE_WAITS,
        gain=facts.without_wait(1 / (1 - waste)),
        confidence="medium",
    )


def partition_imbalance(facts: Facts) -> FindingDraft | None:
    """Say that some L2 slices or DRAM channels take more of the traffic than others."""
    worst = _most_uneven(facts, _MEMORY_UNITS)
    if worst is None or worst.waste < facts.limits.negligible_share:
        return None
    if worst.key == "l2" and works_by_atomics(facts):
        # Atomics on one address are done by one slice, one after the other: that they queue there shows in its cycles.
        return FindingDraft(
            evidence=(worst.evidence,),
            move="spread the atomics over more addresses, or reduce within the block first: the busiest L2 slice works "
            f"{significant(worst.ratio)}x as long as the average one, as where many threads update few addresses",
            bears_on=frozenset({"l2", LATENCY}),
            # It ends when that slice does, and with its work spread when the average one does.
            gain=facts.without_wait(1 / (1 - min(MOST_SPARED, worst.waste * worst.ratio))),
            confidence="medium",
            kind="atomics",
        )
    return FindingDraft(
        evidence=(worst.evidence,),
        move=f"pad the leading dimension or change the stride to spread the addresses: the busiest {worst.name} "
        f"works {significant(worst.ratio)}x as long as the average one",
        bears_on=frozenset({worst.key}),
        gain=facts.without_wait(1 / (1 - worst.waste)),
        severity=_cost(facts, worst.waste),
    )


def low_occupancy(facts: Facts) -> FindingDraft | None:
    """Say that the launch allows few warps on an SM, and what would allow more."""
    allowed = facts.counter("theoretical_occupancy")
    if allowed is None:
        return _few_by_registers(facts)
    if not allowed or allowed >= facts.limits.full_occupancy_share or _is_full_by_design(facts):
        return None
    if (larger := _larger_blocks(facts)) is not None:
        return larger
    limits = _limits(facts)
    reasons = [limit.words for limit in limits]
    because = f": {'; '.join(reasons)}" if reasons else ""
    warps = allowed * (facts.counter("sm_warps") or math.inf)
    alone = ", one warp per scheduler" if 0 < warps <= SCHEDULERS_PER_SM else ""
    together = ", and all of these have to change together" if len(reasons) > 1 else ""
    more = min([1 / allowed, *(limit.more for limit in limits if limit.more)])
    move, kind = _either_way(facts, f"raise occupancy, now at most {percent(allowed)}{alone}{because}{together}")
    return FindingDraft(
        evidence=(
            facts.measured("theoretical_occupancy", "share"),
            *(number for limit in limits for number in limit.evidence),
        ),
        move=move,
        bears_on=WAITS,
        gain=_hidden_by(facts, more),
        whole=facts.without_wait(more),
        severity="note" if _has_no_more_blocks(facts) or _has_warps_enough(facts) or is_large_tile(facts) else None,
        kind=kind,
        confidence=_sureness_of_warps(facts),
        limiters=tuple(limit.limiter for limit in limits),
    )


_HIDDEN_BY_WARPS = ("long_scoreboard", "short_scoreboard", "wait")
"""Waits of one warp that others fill; at a queue, a barrier or a full pipe more of them only wait as well."""


def _sureness_of_warps(facts: Facts) -> Confidence:
    """Return how sure it is that more warps help: whether these were seen to wait for what others can fill.

    Those that queue for a unit wait for that.
    """
    is_hidden = stalled(facts, _HIDDEN_BY_WARPS) >= facts.limits.dominant_stall
    return "high" if is_hidden and facts.limiter is None else "medium"


def _few_by_registers(facts: Facts) -> FindingDraft | None:
    """Say the same by the registers of a thread alone, where the occupancy itself was not printed."""
    allowed = allowed_by_registers(facts.kernel)
    if not allowed or allowed >= facts.limits.full_occupancy_share or _is_full_by_design(facts):
        return None
    used, block = facts.measured("registers_per_thread", "registers"), facts.measured("block_size", "threads")
    held = blocks_by_registers(used.value, block.value, facts.counter("sm_registers") or SM_REGISTERS)
    step = next_step(facts.kernel, "registers") or step_to(facts.kernel, "registers", held + 1)
    fewer = f", {step.to:.0f} would allow {step.blocks:.0f} blocks" if step and step.to < step.now else ""
    words = f"{used.value:.0f} registers per thread, in blocks of {block.value:.0f} threads, leave room for "
    words += f"{percent(allowed)} of the warps{fewer}"
    move, kind = _either_way(facts, f"raise occupancy: {words}")
    return FindingDraft(
        evidence=(Evidence("occupancy by registers", allowed, "share", "CUDA's occupancy arithmetic"), used, block),
        move=move,
        bears_on=WAITS,
        # Where no unit was measured nobody can tell what more warps would fill.
        gain=None if facts.top_share is None else _hidden_by(facts, 1 / allowed),
        confidence="medium",
        severity="note" if _has_warps_enough(facts) or is_large_tile(facts) else None,
        kind=kind,
        limiters=("registers",),
    )


def _is_full_by_design(facts: Facts) -> bool:
    """Return whether a few warps fill an SM: those of warpgroup matrix instructions, or of tiles that TMA copies."""
    has_wgmma = facts.counter("smem_wgmma_bytes") or any(name.endswith("_wgmma") for name in facts.pipes)
    return (
        bool(has_wgmma)
        or any(facts.stall_shares.get(reason) for reason in ("gmma", "warpgroup_arrive"))
        or works_by_warpgroups(facts.kernel.warp_opcodes)
    )


def _either_way(facts: Facts, raise_it: str) -> tuple[str, MoveKind]:
    """Offer both ways to hide waiting, more warps and more work per thread, those with evidence first, and the kind."""
    shares = facts.shares
    busiest = max(shares, key=shares.__getitem__, default=None)
    stalls = facts.kernel.stalls
    leading = max(stalls, key=lambda reason: stalls[reason], default=None)
    are_long = leading == "wait" and not is_usual_wait(facts)
    if are_long and stalls["wait"] > facts.limits.dominant_stall:
        more = "give each thread more independent work, as warps wait on fixed latencies most"
        return f"{more}; or {raise_it}", "inflight"
    if busiest not in DELIVERY or shares[busiest] < facts.limits.bound_share:
        return f"{raise_it}; or keep the warps as they are and give each thread more independent work", "occupancy"
    label = resource_label(busiest, facts.kernel.gpu)
    more = f"let each thread compute more results from what it loads, as {label} is {percent(shares[busiest])} busy"
    return f"{more} delivering operands, even at a lower occupancy; or {raise_it}", "results"


def _hidden_by(facts: Facts, more: float) -> float | None:
    """Model the gain of more warps: the time in which no unit works is shared among more of them."""
    busy = min(1.0, facts.top_share or 0.0)
    return facts.without_wait(1 / (busy + (1 - busy) / more))


def _has_no_more_blocks(facts: Facts) -> bool:
    blocks, sms = facts.counter("grid_size"), facts.counter("sm_count")
    limits = block_limits(facts.kernel)
    return bool(limits and blocks and sms and blocks <= sms * limits[0][1])


def _larger_blocks(facts: Facts) -> FindingDraft | None:
    """Return whether more warps per block are the only way left to hide waits that every kernel has.

    The grid has no more blocks, and fills enough of the slots that its size is not the problem.
    """
    waves, threads = facts.counter("waves"), facts.counter("block_size")
    if waves is None or waves <= facts.limits.most_share or not _has_no_more_blocks(facts):
        return None
    if not threads or 2 * threads > MOST_THREADS or not is_usual_wait(facts):
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
    return replace(
        found,
        gain=facts.without_wait(2.0),
        where=(),
        confidence="medium",
        kind="occupancy",
        limiters=("warps a block",),
    )


def _has_warps_enough(facts: Facts) -> bool:
    """Return whether schedulers have a ready warp and issue most of the time; False if not measured."""
    ready, issued = facts.counter("eligible_warps_per_cycle"), facts.counter("issue_active_per_cycle")
    if ready is None or issued is None:
        return False
    return ready >= 1 and issued >= facts.limits.bound_share


class _Limit(Struct, frozen=True):
    """What prevents more blocks on an SM.

    Attributes:
        more: Warps allowed by the named step over those allowed now, as a factor; None if no step is named.
    """

    limiter: Limiter
    words: str
    evidence: tuple[Evidence, ...] = ()
    more: float | None = None


def _limits(facts: Facts) -> list[_Limit]:
    """Describe what prevents more blocks on an SM, with the numbers that are its evidence."""
    limits = block_limits(facts.kernel)
    if not limits:
        return []
    blocks = limits[0][1]
    # How many blocks an SM can hold according to the resources that do not limit yet.
    room = next((limit for _, limit in limits if limit > blocks), math.inf)
    now, described = f"{count(int(blocks), 'block')} per SM", []
    for limiter in occupancy_limiters(facts.kernel):
        step = next_step(facts.kernel, limiter)
        if limiter == "shared memory" and (wider := _wider(facts, blocks, room)):
            described.append(wider)
            continue
        if step is None:
            described.append(_Limit(limiter, f"{limiter} allow{'s' if limiter == 'shared memory' else ''} {now}"))
            continue
        more, then = ratio(min(step.blocks, room), blocks), f"{step.blocks:.0f}"
        if limiter == "registers":
            words = f"{step.now:.0f} registers per thread allow {now}, {step.to:.0f} would allow {then}"
        elif limiter == "shared memory":
            taken, to = si(step.now, "B"), si(step.to, "B")
            words = f"{taken} of shared memory per block allow {now}, {to} would allow {then}"
        else:
            more = ratio(step.blocks * warps_of(step.to), blocks * warps_of(step.now))
            size, to = count(int(step.now), "thread"), f"{step.to:,.0f}"
            words = f"blocks of {size} use up the block slots with {now}, blocks of {to} would fill the warp slots too"
            if limiter == "warps a block":
                words = f"blocks of {size} leave warp slots empty with {now}, blocks of {to} would fill more of them"
                words += f" with {then}"
        evidence = (
            Evidence(f"{limiter} now", step.now, step.unit, _SOURCES[limiter]),
            Evidence(f"{limiter} that would allow more", step.to, step.unit, "CUDA's occupancy arithmetic"),
        )
        described.append(_Limit(limiter, words, evidence, more))
    return described


_SOURCES = {
    "registers": "launch__registers_per_thread",
    "shared memory": "launch__shared_mem_per_block_allocated",
    "warps a block": "launch__block_size",
    "block slots": "launch__block_size",
}


def _wider(facts: Facts, blocks: float, room: float) -> _Limit | None:
    """Say that the SM could set aside more shared memory than it did for this launch."""
    held, most = set_aside_bytes(facts.kernel), sm_smem_bytes(facts.kernel)
    block, driver = block_smem_bytes(facts.kernel.counters), facts.counter("smem_driver_bytes") or 0.0
    if held is None or most is None or not block or most // block <= blocks:
        return None
    now = f"{si(block - driver, 'B')} of shared memory per block allow {count(int(blocks), 'block')} per SM"
    words = (
        f"{now} in the {si(held, 'B')} that the SM reserved, and it can reserve {si(most, 'B')}, enough for "
        f"{most // block:.0f} (the carveout preference)"
    )
    source = facts.kernel.counter_sources.get("sm_smem_bytes", "CUDA C++ Programming Guide")
    numbers = (
        Evidence("shared memory reserved", held, "B", "launch__shared_mem_config_size"),
        Evidence("shared memory an SM can reserve", most, "B", source),
    )
    return _Limit("carveout", words, numbers, ratio(min(most // block, room), blocks))


def achieved_occupancy_gap(facts: Facts) -> FindingDraft | None:
    """Say that far fewer warps are on an SM than the launch allows."""
    allowed, achieved = facts.counter("theoretical_occupancy"), facts.counter("achieved_occupancy")
    if not allowed or not achieved or allowed - achieved <= facts.limits.occupancy_gap_share:
        return None
    waves = facts.counter("waves")
    evidence = [facts.measured("achieved_occupancy", "share"), facts.measured("theoretical_occupancy", "share")]
    is_small = waves is not None and waves < facts.limits.small_grid_waves
    kind: MoveKind = "balance"
    limiters: tuple[Limiter, ...] = ()
    fill, held = "", f"achieved occupancy is {percent(achieved)}, theoretical {percent(allowed)}"
    is_alone, block = allows_one_block(facts), facts.counter("block_size")
    is_tail = waves is not None and allowed * (tail_share(waves) or 0.0) >= facts.limits.most_share * (
        allowed - achieved
    )
    if is_small:  # `small_grid` reports this
        kind = "blocks"
        fill = f"launch more blocks: the grid fills {percent(waves)} of the block slots"
    elif is_alone and block:
        kind = "shape"
        fill = f"reduce the block size, such as to {facts.limits.large_block_threads:.0f} threads, as one block "
        fill += f"of {block:,.0f} fills an SM"
    elif (each := instructions_a_warp(facts)) is not None and each.value < facts.limits.short_warp_instructions:
        evidence.append(each)
        executed = count(round(each.value), "instruction")
        kind = "elements"
        fill = f"loop over several elements per thread, as each warp executes only {executed}"
    elif is_tail and waves is not None:
        evidence.append(facts.measured("waves", "waves"))
        fill, kind, numbers, limiters = _fill_last_wave(facts, waves)
        evidence += numbers
        fill = f"{fill}, as the last of {significant(waves)} waves leaves the slots empty"
    elif (each_ns := _short_wave_ns(facts)) is not None:
        evidence += [facts.measured("waves", "waves"), Evidence("time of a wave", each_ns, "ns", "duration / waves")]
        kind = "elements"
        fill = f"loop over several elements per thread, as blocks start and end often: a wave lasts {duration(each_ns)}"
    elif waves is not None and waves > 1 and (even := _are_even(facts)) is not None:
        evidence += [facts.measured("waves", "waves"), even]
        kind = "elements"
        fill = (
            "loop over several elements per thread, as blocks start and end often, or their warps end apart, while SMs "
        )
        fill += f"are even ({significant(even.value)}x the mean at most in {significant(waves)} waves)"
    return FindingDraft(
        evidence=tuple(evidence),
        move=f"{fill}: {held}"
        if fill
        else f"balance the work: SMs hold {percent(achieved)} of their warp slots where "
        f"{percent(allowed)} fit (uneven blocks or a short tail)",
        bears_on=WAITS,
        gain=facts.without_wait(allowed / achieved),
        severity="note" if is_small or _has_warps_enough(facts) else None,
        kind=kind,
        confidence=_sureness_of_warps(facts),
        limiters=limiters,
    )


def _are_even(facts: Facts) -> Evidence | None:
    """Return the busiest SM over the mean if SMs are evenly busy; None if they are not, or if unknown."""
    mean, most = facts.counter("sm_cycles_active_avg"), facts.counter("sm_cycles_active_max")
    if not mean or not most or not 1 <= most / mean < 1 + facts.limits.noise_share:
        return None
    sources = [facts.kernel.counter_sources.get(f"sm_cycles_active_{end}", "") for end in ("max", "avg")]
    return Evidence("busiest SM over the mean", most / mean, "x", " / ".join(sources))


def _short_wave_ns(facts: Facts) -> float | None:
    """Return the time of a wave where blocks come and go in many short ones; None otherwise."""
    waves, time_ns = facts.counter("waves"), facts.kernel.duration_ns
    if waves is None or waves <= 1 or time_ns is None:
        return None
    return time_ns / waves if time_ns / waves < facts.limits.overhead_duration_ns else None


def allows_one_block(facts: Facts) -> bool:
    """Return whether an SM holds one large block at a time: until its last warp is done, nothing takes its place."""
    limits, threads = block_limits(facts.kernel), facts.counter("block_size")
    return bool(limits) and limits[0][1] == 1 and (threads or 0.0) > facts.limits.large_block_threads


def thread_divergence(facts: Facts) -> FindingDraft | None:
    """Report instructions in which few of a warp's 32 threads work on average."""
    kernel, least, threads = facts.kernel, facts.limits.active_threads, None
    names = [name for name in ("threads_per_inst", "threads_on_per_inst") if facts.counter(name)]
    if names:
        threads = facts.measured("threads_per_inst", "threads", min(names, key=kernel.counters.__getitem__))
    elif mean := ratio(sum(kernel.thread_opcodes.values()), sum(kernel.warp_opcodes.values())):
        threads = Evidence("threads_per_inst", mean, "threads", "thread / warp instructions by opcode")
    if threads is None or threads.value >= least:
        return None
    # If enough of the existing threads work, the idle lanes are those that blocks leave empty.
    block = kernel.block_threads
    fill = warp_fill(block) if block else None
    by_block = fill is not None and fill != 1 and (block == 1 or threads.value >= least * fill)
    switched_off = (facts.counter("threads_per_inst") or 0.0) >= least
    branches = facts.counter("divergent_branch_count")
    evidence, said = [threads], f"{significant(threads.value)} of 32 lanes active"
    idle = 1 - threads.value / WARP_THREADS
    parts = dict.fromkeys(facts.pipes, idle)
    if by_block:
        move = f"change the block size, not the branches: {said}, as blocks of {block} do not fill warps"
    elif switched_off:
        move = f"give idle lanes work, or let whole warps skip it: {said}, the others are predicated off"
    else:
        where = f" at {si(branches, 'branches')}" if branches else ""
        move = f"group threads that take the same path: warps diverge{where}, {said}"
        # Each path issues its own loads and stores, but their share of all is not counted.
        parted = 1 - facts.kernel.counters.get("threads_per_inst", threads.value) / WARP_THREADS
        parts |= dict.fromkeys(("l1", "smem"), parted / 2)
        if branches:
            evidence.append(facts.measured("divergent_branch_count", "branches"))
    waste = Waste(parts, serial=0.0 if by_block or switched_off else idle)
    return FindingDraft(
        evidence=tuple(evidence),
        move=move,
        waste=waste,
        where=_idle_places(facts),
        severity="note" if by_block else weigh(facts, waste),
        kind="shape" if by_block else None,
    )


def _idle_places(facts: Facts) -> tuple[Place, ...]:
    """Return the lines that lose most lanes, or the instructions if lines are unknown; at most three."""
    kernel = facts.kernel
    if "warp_inst" not in kernel.code_totals or "thread_inst" not in kernel.code_totals:
        return ()
    total = kernel.code_totals["warp_inst"] * WARP_THREADS - kernel.code_totals["thread_inst"]
    if total <= 0:
        return ()

    def lost(spot: Hotspot) -> float:
        return spot.measures.get("warp_inst", 0.0) * WARP_THREADS - spot.measures.get("thread_inst", 0.0)

    grain = "line" if any(hotspot.by == "line" for hotspot in kernel.hotspots) else "sass"
    ranked = sorted((spot for spot in kernel.hotspots if spot.by == grain), key=lost, reverse=True)[:MOST_PLACES]
    return tuple(
        Place(spot, lost(spot) / total) for spot in ranked if lost(spot) >= facts.limits.negligible_share * total
    )


def partial_warps(facts: Facts) -> FindingDraft | None:
    """Say that the threads of a block do not fill its warps."""
    threads = facts.kernel.block_threads
    if not threads or (fill := warp_fill(threads)) == 1:
        return None
    idle = 1 - fill
    of_l1 = accesses_of_l1(facts, idle)
    waste = Waste({**dict.fromkeys(facts.pipes, idle), **({"l1": of_l1} if of_l1 else {})})
    blocks, sms = facts.counter("grid_size"), facts.counter("sm_count")
    crowded = blocks is not None and sms is not None and blocks >= sms
    holds_back = facts.bound == "latency" and crowded and idle >= facts.limits.most_share
    is_alone = facts.bound == "latency" and blocks is not None and (blocks < sms if sms is not None else blocks == 1)
    beside: Severity = "contributes" if idle > facts.limits.most_share and facts.is_long else "note"
    return FindingDraft(
        evidence=(
            Evidence("block_size", float(threads), "threads", "launch__block_size"),
            Evidence("warp_fill", fill, "share", "threads / (32 x warps of a block)"),
        ),
        move=f"make the block size a multiple of 32 threads: blocks of {threads} fill {percent(fill)} of the lanes in "
        f"their {'warp' if threads <= WARP_THREADS else 'warps'}",
        bears_on=waste.bears_on | (frozenset({LATENCY}) if holds_back else frozenset()),
        gain=facts.without_wait(1 / fill) if holds_back else speedup(facts, waste),
        severity="limiter" if holds_back else beside if is_alone else weigh(facts, waste),
    )


def warp_fill(threads: float) -> float:
    """Return the share of its warps' lanes that a block of this many threads fills, 0 to 1."""
    return threads / (warps_of(threads) * WARP_THREADS)


LAUNCH: tuple[FindingRule, ...] = (
    FindingRule("short_kernel", "launch-sized kernel", "fuse", short_kernel, (("duration_ns",),)),
    FindingRule("launch_gaps", "gaps around its launches", "graph", launch_gaps, (("in_program",),)),
)
_IDLE_SMS = tuple(("waves", "sm_cycles_active_avg", elapsed) for elapsed in ("sm_cycles_elapsed_avg", "elapsed_cycles"))
"""What tells that SMs idle for longer than the last wave explains."""

BALANCE: tuple[FindingRule, ...] = (
    FindingRule(
        "small_grid",
        "too few blocks",
        "blocks",
        small_grid,
        (("waves",), ("grid_size", "sm_count")),
        hints=(("grid_size",),),
    ),
    FindingRule("tail_wave", "partial last wave", "balance", tail_wave, _IDLE_SMS),
    FindingRule(
        "load_imbalance",
        "imbalance between SMs",
        "balance",
        load_imbalance,
        (
            *(_BALANCED_UNITS[key][1:3] for key in _SM_UNITS),
            ("series",),
            *_IDLE_SMS,
        ),
    ),
    FindingRule(
        "partition_imbalance",
        "imbalance between memory partitions",
        "pad",
        partition_imbalance,
        tuple(_BALANCED_UNITS[key][1:3] for key in _MEMORY_UNITS),
    ),
)
OCCUPANCY: tuple[FindingRule, ...] = (
    FindingRule(
        "low_occupancy",
        "low occupancy",
        "occupancy",
        low_occupancy,
        (("theoretical_occupancy",),),
        hints=(("registers_per_thread", "block_size"),),
    ),
    FindingRule(
        "achieved_occupancy_gap",
        "low achieved occupancy",
        "occupancy",
        achieved_occupancy_gap,
        (("theoretical_occupancy", "achieved_occupancy"),),
    ),
)
DIVERGENCE: tuple[FindingRule, ...] = (
    FindingRule(
        "thread_divergence",
        "idle lanes in warps",
        "divergence",
        thread_divergence,
        (("threads_per_inst",), ("threads_on_per_inst",), ("thread_opcodes", "warp_opcodes")),
    ),
    FindingRule("partial_warps", "partly filled warps", "shape", partial_warps, (("block_size",),)),
)
