"""Sentences for what another GPU would change: which kernels change side, and the lower bound of their time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens import format as fmt
from rooflens.model.verdict.sentences import resource_label

if TYPE_CHECKING:
    from rooflens.model.predict.other_gpu import Effect, Roofs, Side, Tally

SAME_RATIO = 1.005
"""Lower bounds nearer to one another than this are told as the same."""

_OTHER_SIDE: dict[Side, Side] = {"memory": "compute", "compute": "memory"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What the sentences are about.

    Attributes:
        name: Of the other GPU.
        noun: `kernel` or `launch`.
        total_ns: GPU time of the page; 0 where no report holds one.
        main: Precision whose ridge is told; empty where no kernel computes.
        here: Roofs of the page's only GPU; None where it has several.
        at_home: Every kernel ran on this very GPU.
    """

    name: str
    noun: str
    total_ns: float
    main: str
    here: Roofs | None
    there: Roofs
    at_home: bool


@dataclass(frozen=True, slots=True)
class Words:
    """What the page says of one GPU: the answer, the numbers behind it, and what it does not cover."""

    head: str
    body: str = ""
    aside: str = ""


def effect_words(effect: Effect, subject: Subject) -> Words:
    """Say what a GPU would change."""
    if subject.at_home:
        return Words(
            f"This is the GPU that was profiled. Its datasheet roofs, {_roofs(subject)}, stand in the roofline beside "
            "those of the report.",
            "The datasheet's are those of the boost clock, the report's those of the profiled one.",
        )
    if not effect.placed.count:
        return Words(f"Nothing can be predicted for {subject.name}.", aside=_missing(effect, subject))
    return Words(
        head=f"{_changes(effect, subject)} {_lower_bound(effect, subject)}".strip(),
        body=_ridge(subject),
        aside=" ".join(part for part in (_apart(effect, subject), _missing(effect, subject)) if part),
    )


def part_of_time(tally: Tally, total_ns: float) -> str:
    """Write a tally's part of the GPU time; empty where no report holds one."""
    return f"{fmt.percent(tally.time_ns / total_ns)} of GPU time" if total_ns else ""


def factor_words(factor: float | None) -> str:
    """Write how a lower bound changes: `5.2x shorter`, `12x longer`; `MISSING` for None."""
    if factor is None:
        return fmt.MISSING
    if 1 / SAME_RATIO < factor < SAME_RATIO:
        return "the same"
    return f"{fmt.factor(factor)} shorter" if factor > 1 else f"{fmt.factor(1 / factor)} longer"


def _roofs(subject: Subject) -> str:
    bandwidth = f"HBM {fmt.si(subject.there.bandwidth_bytes_per_s, 'B/s')}"
    peak = subject.there.peaks_per_s.get(subject.main)
    return f"{bandwidth} and {resource_label(subject.main)} {fmt.si(peak, 'FLOP/s')}" if peak else bandwidth


def _counted(tally: Tally, subject: Subject) -> str:
    part = part_of_time(tally, subject.total_ns)
    return fmt.count(tally.count, subject.noun) + (f" with {part}" if part else "")


def _changes(effect: Effect, subject: Subject) -> str:
    changed = effect.changed
    if not changed.count:
        return f"No {subject.noun} changes side on {subject.name}."
    sides = {side: tally.count for side, tally in effect.to.items() if tally.count}
    verb = "changes" if changed.count == 1 else "change"
    if len(sides) == 1:
        (to,) = sides
        how = f", from {_OTHER_SIDE[to]} to {to}"
    else:
        how = ": " + ", ".join(f"{count} to {side}" for side, count in sides.items())
    return f"{_counted(changed, subject)} {verb} side on {subject.name}{how}."


def _lower_bound(effect: Effect, subject: Subject) -> str:
    if not effect.told.count:
        return ""
    here, there = (fmt.duration(seconds * 1e9) for seconds in (effect.lower_here_s, effect.lower_there_s))
    factor = effect.lower_here_s / effect.lower_there_s
    whose = f"The lower bound of the {fmt.count(effect.told.count, subject.noun)} at HBM or a FLOP pipe"
    if effect.told.count == 1:
        whose = f"The lower bound of the only {subject.noun} at HBM or a FLOP pipe"
    if 1 / SAME_RATIO < factor < SAME_RATIO:
        return f"{whose} stays at {here}."
    return f"{whose} {'falls' if factor > 1 else 'rises'} from {here} to {there}: {factor_words(factor)}."


def _ridge(subject: Subject) -> str:
    """Say how the ridge of the main precision moves, and why."""
    there = subject.there.ridge_per_byte(subject.main)
    if subject.here is None or there is None:
        return ""
    here = subject.here.ridge_per_byte(subject.main)
    if here is None:
        return ""
    name = resource_label(subject.main)
    bandwidth = subject.there.bandwidth_bytes_per_s / subject.here.bandwidth_bytes_per_s
    peak = subject.there.peaks_per_s[subject.main] / subject.here.peaks_per_s[subject.main]
    return (
        f"The HBM ridge of {name} moves from {fmt.significant(here)} to {fmt.intensity(there)}: "
        f"{fmt.factor(bandwidth)} the bandwidth, {fmt.factor(peak)} the peak."
    )


def _apart(effect: Effect, subject: Subject) -> str:
    if not effect.apart.count:
        return ""
    return (
        f"{_counted(effect.apart, subject)} {'stands' if effect.apart.count == 1 else 'stand'} at another wall "
        "(latency, overhead, caches, other pipes), or at an unknown one: the lower bound says nothing of "
        f"{'its' if effect.apart.count == 1 else 'their'} time."
    )


def _missing(effect: Effect, subject: Subject) -> str:
    parts = [
        f"{fmt.count(count, subject.noun)} {'is' if count == 1 else 'are'} not predicted: "
        f"no {resource_label(key)} peak is published for {subject.name}."
        for key, count in effect.missing.items()
    ]
    return " ".join(parts)
