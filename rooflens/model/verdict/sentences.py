"""Words for verdicts: one sentence with its decisive numbers and the move, and the lines of evidence."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens.format import duration, factor, percent, si, significant
from rooflens.model.failed import ALL_NAN
from rooflens.model.roofline.datasheets import ANY_MEMORY, memory_label
from rooflens.model.roofline.levels import binding_stage
from rooflens.model.roofline.occupancy import occupancy_limiters
from rooflens.model.roofline.pipes import PIPE_ROWS
from rooflens.model.verdict.bottleneck import both_sides, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflens.model.bounds import Bound
    from rooflens.model.records import (
        Analysis,
        Bottleneck,
        Distances,
        Finding,
        Kernel,
        Level,
        Phases,
        Pipe,
        Verdict,
    )
    from rooflens.model.unprofiled import InProgram

LEVEL_LABELS: Mapping[str, str] = {"dram": ANY_MEMORY, "l2": "L2", "l1": "L1", "smem": "SMEM"}
PIPE_LABELS: Mapping[str, str] = {row.key: row.label for row in PIPE_ROWS}
NOT_MEASURED = "cause not measured"
"""The cause of a kernel that waits, where nothing measured says most of why."""
_SPOKEN = {"smem": "shared memory", "issue": "instruction issue"}
"""What a sentence says where it does not take the label, with its article."""
_UNITS = re.compile(r"\b(lsu|l2)\b")
_ENOUGH_READY = 1.0
"""One warp that is ready in every cycle is what a scheduler can issue."""
_SHOWN_SHARE = 0.01
_WORTH_NAMING = 0.1
_WORTH_A_WORD = 1.05
"""A factor that is not a twentieth over the one before it says nothing new."""


class Facts(Struct, frozen=True):
    """What a verdict's words are made of.

    Attributes:
        waiting: A typical launch in its program where the gaps around it outweigh its time.
        phases: How the run divides, where its plateau names the wall.
        unmeasured: It was not measured why the kernel waits: what was found is a part of it at most.
        headroom: Of such a kernel; None where it is not known.
    """

    kernel: Kernel
    levels: Mapping[str, Level]
    pipes: Mapping[str, Pipe]
    memory: Bottleneck | None
    compute: Bottleneck | None
    wall: Bottleneck | None
    causes: Sequence[Finding]
    waiting: InProgram | None = None
    phases: Phases | None = None
    unmeasured: bool = False
    headroom: float | None = None


@lru_cache(maxsize=1024)
def resource_label(resource: str | None, *gpus: str | None) -> str:
    """Name a level or a pipe for people: ALU pipe, FP32, tensor bf16; DRAM by the kind the GPUs have, as HBM3."""
    if resource is None:
        return "busiest unit"
    if resource == "dram" and gpus:
        return memory_label(*gpus)
    known = LEVEL_LABELS.get(resource) or PIPE_LABELS.get(resource)
    return known or (resource.upper() if resource.startswith("fp") else resource.replace("_", " "))


def stage_label(stage: str) -> str:
    """Name a stage of a memory level: `LSU input`, `bank reads`, `to L2`."""
    return _UNITS.sub(lambda unit: unit[0].upper(), stage.replace("_", " "))


def wall_words(bound: str, resource: str | None, *gpus: str | None) -> str:
    """Name a wall: `compute at tensor bf16`, `memory at HBM3`, `instruction issue`, `latency`."""
    if resource is None:
        return bound
    if bound == "balanced":
        return f"near two limits ({resource_label(resource, *gpus)} nearest)"
    return resource_label(resource) if resource == "issue" else f"{bound} at {resource_label(resource, *gpus)}"


def bottleneck_words(bottleneck: Bottleneck | None, *gpus: str | None, missing: str = "") -> str:
    """Name the unit nearest its peak, with its share: `HBM3 67.2 %`."""
    return f"{resource_label(bottleneck.resource, *gpus)} {percent(bottleneck.share)}" if bottleneck else missing


def limit_words(analysis: Analysis, missing: str = "") -> str:
    """Name the unit nearest its peak, with its share; of a kernel near two limits both: `FP32 74 %, HBM3 70 %`."""
    kernel, found = analysis.kernel, analysis.verdict.bottleneck
    sides = [found] if analysis.verdict.bound != "balanced" else both_sides(analysis)
    return ", ".join(bottleneck_words(side, kernel.gpu, missing=missing) for side in sides)


def distance_words(verdict: Verdict, *gpus: str | None) -> str:
    """Say how far a kernel is from its limits; empty where unknown.

    For example `up to 1.4x faster as written (FP64 70 % busy), 2.3x with only the FLOPs and bytes it needs`.
    """
    distances = verdict.distances
    said = _as_written(distances.headroom, _busy(verdict, *gpus)) if distances.headroom else []
    return ", ".join((*said, *_beyond(distances)))


def _as_written(headroom: float, busy: str) -> list[str]:
    """Say what is left with the same instructions and bytes: next to nothing where the busiest unit is full."""
    more = f"up to {factor(headroom)} faster" if headroom > _WORTH_A_WORD else "nothing to win"
    return [f"{more} as written{busy}"]


def _busy(verdict: Verdict, *gpus: str | None) -> str:
    return f" ({bottleneck_words(verdict.bottleneck, *gpus)} busy)" if verdict.bottleneck else ""


def _beyond(distances: Distances) -> Iterator[str]:
    """Say what lies beyond the headroom, in factors that are worth a word more than the one before."""
    shown = distances.headroom or 1.0
    if distances.potential is not None and distances.potential > _WORTH_A_WORD * shown:
        shown = distances.potential
        yield f"up to {factor(shown)} with only the FLOPs and bytes it needs"
    if distances.potential_by_reuse is not None and distances.potential_by_reuse > _WORTH_A_WORD * shown:
        how = "by fusing it away" if distances.by_fusing_only else "with all operands kept on chip"
        yield f"up to {factor(distances.potential_by_reuse)} {how}"


def beyond_words(distances: Distances) -> str:
    """Say what can win more than the potential counts, or the headroom where there is none; empty where nothing can."""
    counted = distances.potential or distances.headroom
    if counted is None or (distances.potential_by_reuse or 0.0) <= _WORTH_A_WORD * counted:
        return ""
    return "more by fusing" if distances.by_fusing_only else "more by reuse"


def stage_full_words(analysis: Analysis) -> str:
    """Say why a kernel at a level's limit stands below its roof: a stage of it is full, its bandwidth is not."""
    wall = analysis.verdict.bottleneck
    level = analysis.levels.get(wall.resource or "") if wall else None
    stage = binding_stage(level) if level else None
    if wall is None or level is None or stage is None or not level.bytes_per_s or not level.peak_bytes_per_s:
        return ""
    name, part = resource_label(wall.resource, analysis.kernel.gpu), percent(level.bytes_per_s / level.peak_bytes_per_s)
    return (
        f"The {stage_label(stage)} stage fills up before the bandwidth does: by bytes {name} is at {part} of its roof."
    )


def _spoken(resource: str | None, gpu: str | None) -> str:
    if resource is None:
        return "NVIDIA's busiest unit"
    label = resource_label(resource, gpu)
    return _SPOKEN.get(resource) or (f"the {label}" if resource in PIPE_LABELS else label)


def verdict_sentence(bound: Bound, facts: Facts, moves: Sequence[str], *, at_roof: bool) -> str:
    """Write the verdict: class, its two decisive numbers, the first move."""
    head = _on_the_plateau(facts) or {
        "memory": _memory,
        "compute": _compute,
        "balanced": _balanced,
        "latency": _latency,
        "overhead": _overhead,
        "unknown": _unknown,
    }[bound](facts)
    roof = ", at the roof" if at_roof else ""
    move = f" {moves[0][0].upper()}{moves[0][1:]}." if moves else ""
    return f"{head}{roof}.{move}"


def _on_the_plateau(facts: Facts) -> str:
    """Name the wall of a kernel that is at it for a part of its run; empty for all others."""
    phases, wall = facts.phases, facts.wall
    if phases is None or wall is None:
        return ""
    bound = "Memory-bound at" if wall.resource in facts.levels else "Compute-bound by"
    rest = (("ramp", phases.ramp), ("tail", phases.tail))
    after = " and ".join(f"{percent(part)} {name}" for name, part in rest if part >= _WORTH_NAMING)
    peak = f"{percent(phases.share)} of its peak for {percent(phases.plateau)} of the run"
    average = f"{percent(wall.share)} on average"
    where = _spoken(wall.resource, facts.kernel.gpu)
    return f"{bound} {where} while the GPU is full: {peak}, {average}{f' with {after}' if after else ''}"


def _memory(facts: Facts) -> str:
    wall = facts.wall
    label = _spoken(wall.resource if wall else None, facts.kernel.gpu)
    return f"Memory-bound at {label}: {_level_numbers(facts, wall)}{_intensity(facts, wall)}"


def _level_numbers(facts: Facts, wall: Bottleneck | None) -> str:
    level = facts.levels.get(wall.resource or "") if wall else None
    share = percent(wall.share) if wall else ""
    if level is None:
        return f"{share} of its peak"
    if level.share is None:
        return f"at least {share} of its peak"
    stage = binding_stage(level)
    if stage is None and level.bytes_per_s is not None and level.peak_bytes_per_s:
        return f"moves {si(level.bytes_per_s, 'B/s')} of {si(level.peak_bytes_per_s, 'B/s')} ({share})"
    return f"its {stage_label(stage or 'busiest')} stage is {share} busy"


def _intensity(facts: Facts, wall: Bottleneck | None) -> str:
    level = facts.levels.get(wall.resource or "") if wall else None
    intensity = level.intensity_flop_per_byte if level else None
    return f" at {significant(intensity)} FLOP/B" if intensity else ""


def _compute(facts: Facts) -> str:
    wall = facts.wall
    resource = wall.resource if wall else None
    limit = "Limited" if resource == "issue" else "Compute-bound"
    return f"{limit} by {_spoken(resource, facts.kernel.gpu)}: {_pipe_numbers(facts, wall)}"


def _pipe_numbers(facts: Facts, wall: Bottleneck | None) -> str:
    pipe = facts.pipes.get(wall.resource or "") if wall else None
    share = percent(wall.share) if wall else ""
    if pipe is None or pipe.amount_per_s is None or not pipe.peak_per_s:
        return f"{share} busy"
    about = "about " if pipe.source == "estimated" else ""
    numbers = f"{about}{si(pipe.amount_per_s, f'{pipe.unit}/s')} of {si(pipe.peak_per_s, f'{pipe.unit}/s')}"
    return numbers + (f" ({share})" if pipe.share == (wall.share if wall else None) else f", its pipe {share} busy")


def _balanced(facts: Facts) -> str:
    sides = in_order(facts.memory, facts.compute)
    return f"Near two limits: {', '.join(bottleneck_words(side, facts.kernel.gpu) for side in sides)}"


def _latency(facts: Facts) -> str:
    ready = facts.kernel.counters.get("eligible_warps_per_cycle")
    is_few = ready is not None and ready < _ENOUGH_READY
    few = [f"only {significant(ready)} warps ready per scheduler"] if is_few else []
    why = [_partly(facts)] if facts.unmeasured else [cause.title for cause in facts.causes[:2]]
    return f"Latency-bound: {'; '.join((_none_above(facts), *few, *why))}"


def _partly(facts: Facts) -> str:
    """Say that it was not measured why warps wait, and how little of it is known."""
    unknown = "why warps wait was not measured"
    cause = max(facts.causes, key=lambda found: found.speedup_up_to or 0.0, default=None)
    if cause is None:
        return unknown
    if cause.speedup_up_to is None or facts.headroom is None:
        return f"{unknown}, and {cause.title} is a part of it at most"
    return f"{unknown}: {cause.title} explains at most {factor(cause.speedup_up_to)} of {factor(facts.headroom)}"


def _overhead(facts: Facts) -> str:
    if facts.waiting is not None:
        gap, time = duration(facts.waiting.gap_ns), duration(facts.waiting.time_ns)
        what = f"the GPU is idle for {gap} around a launch of {time}"
    else:
        what = f"as short as its launch ({duration(facts.kernel.duration_ns or 0.0)})"
    return f"Overhead-bound: {what}; {_none_above(facts)}"


def _none_above(facts: Facts) -> str:
    """Say that no unit is busy, and which side nothing is known of: its units may be."""
    missing = [name for name, side in (("memory", facts.memory), ("compute", facts.compute)) if side is None]
    if len(missing) > 1:
        return "use of memory and compute is not measured"
    least = f"no {'measured ' if missing else ''}unit above {percent(_top(facts)).removeprefix('<')}"
    return f"{least}; use of {missing[0]} is not measured, so this is provisional" if missing else least


def _unknown(facts: Facts) -> str:
    if facts.kernel.failed:
        return f"Unknown: {facts.kernel.status_reason or ALL_NAN}"
    duration_too = "" if facts.kernel.duration_ns is not None else "duration and no "
    return f"Unknown: the report has no {duration_too}throughput counters, so what limits it cannot be told"


def _top(facts: Facts) -> float:
    return max((side.share for side in (facts.memory, facts.compute) if side is not None), default=0.0)


def evidence_lines(bound: Bound, facts: Facts, gap_share: float) -> tuple[str, ...]:
    """List the numbers behind the verdict, the busiest units first.

    Warps that miss what the launch allows by more than `gap_share` of an SM's slots are not limited by the launch.
    """
    return (*_evidence(bound, facts), *_residency(facts.kernel, gap_share))


def _evidence(bound: Bound, facts: Facts) -> Iterator[str]:
    for side, what in ((facts.memory, "memory"), (facts.compute, "compute")):
        if side is not None:
            yield f"busiest {what} unit: {_spoken(side.resource, facts.kernel.gpu)} {percent(side.share)}"
    for name, level in facts.levels.items():
        if level.share is not None and level.share >= _SHOWN_SHARE:
            yield f"{_spoken(name, facts.kernel.gpu)} {percent(level.share)}" + _traffic(level)
    if bound == "latency":
        what = "a part of the cause at most" if facts.unmeasured else "cause"
        yield from (f"{what}: {cause.title}" for cause in facts.causes)


def _traffic(level: Level) -> str:
    if level.amount_bytes is None or level.peak_bytes_per_s is None or level.bytes_per_s is None:
        return ""
    moved = f": {si(level.amount_bytes, 'B')} at {si(level.bytes_per_s, 'B/s')} of {si(level.peak_bytes_per_s, 'B/s')}"
    if level.attainable_per_s:
        moved += f", attainable {si(level.attainable_per_s, 'B/s')}"
    stage = binding_stage(level)
    return f"{moved}; its {stage_label(stage)} stage is the busiest" if stage else moved


def _residency(kernel: Kernel, gap_share: float) -> Iterator[str]:
    achieved, allowed = (kernel.counters.get(f"{which}_occupancy") for which in ("achieved", "theoretical"))
    if achieved is not None:
        is_reached = allowed is not None and allowed - achieved <= gap_share
        limiters = occupancy_limiters(kernel) if is_reached else ()
        yield f"occupancy {percent(min(1.0, achieved))}" + (f", limited by {limiters[0]}" if limiters else "")
    eligible = kernel.counters.get("eligible_warps_per_cycle")
    if eligible is not None:
        yield f"{significant(eligible)} warps ready per cycle and scheduler"


def without_move(verdict: Verdict) -> str:
    """Return the sentence of a verdict without its move, for where that stands by itself."""
    move = next(iter(verdict.advice), "")
    return verdict.sentence.removesuffix(f" {move[:1].upper()}{move[1:]}.")
