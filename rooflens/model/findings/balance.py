"""Findings about time in which the GPU or part of it is idle: launches, grids, waves, SMs, slices, channels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.format import count, percent, significant
from rooflens.model.findings.rule import IDLE, LATENCY, FindingRule, Found
from rooflens.model.records import Evidence, ratio
from rooflens.model.roofline.occupancy import tail_share

if TYPE_CHECKING:
    from rooflens.model.findings.rule import Facts
    from rooflens.model.records import Severity

_WAITS = frozenset({LATENCY, IDLE})
_WAVES = {"waves": "waves", "grid_size": "blocks", "sm_count": "SMs"}
"""What a grid is judged by: counter -> unit."""


def small_grid(facts: Facts) -> Found | None:
    """Say that the grid has fewer blocks than the GPU holds at once.

    A wave is as many blocks as all SMs hold at once. A grid below one wave leaves SMs, or slots on them, empty for
    the whole run. Counters: `launch__waves_per_multiprocessor`, the grid and the number of SMs. Confirm with a larger
    problem: the time barely grows until the wave is full. The speed-up is that of a full wave, capped
    by what the busiest unit allows. It does not show whether the problem can be split into more blocks.

    Try:
    - use smaller tiles, so that there are more blocks (`BLOCK_M`, `BLOCK_N`)
    - split the reduction over blocks: CUTLASS split-K or stream-K, split keys in attention for decoding
    - batch several problems into one launch
    - run it concurrently with others: streams, or branches of a CUDA graph
    """
    waves, blocks, sms = (facts.counter(name) for name in _WAVES)
    an_sm = ratio(blocks, sms)
    if not waves or (waves >= facts.limits.small_grid_waves and (an_sm is None or an_sm >= 1)):
        return None
    words, gain, severity = f"the grid is {significant(waves)} waves", 1 / waves, None
    if an_sm and blocks and sms:
        what = f"leaves {count(int(sms - blocks), 'SM')} without a block" if an_sm < 1 else "does not fill the GPU once"
        words = f"the grid of {count(int(blocks), 'block')} is {significant(waves)} waves on {sms:,.0f} SMs and {what}"
        gain = max(gain, 1 / an_sm)
        severity = None if an_sm < 1 or waves <= facts.limits.empty_grid_waves else _beside(facts)
    return Found(
        evidence=tuple(facts.measured(name, unit) for name, unit in _WAVES.items() if facts.counter(name) is not None),
        move=f"launch more blocks: split the work finer, split the reduction, or batch: {words}",
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(gain),
        severity=severity,
    )


def _beside(facts: Facts) -> Severity:
    """Judge what costs time beside the limiter: nothing does at the roof."""
    return "note" if facts.at_roof else "contributes"


def idle_share(facts: Facts) -> float | None:
    """Return the part of the run in which the mean SM had no work, 0 to 1; None where not measured."""
    active = facts.counter("sm_cycles_active_avg")
    elapsed = facts.counter("sm_cycles_elapsed_avg") or facts.counter("elapsed_cycles")
    return max(0.0, 1 - active / elapsed) if active is not None and elapsed else None


def tail_wave(facts: Facts) -> Found | None:
    """Say that the last wave of blocks does not fill the GPU, and SMs were measured idle.

    When the blocks do not divide into whole waves, the last ones run with some of the SMs empty. What that would
    cost is easily computed but rarely true, because blocks do not end together: so it is reported only where SMs were
    idle for part of the run, and it promises no more than the smaller of the two. Counters: waves, active
    cycles of the average SM, elapsed cycles. Confirm with the time series, or with a grid of whole waves. It does not
    tell the tail from SMs that are idle at the start.

    Try:
    - try other tile sizes, for a full last wave or a short one (`triton.autotune`)
    - launch as many blocks as fit at once and let each loop over tiles: a persistent kernel, stream-K
    - let the next kernel start in the tail: a second stream, programmatic dependent launch on CC 9.0 and later
    """
    waves, idle = facts.counter("waves"), idle_share(facts)
    if waves is None or waves <= 1 or idle is None or idle < facts.limits.tail_idle_share:
        return None
    rest = waves - math.floor(waves)
    computed = tail_share(waves)
    if not computed or not rest:
        return None
    return Found(
        evidence=(facts.measured("waves", "waves"), _idle(facts, idle)),
        move=f"choose a block size that fills the last wave, or write a persistent kernel: of "
        f"{significant(waves)} waves the last is {percent(rest)} full, and SMs are idle for {percent(idle)} of "
        "the time",
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(1 / (1 - min(idle, computed))),
        severity=_tail_severity(facts, min(idle, computed)),
    )


def _tail_severity(facts: Facts, waste: float) -> Severity | None:
    """Judge a tail by what it costs: idle SMs that whole waves would leave as well are no reason to change them."""
    if waste < facts.limits.tail_idle_share:
        return "note"
    return _beside(facts) if waste < facts.limits.tail_share else None


def _idle(facts: Facts, idle: float) -> Evidence:
    names = ("sm_cycles_active_avg", "sm_cycles_elapsed_avg", "elapsed_cycles")
    sources = [facts.kernel.counter_sources.get(name, name) for name in names if facts.counter(name) is not None]
    return Evidence("idle SM time", idle, "share", f"1 - {sources[0]} / {sources[1]}")


class _Uneven(Struct, frozen=True):
    """How unevenly the units of one kind work.

    Attributes:
        ratio: Busiest unit over the mean of those that have work.
        waste: Part of the run that goes if all did as much as the mean, 0 to 1.
        source: Of the ratio.
    """

    key: str
    name: str
    ratio: float
    waste: float
    source: str

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The number that the finding stands on."""
        return (Evidence(f"busiest {self.name} over the mean", self.ratio, "x", self.source),)


class _Unit(Struct, frozen=True):
    """One kind of unit: the counters of the cycles in which the mean and the busiest one work, and of all cycles."""

    key: str
    name: str
    mean: str
    most: str
    elapsed: tuple[str, ...]


def _unit(key: str, name: str, *elapsed: str) -> _Unit:
    return _Unit(
        key, name, f"{key}_cycles_active_avg", f"{key}_cycles_active_max", (f"{key}_cycles_elapsed_avg", *elapsed)
    )


_SM_UNITS = (
    _unit("sm", "SM", "elapsed_cycles"),
    _unit("smsp", "SM sub-partition", "elapsed_cycles"),
    _unit("l1", "L1 cache", "elapsed_cycles"),
)
_MEMORY_UNITS = (_unit("l2", "L2 slice"), _unit("dram", "DRAM channel"))


def _most_uneven(facts: Facts, units: tuple[_Unit, ...], of_one: float = 1.0) -> _Uneven | None:
    """Return the most uneven kind; `of_one` is how many units there are for each that has work."""
    found = [uneven for unit in units if (uneven := _uneven(facts, unit, of_one)) is not None]
    return max(found, key=lambda uneven: uneven.waste, default=None)


def _uneven(facts: Facts, unit: _Unit, of_one: float) -> _Uneven | None:
    counters = facts.kernel.counters
    mean, most = counters.get(unit.mean), counters.get(unit.most)
    if not mean or not most or most < mean:
        return None
    elapsed = next((cycles for name in unit.elapsed if (cycles := counters.get(name))), None)
    if elapsed is None:
        return None
    sources = facts.kernel.counter_sources
    source = f"{sources.get(unit.most, unit.most)} / {sources.get(unit.mean, unit.mean)}"
    if of_one > 1:
        mean, source = min(most, mean * of_one), f"{source} x blocks / SMs"
    waste = (1 - mean / most) * min(1.0, mean / elapsed)
    return _Uneven(unit.key, unit.name, most / mean, waste, source)


def _sms_a_block(facts: Facts) -> float:
    """Return how many SMs there are for each block; 1 where every SM has one or it is not known."""
    return max(1.0, ratio(facts.counter("sm_count"), facts.counter("grid_size")) or 1.0)


def _cost(facts: Facts, waste: float) -> Severity | None:
    return "note" if waste < facts.limits.imbalance_cost_share else None


def load_imbalance(facts: Facts) -> Found | None:
    """Say that some SMs, or parts of them, work longer than others.

    A kernel ends with its slowest SM; the time that the others idle until then is lost. Blocks or warps with more work
    than others cause it, as in triangular or sparse problems. Counters: active cycles of the busiest SM, SM
    sub-partition or L1 cache against the average; where the grid has fewer blocks than there are SMs, the average is
    over units that have a block (a note covers the rest). The most uneven kind counts. The part of the time that an
    even load would save is (1 - mean / busiest) x (active / elapsed), as in NVIDIA's own rule. Confirm with the time
    series (a long tail) or by scheduling the work dynamically. It does not show which blocks take longer.

    Try:
    - split the work finer: with more blocks than fit at once, whichever SM is free takes the next
    - start the longest pieces first, such as the long rows of causal attention
    - schedule tiles dynamically: a persistent kernel with an atomic counter
    - balance by elements instead of rows, as merge-based sparse products do
    """
    worst = _most_uneven(facts, _SM_UNITS, _sms_a_block(facts))
    if worst is None:
        return _tail_seen(facts) or _idle_seen(facts)
    if worst.waste < facts.limits.imbalance_share:
        return _tail_seen(facts) or _empty_seen(facts)
    return Found(
        evidence=worst.evidence,
        move=f"split the work finer or schedule it dynamically: the busiest {worst.name} works "
        f"{significant(worst.ratio)}x as long as the average one",
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(1 / (1 - worst.waste)),
        severity=_cost(facts, worst.waste),
    )


def _empty_seen(facts: Facts) -> Found | None:
    """Say that SMs without a block are all there is to it: true, and `small_grid` says what it costs."""
    worst = _most_uneven(facts, _SM_UNITS)
    if worst is None or worst.waste < facts.limits.imbalance_share:
        return None
    return Found(
        evidence=worst.evidence,
        move=f"launch a block for every SM: counting those without one, the busiest {worst.name} works "
        f"{significant(worst.ratio)}x as long as the average one",
        severity="note",
    )


def _tail_seen(facts: Facts) -> Found | None:
    """Say the same by the time series: a long tail in which ever fewer warps run."""
    phases = facts.phases
    if phases is None or phases.warps_in_tail is None:
        return None
    waste = phases.tail * (1 - phases.warps_in_tail)
    if waste < facts.limits.imbalance_share:
        return None
    evidence = (
        Evidence("part of the run after the plateau", phases.tail, "share", "time series"),
        Evidence("warps in that part over those on the plateau", phases.warps_in_tail, "share", "time series"),
    )
    return Found(
        evidence=evidence,
        move=f"split the work finer or schedule it dynamically: for the last {percent(phases.tail)} of the run only "
        f"{percent(phases.warps_in_tail)} of the warps are left",
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(1 / (1 - waste)),
        confidence="medium",
        severity=_cost(facts, waste),
    )


def _idle_seen(facts: Facts) -> Found | None:
    """Say the same by the mean SM alone: in a kernel that is not short it idles longer than the last wave explains."""
    waves, idle, time_ns = facts.counter("waves"), idle_share(facts), facts.kernel.duration_ns
    if waves is None or waves < 1 or idle is None or time_ns is None or time_ns < facts.limits.short_duration_ns:
        return None
    waste = idle - (tail_share(waves) or 0.0)
    if waste < facts.limits.imbalance_cost_share:
        return None
    return Found(
        evidence=(facts.measured("waves", "waves"), _idle(facts, idle)),
        move=f"split the work finer or schedule it dynamically: SMs are idle for {percent(idle)} of the time, more "
        f"than the last of {significant(waves)} waves explains, so some blocks take longer than others",
        bears_on=_WAITS,
        speedup_up_to=facts.without_wait(1 / (1 - waste)),
        confidence="medium",
    )


def partition_imbalance(facts: Facts) -> Found | None:
    """Say that some L2 slices or DRAM channels take more of the traffic than others.

    Addresses are spread over L2 slices and DRAM channels; a stride that is a multiple of that pattern hits the same few
    again and again, and they fill up while others idle. Counters: active cycles of the busiest slice or channel against
    the average, weighted by the part of the time in which they are active at all, because very little traffic is always
    uneven. Confirm by padding the leading dimension. It does not show which array it is.

    Try:
    - pad the leading dimension so that it is not a power of two (`cudaMallocPitch`, a slice of a wider tensor)
    - reorder the blocks, so that those that run together touch different rows
    - look for an address that all blocks read or update, and give each block its own copy
    """
    worst = _most_uneven(facts, _MEMORY_UNITS)
    if worst is None or worst.waste < facts.limits.imbalance_share:
        return None
    return Found(
        evidence=worst.evidence,
        move=f"pad the leading dimension or change the stride to spread the addresses: the busiest {worst.name} "
        f"works {significant(worst.ratio)}x as long as the average one",
        bears_on=frozenset({worst.key}),
        speedup_up_to=facts.without_wait(1 / (1 - worst.waste)),
        severity=_cost(facts, worst.waste),
    )


_IDLE_SMS = tuple(("waves", "sm_cycles_active_avg", elapsed) for elapsed in ("sm_cycles_elapsed_avg", "elapsed_cycles"))
"""What tells that SMs idle for longer than the last wave explains."""

BALANCE: tuple[FindingRule, ...] = (
    FindingRule("small_grid", "grid below one wave", small_grid, (("waves",),)),
    FindingRule("tail_wave", "partial last wave", tail_wave, _IDLE_SMS),
    FindingRule(
        "load_imbalance",
        "imbalance between SMs",
        load_imbalance,
        (
            *((unit.mean, unit.most) for unit in _SM_UNITS),
            ("series",),
            *_IDLE_SMS,
        ),
    ),
    FindingRule(
        "partition_imbalance",
        "imbalance between memory partitions",
        partition_imbalance,
        tuple((unit.mean, unit.most) for unit in _MEMORY_UNITS),
    ),
)
