"""Time of a kernel against what its arithmetic and its traffic need at their peaks: bars on one axis, and words."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.roofline.time_bounds import Bounds, time_bounds
from rooflens.model.summary import Launch
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.content import Content
from rooflens.report.page.cards.bars import amount_words, writer

_SHOWN_PART = 0.01
"""A type with less of the arithmetic's time is not named."""

_NO_FACTOR = fmt.factor(1.0)
_IN_TURN = 0.9
"""From this part of the upper bound on arithmetic and traffic barely overlap."""


class TimeRow(Struct, frozen=True):
    """One time on the common axis.

    Attributes:
        start: Where the bar starts, as a part of the axis, 0 to 1.
        width: How long it is, 0 to 1.
    """

    label: str
    start: float
    width: float
    value: str
    more: str = ""


class Times(Struct, frozen=True):
    """Arithmetic, DRAM, bounds and measured time, in this order, and the sentence that says what they mean."""

    rows: tuple[TimeRow, ...]
    sentence: str


def times(content: Content, launch: Launch) -> Times | None:
    """Compare the measured time with its bounds; None where the report lacks their counters."""
    bounds = time_bounds(launch.analysis)
    if bounds is None or bounds.position is None:
        return None
    return Times(tuple(_rows(launch, bounds)), _sentence(content, launch, bounds))


def _rows(launch: Launch, bounds: Bounds) -> Iterator[TimeRow]:
    math_ns, memory_ns = bounds.math_ns or 0.0, bounds.memory_ns or 0.0
    lower_ns, upper_ns = bounds.lower_ns or 0.0, bounds.upper_ns or 0.0
    axis_ns = max(bounds.measured_ns, upper_ns)
    overlap = f"with full overlap; {fmt.duration(upper_ns)} without" if math_ns else "upper and lower are the same"
    several = "mean of the launches" if launch.analysis.launches > 1 else ""
    for label, from_ns, to_ns, value_ns, more in (
        ("Arithmetic at its peak", 0.0, math_ns, math_ns, _work(launch, bounds)),
        ("DRAM traffic at its peak", 0.0, memory_ns, memory_ns, _moved(launch)),
        ("Bounds", lower_ns, upper_ns, lower_ns, overlap),
        ("Measured", 0.0, bounds.measured_ns, bounds.measured_ns, several),
    ):
        value = fmt.duration(value_ns) if value_ns else "none"
        yield TimeRow(label, from_ns / axis_ns, (to_ns - from_ns) / axis_ns, value, more)


def _work(launch: Launch, bounds: Bounds) -> str:
    """Say what the arithmetic is: its amount and roof, or the times of its types."""
    analysis, parts = launch.analysis, bounds.math_parts_ns
    if not parts:
        return "no FLOPs"
    total_ns = sum(parts.values())
    named = sorted((name for name in parts if parts[name] >= _SHOWN_PART * total_ns), key=lambda name: -parts[name])
    if len(named) > 1:
        return ", ".join(f"{resource_label(name)} {fmt.duration(parts[name])}" for name in named)
    pipe = analysis.pipes[named[0]]
    published = " (published)" if pipe.peak_source == "datasheet" else ""
    write, unit = writer(pipe)
    return f"{amount_words(pipe)} at {write(pipe.peak_per_s, f'{unit}/s')}{published}"


def _moved(launch: Launch) -> str:
    level = launch.analysis.levels["dram"]
    if level.amount_bytes is None or level.peak_bytes_per_s is None:
        return ""
    return f"{fmt.si(level.amount_bytes, 'B')} at {fmt.si(level.peak_bytes_per_s, 'B/s')}"


def _sentence(content: Content, launch: Launch, bounds: Bounds) -> str:
    lower_ns, upper_ns = bounds.lower_ns or 0.0, bounds.upper_ns or 0.0
    over_lower, over_upper = fmt.factor(bounds.measured_ns / lower_ns), fmt.factor(bounds.measured_ns / upper_ns)
    longer = "arithmetic" if (bounds.math_ns or 0.0) > (bounds.memory_ns or 0.0) else "DRAM traffic"
    other = _other_unit(content, launch)
    match bounds.position:
        case "below":
            return "Faster than the lower bound: this kernel's replay passes disagree with one another."
        case "near":
            where = "At the lower bound" if over_lower == _NO_FACTOR else f"Within {over_lower} of the lower bound"
            return f"{where}: {longer} alone explains the time."
        case "between":
            overlap = "barely overlap" if bounds.measured_ns > _IN_TURN * upper_ns else "overlap only in part"
            reason = f"; {other}" if other else ""
            return f"{over_lower} the lower bound: arithmetic and DRAM traffic {overlap}{reason}."
        case _:
            both = "the sum of both" if bounds.math_ns else "what its DRAM traffic needs"
            return f"{over_upper} {both}: {other or _waiting(launch, 1 - upper_ns / bounds.measured_ns)}."


def _waiting(launch: Launch, idle: float) -> str:
    """Say how long neither arithmetic nor DRAM is at work: longer still where the two overlap."""
    waits = "launch and latency take" if launch.bound == "overhead" else "latency takes"
    part = fmt.percent(idle)
    return f"{waits} {part.replace('>', 'more than ') if part.startswith('>') else f'at least {part}'} of the time"


def _other_unit(content: Content, launch: Launch) -> str:
    """Name the full unit that neither bound is made of; empty where there is none."""
    nearest = launch.bottleneck
    if nearest is None or nearest.resource == "dram" or nearest.share < content.limits.bound_share:
        return ""
    name, busy = nearest.resource, fmt.percent(nearest.share)
    pipe = launch.analysis.pipes.get(name or "")
    if pipe is not None and pipe.unit in {"FLOP", "op"}:
        more = pipe.share is not None and nearest.share > pipe.share
        return f"the pipe of {resource_label(name)} is {busy} busy, with more than these FLOPs" if more else ""
    if name not in {*launch.analysis.levels, *launch.analysis.pipes}:
        return f"a unit that the report does not name is {busy} busy"
    return f"the busiest unit is another one, {resource_label(name)}, {busy} busy"
