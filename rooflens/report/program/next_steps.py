"""What to do next about a program: an item for each part of its time that is worth one, what takes most first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from rooflens.format import count, cut_end, duration, factor, percent
from rooflens.model.program.idle import NEXT_NS, Idle, IdleKind
from rooflens.model.program.kernels import PROFILED, AtStake, ProgramKernel, at_stake
from rooflens.model.program.parts import Subject
from rooflens.model.program.ranks import Joined
from rooflens.model.program.timeline import NSYS
from rooflens.report.document import Block, Bullets, Heading, Item, Paragraph, Span, Words, code, spans, strong
from rooflens.report.document import joined as joined_words
from rooflens.report.program.communication import collective_words
from rooflens.report.program.idle import IDLE_BECAUSE, gap_place, gaps_of, host_did, places_of, where_of
from rooflens.report.program.parts import copied
from rooflens.report.program.words import LEAST_PART, LONGEST, cut, file_name, part_title

_LARGE_CAUSE = 0.1
"""From this part of the time on a cause of idle time that is not the largest is named, too."""

_LOADS = re.compile(r"data_?load|load_?(?:batch|data)", re.IGNORECASE)

_PROFILE = "rooflens profile"
_PROGRAM_NOTE = "`PROGRAM` is what was traced."
_FROM_BEGIN = (
    f"`--launch-skip` counts a function's launches from where the trace begins: add those before it. {_PROGRAM_NOTE}"
)


class Advice(NamedTuple):
    """What to do about a part of the time.

    Attributes:
        share: That part.
        words: Why and what.
        lines: Commands, each with what it is about.
    """

    share: float
    words: Words
    lines: tuple[Words, ...] = ()


def next_blocks(whole: Joined) -> Iterator[Block]:
    """Say what to do. It ends a text, and begins a page."""
    items = next_steps(whole)
    if not items:
        return
    yield Heading("Next", 3)
    yield Bullets(tuple(Item(one.words, one.lines) for one in items), numbered=True)
    profiled = [part.text for one in items for line in one.lines for part in spans(line) if _PROFILE in part.text]
    if profiled:
        yield Paragraph((_FROM_BEGIN if any("--launch-skip" in one for one in profiled) else _PROGRAM_NOTE,), "note")


def next_steps(whole: Joined) -> list[Advice]:
    """List what to do about each part of the time, the largest first; of small parts only where no larger has any."""
    steps: list[Advice] = []
    for subject in whole.parts.ranked or ("kernels",):
        advice = _NEXT_STEPS[subject](whole)
        if advice is not None:
            steps.append(advice._replace(words=(strong(_label(whole, subject)), ": ", *spans(advice.words))))
    return [one for one in steps if one.share >= LEAST_PART] or steps


def _label(whole: Joined, subject: Subject) -> str:
    above = " above or without a floor" if subject == "kernels" and whole.parts.floor_ns else ""
    label = f"{part_title(subject)}{above}"
    return f"{label}, {percent(whole.share(subject))}" if whole.parts.wall_ns else label


def _kernel_step(whole: Joined) -> Advice | None:
    """Say what tells more of kernels: the GPU, sizes, the report that holds the first, or counters of the largest."""
    reasons: list[str] = []
    lines: list[Words] = []
    nameless = next((one for one in whole.programs if not one.has_datasheet), None)
    if nameless is not None:
        what = "the trace does not name the GPU" if nameless.gpu is None else "the peaks of its GPU are unknown"
        reasons.append(f"no floor is known, the least time by FLOPs and bytes, as {what}")
        lines.append(code(shlex.join(("rooflens", "analyze", nameless.source, "--gpu", "NAME"))))
    if any(program.lacks_sizes for program in whole.programs):
        reasons.append("record the trace again with `record_shapes=True`: floors need the sizes of operators")
    first = next((one for one in whole.kernels if one.measured is not None), None)
    if first is not None and first.measured is not None:
        reasons.append("see what limits those in the report")
        command = shlex.join(("rooflens", "explain", first.measured.kernel.source, "--kernel", first.measured.key))
        lines.append((f"{_won(first)}: ", code(command)))
    most_ns = whole.whole_ns or 1
    stakes = [*islice(at_stake(whole.kernels), PROFILED)]
    # Small ones are worth profiling only where nothing else takes time.
    is_other_large = any(whole.share(other) >= LEAST_PART for other in whole.parts.ranked if other != "kernels")
    is_alone = not reasons and not is_other_large
    profiled = [one for one in stakes if is_alone or one.stake_ns >= LEAST_PART * most_ns]
    if profiled:
        reasons.append("profile what takes most, as counters tell what limits it")
        lines += [(f"{_at_stake(one, most_ns)}: ", code(profile_command(one.row))) for one in profiled]
    if not reasons:
        return None
    share = whole.share("kernels") if whole.parts.wall_ns else 1.0
    return Advice(share, "; ".join(reasons), tuple(lines))


def _at_stake(one: AtStake, most_ns: float) -> str:
    """Say how much of the time is at stake in a kernel, and where that is launched."""
    share = percent(one.stake_ns / most_ns)
    if one.open_ns == one.stake_ns:
        return f"{share}, no known floor"
    return f"{share} above or without a floor" if one.open_ns else f"{share} to save at most{_above_floor(one.row)}"


def _won(kernel: ProgramKernel) -> str:
    """Say what can be won in a kernel of which a report holds counters."""
    how = "with its first move" if kernel.by == "gain" else f"at most{_above_floor(kernel)}"
    return f"{duration(kernel.gain_ns)} of {duration(kernel.time_ns)} to win {how}"


def _above_floor(one: ProgramKernel) -> str:
    return f", {factor(one.time_ns / one.floor_ns)} its floor" if one.floor_ns else ""


def profile_command(one: ProgramKernel) -> str:
    """Write the command that profiles a typical launch; a name that a table cut is asked for by its begin."""
    begin = one.function.rstrip(".\u2026")
    asked = cut_end(one.function, LONGEST) if begin == one.function else f"regex:^{re.escape(begin)}"
    skipped = ("--launch-skip", str(one.launch)) if one.launch else ()
    return shlex.join(
        ("rooflens", "profile", "--kernel", asked, *skipped, "--launch-count", "1", "--", "PROGRAM"),
    )


def _idle_step(whole: Joined) -> Advice | None:
    """Say what to do about each cause that takes a tenth of the time or more, and else about the largest.

    Waits of the host stand before what a CUDA graph is for, as no graph captures them.
    """
    kinds = [
        kind
        for at, (kind, time_ns) in enumerate(whole.parts.idle_by_kind.items())
        if not at or time_ns >= _LARGE_CAUSE * whole.parts.wall_ns
    ]
    sentences: list[Words] = []
    for kind in sorted(kinds, key=lambda kind: kind != "synchronizing"):
        most = next((one for one in whole.idle if one.cause.kind == kind), None)
        if most is not None:
            time = f"{'for' if not sentences else 'For'} {duration(whole.parts.idle_by_kind[kind])}"
            sentences.append((f"{time} {IDLE_BECAUSE[kind]}", *spans(_IDLE_STEPS[kind](whole, most))))
    if hint := _recording(whole):
        sentences.append(hint)
    for program, gap in gaps_of(whole)[:1]:
        of = (" in ", code(cut(file_name(program)))) if len(whole.programs) > 1 else ()
        did = f"Longest gap: {duration(gap.gap_ns)} ({host_did(gap.cause.kind)})"
        sentences.append((did, *of, ", ", *gap_place(program, gap)))
    return Advice(whole.share("idle"), joined_words(". ", sentences)) if sentences else None


def _recording(whole: Joined) -> Words:
    """Say what to record to know the cause of idle time that the trace does not tell; empty if that is little."""
    unknown_ns = sum(one.gap_ns for one in whole.idle if _is_unexplained(one))
    if unknown_ns < LEAST_PART * whole.parts.wall_ns:
        return ""
    events = "`torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)`"
    how = "`activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True`"
    if _is_nsys(whole):
        how = "`nsys profile --trace=cuda,nvtx,osrt`"
    elif any(_is_unexplained(one) and one.cause.kind == "queued" for one in whole.idle):
        how += f", and waits for events with {events}"
    whole_steps = ", in whole steps" if any(program.may_be_sample for program in whole.programs) else ""
    return f"The trace does not tell the cause of {duration(unknown_ns)}: record it with {how}{whole_steps}"


def _is_unexplained(idle: Idle) -> bool:
    """Return whether a trace does not tell what the host did in gaps, or what launched work waited for."""
    kind = idle.cause.kind
    if kind == "queued":
        return idle.longest_ns >= NEXT_NS
    return kind == "unknown" or (kind == "host" and not places_of(idle.cause))


def _most(one: Idle) -> tuple[str | Span, ...]:
    """Say in what the host was for most of the time; empty where nothing of it was recorded."""
    inside = [part for place in places_of(one.cause) for part in (" in ", code(place))]
    return (", most", *inside, f" ({duration(one.gap_ns)} in {count(one.count, 'gap')})") if inside else ()


def _graph_words(whole: Joined) -> tuple[str | Span, ...]:
    """Advise a CUDA graph, and say which waits of the host must go first."""
    advice = 'capture the step as a CUDA graph (`torch.cuda.graph`, `torch.compile(mode="reduce-overhead")`)'
    waits = next((one.cause for one in whole.idle if one.cause.kind == "synchronizing"), None)
    if waits is None:
        return (advice,)
    place = joined_words(" in ", [code(one) for one in reversed(places_of(waits))])
    such = (", such as ", *place) if place else ()
    return (f"{advice}; first take out the host's waits for the GPU", *such, ": no graph captures them")


def _launching(whole: Joined, idle: Idle) -> Words:
    return (*_most(idle), ". Give the GPU more in each launch: fuse, or ", *_graph_words(whole))


def _synchronizing(_: Joined, idle: Idle) -> Words:
    return (
        *_most(idle),
        ". Keep the value on the GPU, or copy it to pinned memory with `non_blocking=True` and read it later",
    )


def _busy_host(whole: Joined, _: Idle) -> Words:
    causes = [one for one in whole.idle if one.cause.kind == "host"]
    most = next((one for one in causes if places_of(one.cause)), None)
    unseen_ns = sum(one.gap_ns for one in causes if not places_of(one.cause))
    if most is None or 2 * unseen_ns > sum(one.gap_ns for one in causes):
        return ""
    if _LOADS.search(where_of(most.cause)):
        return *_most(most), ". Load ahead: more workers, `prefetch_factor`, `pin_memory=True`"
    return *_most(most), ". Do that on another thread, or launch ahead of it"


def _queued(whole: Joined, idle: Idle) -> Words:
    if idle.longest_ns >= NEXT_NS:
        return ", and nothing recorded ran: it may have waited for another GPU, the host or an event"
    most = "most in " if any(one.cause.kind == "queued" and one is not idle for one in whole.idle) else ""
    short = f"{most}{count(idle.count, 'gap')} of {duration(idle.longest_ns)} at most"
    return (f" ({short}). Fewer kernels leave fewer gaps: fuse, or ", *_graph_words(whole))


def _is_nsys(whole: Joined) -> bool:
    return all(program.kind == NSYS for program in whole.programs)


_IDLE_STEPS: Mapping[IdleKind, Callable[[Joined, Idle], Words]] = {
    "launching": _launching,
    "synchronizing": _synchronizing,
    "host": _busy_host,
    "queued": _queued,
    "unknown": lambda *_: "",
}


def _communication_step(whole: Joined) -> Advice | None:
    top = next(iter(whole.collectives), None)
    if top is None:
        return None
    share = whole.share("communication")
    what = f"{collective_words(top)}, {count(top.count, 'call')}, {duration(top.exposed_ns)} exposed"
    hide = "Hide it behind kernels, or send less"
    if len(whole.programs) == 1:
        name = file_name(whole.programs[0])
        ending = name[name.index(".") :] if "." in name else ""
        wait = "One rank's trace does not tell sending from waiting: give those of all ranks"
        return Advice(share, f"{what}. {hide}. {wait}", (code(f"rooflens analyze rank*{cut(ending)}"),))
    return Advice(share, f"find the rank that comes late: {what}" if top.is_waiting else f"{what}. {hide}")


def _copies_step(whole: Joined) -> Advice | None:
    top = next(iter(whole.copies), None)
    if top is None:
        return None
    if top.is_pageable:
        advice = "Pin the host's memory and copy with `non_blocking=True`"
    elif "DtoD" in (top.name or ""):
        advice = "Write results where they are needed, and leave `contiguous()` and `clone()` out"
    elif 2 * whole.parts.copies_ns < sum(one.time_ns for one in whole.copies):
        advice = "Most copies run beside kernels already"
    else:
        advice = "Copy the next batch on a stream of its own, while kernels run"
    return Advice(whole.share("copies"), f"{copied(top)}. {advice}")


def _graph_step(whole: Joined) -> Advice | None:
    share = whole.share("graphs") + whole.share("unknown")
    return Advice(share, whole.graph_hint) if whole.graph_hint else None


_NEXT_STEPS: Mapping[Subject, Callable[[Joined], Advice | None]] = {
    "idle": _idle_step,
    "communication": _communication_step,
    "copies": _copies_step,
    "kernels": _kernel_step,
    "graphs": _graph_step,
    "unknown": _graph_step,
}
