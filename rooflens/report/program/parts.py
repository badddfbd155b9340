"""Where the time of a program goes, in words: its largest part, all parts in a line, and how long its steps take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from rooflens.format import count, duration, percent, si
from rooflens.model.program.copies import Copies
from rooflens.model.program.parts import SUBJECTS, Subject
from rooflens.model.program.program import Program
from rooflens.model.program.ranks import Joined
from rooflens.model.program.steps import Step
from rooflens.report.document import Words, code
from rooflens.report.program.communication import collective_words
from rooflens.report.program.idle import IDLE_BECAUSE, step_name
from rooflens.report.program.words import PART_NAMES, cut, part_title

_NEARLY_ALL = 0.95
"""A cause that takes so much of the idle time takes it all."""

_FEW_STEPS = 3
"""Fewer steps do not tell which one is usual."""

_MANY_LAUNCHES = 100
"""A trace of fewer launches may be of less than a step."""

_ALIKE = 0.02
"""Steps within this of their median differ by nothing that is worth a word."""


def headline_of(whole: Joined) -> str:
    """Say what takes most of the time, and why; empty where no times were recorded."""
    largest = whole.parts.largest
    if largest is None or not whole.parts.wall_ns:
        return ""
    return f"{_HEADLINES[largest](whole)}."


def parts_line(whole: Joined) -> str:
    """Write all parts, which add up to the time, the largest first; empty where no times were recorded."""
    parts = whole.parts
    if not parts.wall_ns:
        return ""
    times = {one: parts.kernels_ns if one == "kernels" else parts.of(one) for one in SUBJECTS}
    saving = "" if parts.largest == "kernels" else f" ({_saving(whole)})"
    named = {one: PART_NAMES[one] + (saving if one == "kernels" else "") for one in SUBJECTS}
    shown = sorted(((times[one], named[one]) for one in SUBJECTS if times[one]), reverse=True)
    each = ", ".join(f"{percent(part_ns / parts.wall_ns)} {name}" for part_ns, name in shown)
    return f"Of {duration(parts.wall_ns)}: {each}."


def steps_line(whole: Joined) -> Words:
    """Say how long a step takes, and what the slowest spends more on; what lacks for that, else."""
    if not whole.parts.wall_ns:
        return ""
    each = [(program, step) for program in whole.programs for step in program.steps]
    if not each:
        is_long = sum(program.launches for program in whole.programs) >= _MANY_LAUNCHES
        return "No steps were found: start-up and end count, too." if is_long else ""
    walls_ns = sorted(step.wall_ns for _, step in each)
    amount = max(len(program.steps) for program in whole.programs)
    steps = f"{count(amount, 'step')}{' in each trace' if len(whole.programs) > 1 else ''}"
    spread = f"{duration(walls_ns[0])} to {duration(walls_ns[-1])}"
    if amount < _FEW_STEPS:
        return f"{steps}, {spread}: too few to tell what is usual."
    usual_ns = median(walls_ns)
    program, slowest = max(each, key=lambda one: one[1].wall_ns)
    line = f"{steps}, median {duration(usual_ns)}, {spread}"
    if slowest.wall_ns - usual_ns < _ALIKE * usual_ns:
        return f"{line}."
    more_ns, part = _more(slowest, [step for _, step in each])
    return f"{line}; slowest ", code(_named(whole, program, slowest)), f": {duration(more_ns)} more {part}."


def copied(one: Copies) -> str:
    """Say what was copied and how fast: `Memcpy HtoD (Pinned -> Device), 424 MB at 8.37 GB/s, 50.7 ms in all`."""
    rate = one.bandwidth_bytes_per_s
    amount = f", {si(one.moved_bytes, 'B')}" if one.moved_bytes is not None else ""
    speed = f" at {si(rate, 'B/s')}" if rate else ""
    return f"{cut(one.name or 'copies')}{amount}{speed}, {duration(one.time_ns)} in all"


def _named(whole: Joined, program: Program, step: Step) -> str:
    rank = f"rank {program.rank} " if len(whole.programs) > 1 and program.rank is not None else ""
    return f"{rank}{step_name(program, step.index)}"


def _more(slowest: Step, steps: list[Step]) -> tuple[float, str]:
    """Return the part that a step spends most more on than the median one, and how much."""
    return max(
        (own_ns - median(getattr(one.occupancy, f"{subject}_ns") for one in steps), words)
        for subject, words in PART_NAMES.items()
        for own_ns in [getattr(slowest.occupancy, f"{subject}_ns")]
    )


def _saving(whole: Joined) -> str:
    """Say what faster kernels save at most, and for which part of the time that is unknown, as no floor is known."""
    parts = whole.parts
    known, unknown = (percent(each / parts.wall_ns) for each in (parts.faster_ns, parts.open_ns))
    if not parts.open_ns:
        return f"at most {known} to save" if parts.faster_ns else "at their floor"
    return f"at most {known} to save, unknown for {unknown}" if parts.faster_ns else "what can be saved is unknown"


def _idle_headline(whole: Joined) -> str:
    head = f"GPU idle {percent(whole.share('idle'))} of {duration(whole.parts.wall_ns)}"
    if any(program.may_be_sample for program in whole.programs):
        return f"{head}, or not recorded: the trace may be a sample"
    kind, time_ns = next(iter(whole.parts.idle_by_kind.items()))
    if time_ns >= _NEARLY_ALL * whole.parts.idle_ns:
        return f"{head}: {IDLE_BECAUSE[kind]}"
    return f"{head}; for {duration(time_ns)} {IDLE_BECAUSE[kind]}"


def _share_headline(whole: Joined, subject: Subject, most: str = "") -> str:
    of = f", most in {most}" if most else ""
    return f"{part_title(subject)} {percent(whole.share(subject))} of {duration(whole.parts.wall_ns)}{of}"


def _kernels_headline(whole: Joined) -> str:
    parts = whole.parts
    head = f"{part_title('kernels')} take {percent(parts.kernels_ns / parts.wall_ns)} of {duration(parts.wall_ns)}"
    return f"{head}: {_saving(whole)}"


_HEADLINES: Mapping[Subject, Callable[[Joined], str]] = {
    "idle": _idle_headline,
    "communication": lambda whole: _share_headline(
        whole, "communication", "".join(map(collective_words, whole.collectives[:1]))
    ),
    "copies": lambda whole: _share_headline(whole, "copies", "".join(map(copied, whole.copies[:1]))),
    "kernels": _kernels_headline,
    "graphs": lambda whole: _share_headline(whole, "graphs"),
    "unknown": lambda whole: _share_headline(whole, "unknown"),
}
