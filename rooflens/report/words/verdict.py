"""A verdict in words, from the record of its kernel alone: its sentence with the decisive numbers, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rooflens.format import count, duration, factor, percent, si, significant
from rooflens.model.failed import ALL_NAN
from rooflens.model.records import LEVELS, Analysis, Bottleneck, Finding, Verdict, ratio
from rooflens.model.roofline.occupancy import occupancy_limiters
from rooflens.model.roofline.unit_names import (
    STAGE_WORDS,
    busy_words,
    fabric_words,
    level_share_words,
    origin,
    resource_label,
    sides_words,
    spoken,
    stage_label,
    unit_label,
)
from rooflens.model.roofline.units import WHOLE
from rooflens.model.summary import KernelSummary
from rooflens.model.unprofiled import InProgram
from rooflens.model.verdict.decide import NOT_MEASURED
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.model.verdict.unmeasured import COMPUTE, MEMORY, ONE_UNIT, OTHER_PIPES
from rooflens.model.verdict_classes import Bound

_START_AND_END = "2 to 3 \u00b5s"
"""What any launch takes to fill the GPU and to drain it."""
_WHOLE_PAIRS = frozenset({"8.6", "8.9", "12.0"})
"""Chips whose GDDR memory is read by pairs of sectors."""


def verdict_sentence(analysis: Analysis) -> str:
    """Write the verdict: its class with the two decisive numbers, and the first move; first of all that it is done."""
    move = next(iter(analysis.verdict.advice), "")
    return f"{verdict_head(analysis)}{_as_sentence(move)}"


def verdict_head(analysis: Analysis) -> str:
    """Write the same without the move, for places that show that separately."""
    verdict, waiting = analysis.verdict, analysis.waiting
    roof = ", at the roof" if verdict.at_roof else ""
    if verdict.full_for_a_while:
        head = f"{_on_the_plateau(analysis)}{roof}"
    elif verdict.bound == "balanced":
        head = f"Near two limits: {sides_words(verdict.sides, analysis.kernel.gpu)}{roof}"
    elif verdict.limiter is not None:
        head = _at_its_limiter(analysis, verdict.limiter)
    else:
        head = _without_limiter(analysis)
    if waiting is not None and verdict.bound != "overhead":
        head += f"; and {_gap_words(waiting)}"
    fewer = "; only fewer bytes help" if verdict.is_only_at_roof else ""
    return f"{f'{done_lead(verdict)}{done_words(analysis)}{fewer}. ' if verdict.done else ''}{head}."


def done_lead(verdict: Verdict) -> str:
    """Begin what is said of a finished kernel: `Done: `; less where nobody knows whether it reads bytes twice."""
    return "At its roof: " if verdict.is_only_at_roof else "Done: "


def done_words(analysis: Analysis) -> str:
    """Say which roof a finished kernel is at: `93 % of HBM3`; empty while there is something left to win."""
    done = analysis.verdict.done
    if done is None or done.resource is None:
        return ""
    if done.resource == "dram":
        where = resource_label("dram", analysis.kernel.gpu)
    elif done.resource == "tensor_pipe":
        where = "the tensor pipe"
    else:
        where = f"the {done.resource.removeprefix('tensor_').partition('_')[0]} peak"
    return f"{percent(done.share)} of {where}"


def summary_head(kernel: KernelSummary) -> str:
    """Write the verdict of a kernel without its move; of a row for several the class of the longest."""
    if not kernel.members:
        return verdict_head(kernel.analysis)
    verdict = kernel.analysis.verdict
    longest = f"the longest one {verdict.shown_class}: {verdict.cause or 'no cause known'}"
    return f"{count(len(kernel.members), 'kernel')}, {longest}."


def best_move(analysis: Analysis) -> str:
    """Write the move that brings most, which a row is about; where nothing can be done, what the verdict says."""
    best = analysis.verdict.best
    return best.text if best else verdict_sentence(analysis)


def _as_sentence(move: str) -> str:
    return f" {move[0].upper()}{move[1:]}." if move else ""


def _on_the_plateau(analysis: Analysis) -> str:
    """Name what limits a kernel for a part of its run."""
    phases, limiter = analysis.phases, analysis.verdict.limiter
    if phases is None or limiter is None:
        return ""
    bound = "Memory-bound at" if limiter.resource in analysis.levels else "Compute-bound by"
    rest = (("ramp", phases.ramp), ("tail", phases.tail))
    after = " and ".join(f"{percent(part)} {name}" for name, part in rest if part >= default_thresholds().little_share)
    peak = f"{percent(phases.share)} of its peak for {percent(phases.plateau)} of the run"
    average = f"{percent(limiter.share)} on average"
    where = spoken(limiter.resource, analysis.kernel.gpu)
    return f"{bound} {where} while the GPU is full: {peak}, {average}{f' with {after}' if after else ''}"


def _at_its_limiter(analysis: Analysis, limiter: Bottleneck) -> str:
    """Name the limiter of a kernel, with how much of its peak it does; at the roof it is full."""
    verdict, where = analysis.verdict, spoken(limiter.resource, analysis.kernel.gpu)
    other = f"; or {_classes(verdict.or_bound)}, as {unmeasured_words(verdict)}" if verdict.or_bound else ""
    if limiter.resource is None:
        head = f"{verdict.bound.capitalize()}-bound"
        head = _possibly(head) if other else head
        return f"{head} ({percent(limiter.share)} of peak; the report does not name the unit){other}"
    is_issue = limiter.resource == "issue"
    if verdict.bound == "memory":
        head, joint, numbers = "Memory-bound", "at", _of_the_level(analysis, limiter)
    else:
        head, joint, numbers = "Limited" if is_issue else "Compute-bound", "by", _of_the_pipe(analysis, limiter)
    if other:
        return f"{_possibly(head)} {joint} {where}: {numbers}{other}"
    is_full = verdict.at_roof and not is_issue
    return f"{head}: {where} is saturated, {numbers}" if is_full else f"{head} {joint} {where}: {numbers}"


def _of_the_level(analysis: Analysis, limiter: Bottleneck) -> str:
    """Write how much of its peak a memory level does, and the intensity of a kernel that could do more.

    A per cent in parentheses is that of the two rates before it; that of a stage, or of the unit that a level fills,
    says whose it is.
    """
    share, level = percent(limiter.share), analysis.levels.get(limiter.resource or "")
    kernel, at_roof = analysis.kernel, analysis.verdict.at_roof
    if level is None:
        return f"{share} of its peak"
    verb = "moving" if at_roof else "moves"
    stage, of_rates, rates = level.binding_stage, None, ""
    parts = [kernel.counters.get(f"sol_memory_{what}_share") for what in ("access", "request")]
    if level.bytes_per_s is not None and level.peak_bytes_per_s:
        of_rates = level.bytes_per_s / level.peak_bytes_per_s
        rates = f"{verb} {si(level.bytes_per_s, 'B/s')} of {si(level.peak_bytes_per_s, 'B/s')}{origin(level.roof)}"
    if limiter.unit:
        part = f" ({percent(of_rates)})" if _are_one(of_rates, level.share) else ""
        through = f"{rates}{part} through" if rates else "filling" if at_roof else "fills"
        numbers = f"{through} {unit_label(limiter, kernel.gpu)}, which is {share} busy"
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
    intensity, fabric = level.intensity_flop_per_byte, fabric_words(level)
    numbers += f" ({fabric})" if fabric else ""
    return f"{numbers} at {significant(intensity)} FLOP/B" if intensity and not at_roof else numbers


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


def _of_the_pipe(analysis: Analysis, limiter: Bottleneck) -> str:
    """Write how much of its peak a pipe does, or how busy it is."""
    share, pipe = percent(limiter.share), analysis.pipes.get(limiter.resource or "")
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


def _without_limiter(analysis: Analysis) -> str:
    """Say why a kernel without a limiter takes its time, and that no unit is busy, as far as that was measured."""
    kernel, verdict, missing = analysis.kernel, analysis.verdict, analysis.verdict.unmeasured
    if verdict.bound == "unknown":
        if kernel.failed:
            return f"Unknown: {kernel.status_reason or ALL_NAN}"
        duration_too = "" if kernel.duration_ns is not None else "duration and no "
        return f"Unknown: the report has no {duration_too}throughput counters, so what limits it cannot be told"
    idle = _busiest_words(verdict)
    if missing == (MEMORY, COMPUTE):
        idle = f"use of {_resource_list(missing)} is not measured"
    elif missing:
        idle += f"; use of {_resource_list(missing)} is not measured"
    if verdict.bound == "overhead":
        if analysis.waiting is not None:
            return f"{_head_of(verdict, 'Overhead-bound')}: {_gap_words(analysis.waiting)}; {idle}"
        what = f"{duration(kernel.duration_ns or 0.0)}, about what a launch costs"
        return f"{_head_of(verdict, 'Too short to matter alone')}: {what}; {idle}"
    few = list(filter(None, [few_ready(kernel.counters)]))
    causes = causes_of(analysis)
    why = [cause.title for cause in causes[:2]]
    if not verdict.is_wait_explained:
        why = [verdict.cause if verdict.cause not in {None, NOT_MEASURED} else "why warps wait was not measured"]
        most = max(causes, key=lambda cause: cause.gain.factor if cause.gain else 0.0, default=None)
        if most is not None:
            why += [f"may contribute: {most.title}"]
    if verdict.is_brief:
        why.append(f"of its {duration(kernel.duration_ns or 0.0)} about {_START_AND_END} are start and end")
    return f"{_head_of(verdict, 'Latency-bound')}: {'; '.join((idle, *few, *why))}"


def causes_of(analysis: Analysis) -> list[Finding]:
    """List the findings that say why a kernel waits, the first cause first."""
    ids = analysis.verdict.causes
    named = [one for one in analysis.findings if one.id in ids and one.severity != "note"]
    return sorted(named, key=lambda one: ids.index(one.id))


def few_ready(counters: Mapping[str, float]) -> str:
    """Say how few warps a scheduler can choose from; empty where they are enough, or not counted."""
    ready = counters.get("eligible_warps_per_cycle")
    return "" if ready is None or ready >= 1 else f"only {significant(ready)} warps ready per scheduler"


def _gap_words(launch: InProgram) -> str:
    return f"the GPU is idle for {duration(launch.gap_ns)} around a launch of {duration(launch.time_ns)}"


def _busiest_words(verdict: Verdict) -> str:
    """Say that no unit is busier than the busiest; of a unit of the SMs how busy it is while these have work, too."""
    share = verdict.sides[0].share if verdict.sides else 0.0
    words = f"no {'measured ' if verdict.unmeasured else ''}unit above {percent(share).removeprefix('<')}"
    active = verdict.share_while_active
    return words if active is None else f"{words} ({percent(active)} while SMs have work)"


def _head_of(verdict: Verdict, head: str) -> str:
    """Name the class of a kernel without a limiter, and the others that are possible."""
    return f"{_possibly(head)}, or {_classes(verdict.or_bound)}" if verdict.or_bound else head


def _possibly(head: str) -> str:
    return f"Possibly {head[0].lower()}{head[1:]}"


def _classes(bounds: Sequence[Bound]) -> str:
    return f"{'- or '.join(bounds)}-bound"


def unmeasured_words(verdict: Verdict) -> str:
    """Say what was not measured of a kernel whose class is open: `L1 was not measured`; empty of a sure one."""
    what = verdict.unmeasured if verdict.or_bound else ()
    is_many = len(what) > 1 or OTHER_PIPES in what
    return f"{_resource_list(what)} {'were' if is_many else 'was'} not measured" if what else ""


def _resource_list(what: Sequence[str]) -> str:
    """Write `L2, L1 and other pipes`."""
    names = [resource_label(one) if one in LEVELS else one for one in what]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def evidence_lines(analysis: Analysis) -> tuple[str, ...]:
    """List the numbers behind a verdict, the busiest units first."""
    kernel, verdict, limits, lines = analysis.kernel, analysis.verdict, default_thresholds(), []
    for side, what in ((verdict.memory, "memory"), (verdict.compute, "compute")):
        if side is not None:
            named = f"busiest {what} unit: {spoken(side.unit or side.resource, kernel.gpu)} {percent(side.share)}"
            filled = f", filled by {spoken(side.resource, kernel.gpu)}" if side.unit else ""
            is_named = side.resource is not None
            lines.append(f"{named}{filled}" if is_named else f"busiest {what} unit, not named: {percent(side.share)}")
    for name, level in analysis.levels.items():
        if level.share is None or level.share < limits.trace_share:
            continue
        line = f"{spoken(name, kernel.gpu)} {level_share_words(level)}"
        if level.amount_bytes is not None and level.peak_bytes_per_s is not None and level.bytes_per_s is not None:
            rate, peak = si(level.bytes_per_s, "B/s"), si(level.peak_bytes_per_s, "B/s")
            line += f": {si(level.amount_bytes, 'B')} at {rate} of {peak}{origin(level.roof)}"
            line += f", attainable {si(level.attainable_per_s, 'B/s')}" if level.attainable_per_s else ""
        lines.append(line)
    lines += _disagreements(analysis)
    lines += cause_lines(analysis)
    achieved, allowed = (kernel.counters.get(f"{which}_occupancy") for which in ("achieved", "theoretical"))
    if achieved is not None:
        # Warps that miss what the launch allows by more than that are not limited by the launch.
        is_reached = allowed is not None and allowed - achieved <= limits.occupancy_gap_share
        limiters = occupancy_limiters(kernel) if is_reached else ()
        lines.append(f"occupancy {percent(min(1.0, achieved))}" + (f", limited by {limiters[0]}" if limiters else ""))
    eligible = kernel.counters.get("eligible_warps_per_cycle")
    if eligible is not None:
        lines.append(f"{significant(eligible)} warps ready per cycle and scheduler")
    return tuple(lines)


def cause_lines(analysis: Analysis) -> list[str]:
    """Name what makes a kernel wait, a line each: the causes, or what may contribute where these explain too little."""
    what = "cause" if analysis.verdict.is_wait_explained else "may contribute"
    return [f"{what}: {cause.title}" for cause in causes_of(analysis)]


def _disagreements(analysis: Analysis) -> Iterator[str]:
    """Say where two counters of one unit differ by far, and why."""
    kernel, limits = analysis.kernel, default_thresholds()
    ours, nvidias = analysis.levels["l1"].share, kernel.counters.get("sol_l1_share")
    if ours and nvidias and nvidias > limits.far_more * ours and ours >= limits.trace_share:
        unseen = f"{percent(nvidias)}, {factor(nvidias / ours)} the busiest stage with a counter"
        yield f"NVIDIA's own L1 throughput disagrees: it reads {unseen}"
    moved = ratio(kernel.counters.get("dram_read_bytes"), kernel.counters.get("l2_read_miss_bytes"))
    is_twice = moved is not None and abs(moved / 2 - 1) <= limits.limiting_waste_share
    if moved is not None and is_twice and kernel.compute_capability in _WHOLE_PAIRS:
        yield f"DRAM reads {factor(moved)} the sectors that missed in L2: it moves 64 bytes at a time"
