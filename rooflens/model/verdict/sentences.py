"""The sentence of a verdict, with its decisive numbers and the move, and the lines of evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rooflens.format import count, duration, factor, percent, si, significant
from rooflens.model.counters.balance import STALLS
from rooflens.model.failed import ALL_NAN
from rooflens.model.records import LEVELS, Bottleneck, Finding, Verdict, ratio
from rooflens.model.roofline.occupancy import occupancy_limiters
from rooflens.model.roofline.unit_names import (
    STAGE_WORDS,
    busy_words,
    level_share_words,
    origin,
    resource_label,
    sides_words,
    spoken,
    stage_label,
    unit_label,
)
from rooflens.model.roofline.units import WHOLE
from rooflens.model.unprofiled import InProgram
from rooflens.model.verdict.facts import Facts
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.model.verdict.unmeasured import COMPUTE, MEMORY, ONE_UNIT, OTHER_PIPES
from rooflens.model.verdict_classes import Bound, is_open

NOT_MEASURED = "cause not measured"
"""The cause of a kernel that waits, where nothing measured says most of why."""
_START_AND_END = "2 to 3 \u00b5s"
"""What any launch takes to fill the GPU and to drain it."""
_WHOLE_PAIRS = frozenset({"8.6", "8.9", "12.0"})
"""Chips whose GDDR memory is read by pairs of sectors."""


def _stage_words(stage: str, busy: float, moving: float | None, taking: float | None) -> str:
    """Say how busy a stage is: `86 % of load/store slots used`, `its bank reads stage is 70 % busy`.

    NVIDIA's per cents of moving data and of taking requests name what keeps a level busy as a whole.
    """
    share = percent(busy)
    if stage == WHOLE:
        if moving is not None and abs(moving - busy) <= ONE_UNIT:
            return f"{share} busy moving data"
        if taking is not None and abs(taking - busy) <= ONE_UNIT:
            return f"{share} busy with requests"
        return f"{share} busy, in a stage that the report does not name"
    return (
        f"{share} of {STAGE_WORDS[stage]} used"
        if stage in STAGE_WORDS
        else f"its {stage_label(stage)} stage {share} busy"
    )


def limiter_words(bound: str, resource: str | None, *gpus: str | None) -> str:
    """Name a limiter: `compute at tensor bf16`, `memory at HBM3`, `instruction issue`, `latency`."""
    if resource is None:
        return bound
    if bound == "balanced":
        return f"near two limits ({resource_label(resource, *gpus)} nearest)"
    if resource == "issue":
        return f"{resource_label(resource)}{'?' if is_open(bound) else ''}"
    return f"{bound} at {resource_label(resource, *gpus)}"


def wait_words(largest: str, shares: Mapping[str, float], title: str) -> str:
    """Name the largest counted wait; say so if others may be larger.

    Args:
        largest: Its reason.
        shares: Each reason that was counted, with its part of the time of a warp.
        title: What the wait is called.
    """
    is_sure = len(shares) >= len(STALLS) // 2 or 1 - sum(shares.values()) <= shares[largest]
    return title if is_sure else f"{title}, of the waits counted"


_WAITS = {form: {f"stall_{why}_{form}": why for why in STALLS} for form in ("share", "cycles")}
"""Form of a count of waits -> its counters, each with its reason."""


def longest_wait(facts: Facts) -> str | None:
    """Name the longest wait that was sampled or counted; None if none was.

    Cycles for each issued instruction compare the waits, though their part of a warp's time may not be known.
    """
    counters = facts.kernel.counters
    sampled = {why: share for why, share in facts.kernel.stalls.items() if why in STALLS}
    read = {
        form: {why: counters[name] for name, why in names.items() if name in counters} for form, names in _WAITS.items()
    }
    for form, counted in (("share", sampled), *read.items()):
        waits = [why for why in counted if why != "not_selected"]
        if waits:
            longest = max(waits, key=counted.__getitem__)
            shares = counted if form == "share" else dict.fromkeys(counted, 0.0)
            return wait_words(longest, shares, STALLS[longest])
    return None


def verdict_sentence(
    facts: Facts, causes: Sequence[Finding], moves: Sequence[str], *, unmeasured: bool, done: str = ""
) -> str:
    """Write the verdict: class, its two decisive numbers, the first move; of a finished kernel first that it is done.

    Args:
        facts: The kernel's facts, with its class.
        causes: Findings that say why it waits.
        moves: What can help.
        unmeasured: It was not measured why the kernel waits: what was found is a part of it at most.
        done: The roof that it has reached; empty if there is something left to win.
    """
    roof = ", at the roof" if facts.at_roof else ""
    if facts.full_for_a_while:
        head = f"{_on_the_plateau(facts)}{roof}"
    elif facts.bound == "balanced":
        head = f"Near two limits: {sides_words(facts.sides, facts.kernel.gpu)}{roof}"
    elif facts.limiter is not None:
        head = _at_its_limiter(facts, facts.limiter)
    else:
        head = _without_limiter(facts, causes, unmeasured=unmeasured)
    if facts.outside.waiting is not None and facts.bound != "overhead":
        head += f"; and {_gap_words(facts.outside.waiting)}"
    move = f" {moves[0][0].upper()}{moves[0][1:]}." if moves else ""
    return f"{f'Done: {done}. ' if done else ''}{head}.{move}"


def _on_the_plateau(facts: Facts) -> str:
    """Name what limits a kernel for a part of its run."""
    phases, limiter = facts.phases, facts.limiter
    if phases is None or limiter is None:
        return ""
    bound = "Memory-bound at" if limiter.resource in facts.levels else "Compute-bound by"
    rest = (("ramp", phases.ramp), ("tail", phases.tail))
    after = " and ".join(f"{percent(part)} {name}" for name, part in rest if part >= facts.limits.little_share)
    peak = f"{percent(phases.share)} of its peak for {percent(phases.plateau)} of the run"
    average = f"{percent(limiter.share)} on average"
    where = spoken(limiter.resource, facts.kernel.gpu)
    return f"{bound} {where} while the GPU is full: {peak}, {average}{f' with {after}' if after else ''}"


def _at_its_limiter(facts: Facts, limiter: Bottleneck) -> str:
    """Name the limiter of a kernel, with how much of its peak it does; at the roof it is full."""
    resource, where = limiter.resource or "", spoken(limiter.resource, facts.kernel.gpu)
    other = f"; or {_classes(facts.or_bound)}, as {unmeasured_words(facts.unmeasured)}" if facts.or_bound else ""
    if limiter.resource is None:
        head = _possibly(f"{facts.bound.capitalize()}-bound") if other else f"{facts.bound.capitalize()}-bound"
        return f"{head} ({percent(limiter.share)} of peak; the report does not name the unit){other}"
    if facts.bound == "memory":
        head, joint, numbers = "Memory-bound", "at", _of_the_level(facts, limiter)
    else:
        head, joint, numbers = "Limited" if resource == "issue" else "Compute-bound", "by", _of_the_pipe(facts, limiter)
    if other:
        return f"{_possibly(head)} {joint} {where}: {numbers}{other}"
    is_full = facts.at_roof and resource != "issue"
    return f"{head}: {where} is saturated, {numbers}" if is_full else f"{head} {joint} {where}: {numbers}"


def _of_the_level(facts: Facts, limiter: Bottleneck) -> str:
    """Write how much of its peak a memory level does, and the intensity of a kernel that could do more.

    A per cent in parentheses is that of the two rates before it; that of a stage, or of the unit that a level fills,
    says whose it is.
    """
    share, level = percent(limiter.share), facts.levels.get(limiter.resource or "")
    if level is None:
        return f"{share} of its peak"
    verb = "moving" if facts.at_roof else "moves"
    stage, of_rates, rates = level.binding_stage, None, ""
    parts = [facts.counter(f"sol_memory_{what}_share") for what in ("access", "request")]
    if level.bytes_per_s is not None and level.peak_bytes_per_s:
        of_rates = level.bytes_per_s / level.peak_bytes_per_s
        rates = f"{verb} {si(level.bytes_per_s, 'B/s')} of {si(level.peak_bytes_per_s, 'B/s')}{origin(level.roof)}"
    if limiter.unit:
        part = f" ({percent(of_rates)})" if _are_one(of_rates, level.share) else ""
        through = f"{rates}{part} through" if rates else "filling" if facts.at_roof else "fills"
        numbers = f"{through} {unit_label(limiter, facts.kernel.gpu)}, which is {share} busy"
    elif level.share is None:
        numbers = (
            f"at least {share} of its peak" if limiter.resource == "dram" else f"{share} by NVIDIA's per cent of it"
        )
    elif stage is None and rates:
        is_of_rates = _are_one(of_rates, limiter.share)
        stage = level.leading_stage or "busiest"
        numbers = f"{rates} ({share})" if is_of_rates else f"{rates}, {_stage_words(stage, limiter.share, *parts)}"
    else:
        numbers = _stage_words(stage or "busiest", limiter.share, *parts)
    intensity = level.intensity_flop_per_byte
    return f"{numbers} at {significant(intensity)} FLOP/B" if intensity and not facts.at_roof else numbers


def _of_the_pipe(facts: Facts, limiter: Bottleneck) -> str:
    """Write how much of its peak a pipe does, or how busy it is."""
    share, pipe = percent(limiter.share), facts.pipes.get(limiter.resource or "")
    if limiter.resource == "issue":
        return f"{share} of slots used"
    if pipe is None or pipe.amount_per_s is None or not pipe.peak_per_s:
        return f"{share} busy"
    about = "about " if pipe.source == "estimated" else ""
    numbers = f"{about}{si(pipe.amount_per_s, f'{pipe.unit}/s')} of {si(pipe.peak_per_s, f'{pipe.unit}/s')}"
    numbers += origin(pipe.roof)
    if _are_one(pipe.amount_per_s / pipe.peak_per_s, limiter.share):
        return f"{numbers} ({share})"
    if limiter.unit == "issue":
        return f"{numbers}, {busy_words(limiter)}"
    return f"{numbers}, {'its pipe ' if limiter.unit else ''}{share} busy"


def _are_one(part: float | None, share: float | None) -> bool:
    """Return whether two fractions are one per cent to whoever reads it."""
    return part is not None and share is not None and abs(part - share) <= default_thresholds().trace_share


def _without_limiter(facts: Facts, causes: Sequence[Finding], *, unmeasured: bool) -> str:
    """Say why a kernel without a limiter takes its time, and that no unit is busy, as far as that was measured."""
    kernel, missing = facts.kernel, facts.unmeasured
    if facts.bound == "unknown":
        if kernel.failed:
            return f"Unknown: {kernel.status_reason or ALL_NAN}"
        duration_too = "" if kernel.duration_ns is not None else "duration and no "
        return f"Unknown: the report has no {duration_too}throughput counters, so what limits it cannot be told"
    idle = _busiest_words(facts)
    if missing == (MEMORY, COMPUTE):
        idle = f"use of {_listed(missing)} is not measured"
    elif missing:
        idle += f"; use of {_listed(missing)} is not measured"
    if facts.bound == "overhead":
        if facts.outside.waiting is not None:
            return f"{_head_of(facts, 'Overhead-bound')}: {_gap_words(facts.outside.waiting)}; {idle}"
        what = f"{duration(kernel.duration_ns or 0.0)}, about what a launch costs"
        return f"{_head_of(facts, 'Too short to matter alone')}: {what}; {idle}"
    few = list(filter(None, [few_ready(kernel.counters)]))
    why = [cause.title for cause in causes[:2]]
    if unmeasured:
        why = [longest_wait(facts) or "why warps wait was not measured"]
        most = max(causes, key=lambda cause: cause.gain.factor if cause.gain else 0.0, default=None)
        if most is not None:
            why += [f"may contribute: {most.title}"]
    time_ns = kernel.duration_ns
    if time_ns is not None and facts.limits.overhead_duration_ns <= time_ns < facts.limits.short_duration_ns:
        why.append(f"of its {duration(time_ns)} about {_START_AND_END} are start and end")
    return f"{_head_of(facts, 'Latency-bound')}: {'; '.join((idle, *few, *why))}"


def few_ready(counters: Mapping[str, float]) -> str:
    """Say how few warps a scheduler can choose from; empty where they are enough, or not counted."""
    ready = counters.get("eligible_warps_per_cycle")
    return "" if ready is None or ready >= 1 else f"only {significant(ready)} warps ready per scheduler"


def few_blocks(counters: Mapping[str, float]) -> str:
    """Say that some SMs have no block: `64 blocks for 148 SMs`; empty where each has one, or that is not known."""
    blocks, sms = counters.get("grid_size"), counters.get("sm_count")
    return f"{count(int(blocks), 'block')} for {sms:,.0f} SMs" if blocks and sms and blocks < sms else ""


def _gap_words(launch: InProgram) -> str:
    return f"the GPU is idle for {duration(launch.gap_ns)} around a launch of {duration(launch.time_ns)}"


def _busiest_words(facts: Facts) -> str:
    """Say that no unit is busier than the busiest; of a unit of the SMs how busy it is while these have work, too."""
    top = next(iter(facts.sides), None)
    share = top.share if top is not None else 0.0
    words = f"no {'measured ' if facts.unseen else ''}unit above {percent(share).removeprefix('<')}"
    working, unit = facts.kernel.active_part, top and (top.unit or top.resource)
    if (
        facts.unseen
        or unit in {None, "dram", "l2"}
        or not working
        or not share <= working < facts.limits.nearly_all_share
    ):
        return words
    return f"{words} ({percent(share / working)} while SMs have work)"


def _head_of(facts: Facts, head: str) -> str:
    """Name the class of a kernel without a limiter, and the others that are possible."""
    return f"{_possibly(head)}, or {_classes(facts.or_bound)}" if facts.or_bound else head


def _possibly(head: str) -> str:
    return f"Possibly {head[0].lower()}{head[1:]}"


def _classes(bounds: Sequence[Bound]) -> str:
    return f"{'- or '.join(bounds)}-bound"


def unmeasured_words(what: Sequence[str]) -> str:
    """Say what was not measured of a kernel whose class is open: `L1 was not measured`; empty of a sure one."""
    is_many = len(what) > 1 or OTHER_PIPES in what
    return f"{_listed(what)} {'were' if is_many else 'was'} not measured" if what else ""


def _listed(what: Sequence[str]) -> str:
    """Write `L2, L1 and other pipes`."""
    names = [resource_label(one) if one in LEVELS else one for one in what]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def evidence_lines(facts: Facts, causes: Sequence[Finding], *, unmeasured: bool) -> tuple[str, ...]:
    """List the numbers behind the verdict, the busiest units first."""
    kernel, lines = facts.kernel, []
    for side, what in ((facts.memory, "memory"), (facts.compute, "compute")):
        if side is not None:
            named = f"busiest {what} unit: {spoken(side.unit or side.resource, kernel.gpu)} {percent(side.share)}"
            filled = f", filled by {spoken(side.resource, kernel.gpu)}" if side.unit else ""
            is_named = side.resource is not None
            lines.append(f"{named}{filled}" if is_named else f"busiest {what} unit, not named: {percent(side.share)}")
    for name, level in facts.levels.items():
        if level.share is None or level.share < facts.limits.trace_share:
            continue
        line = f"{spoken(name, kernel.gpu)} {level_share_words(level)}"
        if level.amount_bytes is not None and level.peak_bytes_per_s is not None and level.bytes_per_s is not None:
            rate, peak = si(level.bytes_per_s, "B/s"), si(level.peak_bytes_per_s, "B/s")
            line += f": {si(level.amount_bytes, 'B')} at {rate} of {peak}{origin(level.roof)}"
            line += f", attainable {si(level.attainable_per_s, 'B/s')}" if level.attainable_per_s else ""
        lines.append(line)
    lines += _disagreements(facts)
    if facts.bound == "latency":
        what = "may contribute" if unmeasured else "cause"
        lines += [f"{what}: {cause.title}" for cause in causes]
    achieved, allowed = (kernel.counters.get(f"{which}_occupancy") for which in ("achieved", "theoretical"))
    if achieved is not None:
        # Warps that miss what the launch allows by more than that are not limited by the launch.
        is_reached = allowed is not None and allowed - achieved <= facts.limits.occupancy_gap_share
        limiters = occupancy_limiters(kernel) if is_reached else ()
        lines.append(f"occupancy {percent(min(1.0, achieved))}" + (f", limited by {limiters[0]}" if limiters else ""))
    eligible = kernel.counters.get("eligible_warps_per_cycle")
    if eligible is not None:
        lines.append(f"{significant(eligible)} warps ready per cycle and scheduler")
    return tuple(lines)


def _disagreements(facts: Facts) -> Iterator[str]:
    """Say where two counters of one unit differ by far, and why."""
    own, nvidias = facts.shares.get("l1"), facts.counter("sol_l1_share")
    if own and nvidias and nvidias > facts.limits.far_more * own and own >= facts.limits.trace_share:
        unseen = f"{percent(nvidias)}, {factor(nvidias / own)} the busiest stage with a counter"
        yield f"NVIDIA's own L1 throughput disagrees: it reads {unseen}"
    moved = ratio(facts.counter("dram_read_bytes"), facts.counter("l2_read_miss_bytes"))
    if (
        facts.kernel.compute_capability in _WHOLE_PAIRS
        and moved is not None
        and abs(moved / 2 - 1) <= facts.limits.limiting_waste_share
    ):
        yield f"DRAM reads {factor(moved)} the sectors that missed in L2: it moves 64 bytes at a time"


def without_move(verdict: Verdict) -> str:
    """Return the sentence of a verdict without its move, for places that show the move separately."""
    move = next(iter(verdict.advice), "")
    return verdict.sentence.removesuffix(f" {move[:1].upper()}{move[1:]}.")
