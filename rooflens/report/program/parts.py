"""Where the time of a program goes, in words: its largest part, all parts in a line, why it idles, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rooflens.format import count, cut_name, duration, percent, plain_name, si
from rooflens.model.program.copies import Copies
from rooflens.model.program.idle import Idle, IdleKind
from rooflens.model.program.parts import Subject
from rooflens.model.program.ranks import Joined
from rooflens.report.document import Block, Column, Span, Table, Words, code
from rooflens.report.program.communication import told
from rooflens.report.program.words import cut, without_step

LEAST_PART = 0.02
"""A part of the time that is smaller is no part of the answer."""

_WORTH_A_STEP = 0.05
"""A subject that takes less of the time is not worth a step of its own."""

_NAME_WIDTH = 60

_ON_PAGE = 200
"""Causes that a page lists."""

_HOST_DID: Mapping[IdleKind, str] = {
    "launching": "launched one by one",
    "synchronizing": "waited for the GPU",
    "host": "did something else",
    "queued": "had launched already",
    "unknown": "not recorded",
}
"""What the host did in a gap."""

IDLE_BECAUSE: Mapping[IdleKind, str] = {
    "launching": "launches come one by one",
    "synchronizing": "the host waits for the GPU before it launches more",
    "host": "the host is busy with something else",
    "queued": "launched work waits for other streams or GPUs",
    "unknown": "the trace does not say what the host did",
}

_COLUMNS = (
    Column("the host", fit="wrap", least=18, most=24, worth=9),
    Column("in", fit="end", least=14, worth=8),
    Column("call", fit="end", least=12, worth=6),
    Column("before", fit="end", least=12, worth=5),
    Column("gaps", right=True, worth=6),
    Column("time", right=True, worth=9),
    Column("share", right=True, worth=9),
    Column("longest", right=True, worth=4),
)


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
    named = {
        "idle": parts.idle_ns,
        "communication alone": parts.communication_ns,
        "copies alone": parts.copies_ns,
        "graphs, kernels not recorded": parts.graphs_ns,
        "graphs of which nothing was recorded": parts.unknown_ns,
        "kernels above their floor": parts.faster_ns,
        "kernels at their floor": parts.floor_ns,
        "kernels without a known floor": parts.open_ns,
    }
    shown = sorted(((part_ns, name) for name, part_ns in named.items() if part_ns), reverse=True)
    each = ", ".join(f"{name} {percent(part_ns / parts.wall_ns)}" for part_ns, name in shown)
    is_told = parts.largest == "kernels" or not parts.most_from_kernels_ns
    kernels = "" if is_told else f"; faster kernels can save {percent(whole.share('kernels'))} at most"
    return f"Of {duration(parts.wall_ns)}: {each}{kernels}."


def idle_table(whole: Joined, top: int) -> Iterator[Block]:
    """List what the host did while the GPU was idle, most time first."""
    if not whole.idle or whole.parts.idle_ns < LEAST_PART * whole.parts.wall_ns:
        return
    rows: tuple[tuple[Words, ...], ...] = tuple(
        (
            _HOST_DID[one.kind],
            code(_where(one)) if _where(one) else "",
            code(cut(one.call)) if one.call else "",
            code(_short(one.before)) if one.before else "",
            f"{one.count:,}",
            duration(one.gap_ns),
            percent(one.share),
            duration(one.longest_ns),
        )
        for one in whole.idle[:_ON_PAGE]
    )
    yield Table(
        _COLUMNS,
        rows,
        "Idle, by what the host did",
        shown=top,
        amount=len(whole.idle),
        rest=" with less time",
    ).without_empty()


def next_steps(whole: Joined) -> Iterator[Words]:
    """Say what to do about each subject that is large, but kernels, the largest first."""
    for subject in whole.parts.ranked:
        if subject in _STEPS and whole.share(subject) >= _WORTH_A_STEP:
            yield from _STEPS[subject](whole)


def idle_place(one: Idle) -> Words:
    """Say where gaps of a cause are: in what the host was, else before what."""
    if where := _where(one):
        return code(where)
    return ("before ", code(_short(one.before))) if one.before else "not recorded"


def _where(one: Idle) -> str:
    """Say in what the host was: an operator, a range or a line."""
    found = one.operator or without_step(one.nvtx_range) or (one.code or "").rpartition("/")[2]
    return _short(found) if found else ""


def _short(name: str) -> str:
    return cut_name(plain_name(name), _NAME_WIDTH)


def _idle_headline(whole: Joined) -> str:
    head = f"GPU idle {percent(whole.share('idle'))} of {duration(whole.parts.wall_ns)}"
    kind, time_ns = next(iter(whole.parts.idle_by_kind.items()))
    return f"{head}: {IDLE_BECAUSE[kind]} ({percent(time_ns / whole.parts.wall_ns)})"


def _communication_headline(whole: Joined) -> str:
    top = next(iter(whole.collectives), None)
    of = f", most in {told(top)}" if top else ""
    return f"Communication alone {percent(whole.share('communication'))} of {duration(whole.parts.wall_ns)}{of}"


def _copies_headline(whole: Joined) -> str:
    top = next(iter(whole.copies), None)
    of = f", most in {_copied(top)}" if top else ""
    return f"Copies alone {percent(whole.share('copies'))} of {duration(whole.parts.wall_ns)}{of}"


def _kernels_headline(whole: Joined) -> str:
    parts, wall = whole.parts, duration(whole.parts.wall_ns)
    if not parts.faster_ns:
        return f"Kernels without a known floor take {percent(whole.share('kernels'))} of {wall}"
    head = f"Faster kernels can save at most {percent(whole.share('kernels'))} of {wall}"
    if not parts.open_ns:
        return head
    known, unknown = (percent(each / parts.wall_ns) for each in (parts.faster_ns, parts.open_ns))
    return f"{head}: {known} above floors, {unknown} without a known floor"


def _graphs_headline(whole: Joined) -> str:
    share, wall = percent(whole.share("graphs")), duration(whole.parts.wall_ns)
    return f"CUDA graphs take {share} of {wall}; their kernels are not recorded"


def _unknown_headline(whole: Joined) -> str:
    share, wall = percent(whole.share("unknown")), duration(whole.parts.wall_ns)
    return f"CUDA graphs ran in {share} of {wall}, and the trace does not say for how long"


_HEADLINES: Mapping[Subject, Callable[[Joined], str]] = {
    "idle": _idle_headline,
    "communication": _communication_headline,
    "copies": _copies_headline,
    "kernels": _kernels_headline,
    "graphs": _graphs_headline,
    "unknown": _unknown_headline,
}


def _idle_steps(whole: Joined) -> Iterator[Words]:
    kind = next(iter(whole.parts.idle_by_kind))
    longest = next((one for one in whole.idle if one.kind == kind), None)
    if longest is not None:
        yield _IDLE_STEPS[kind](longest)


def _amount(one: Idle) -> str:
    return f"{duration(one.gap_ns)} in {count(one.count, 'gap')}"


def _place(one: Idle) -> tuple[str | Span, ...]:
    where = _where(one)
    if where:
        return " in ", code(where)
    return (" before ", code(_short(one.before))) if one.before else ()


def _launching(one: Idle) -> Words:
    return (
        (
            "give the GPU more in each launch: capture the step as a CUDA graph (`torch.cuda.graph`, "
            '`torch.compile(mode="reduce-overhead")`), or fuse; longest'
        ),
        *_place(one),
        f", {_amount(one)}",
    )


def _synchronizing(one: Idle) -> Words:
    where = _where(one)
    return (
        "let the host run ahead: ",
        code(where) if where else "the host",
        *((" waits in ", code(cut(one.call))) if one.call else (" waits",)),
        (
            f" ({_amount(one)}); keep the value on the GPU, or copy it to pinned memory with `non_blocking=True` and "
            "read it later"
        ),
    )


def _busy_host(one: Idle) -> Words:
    where = _where(one)
    loads = "dataloader" in where.casefold() or "load_batch" in where.casefold()
    advice = (
        "load ahead: more workers, `prefetch_factor`, `pin_memory=True`"
        if loads
        else "do it on another thread, or launch ahead of it"
    )
    return "free the thread that launches: it was busy", *_place(one), f" ({_amount(one)}); {advice}"


def _queued(one: Idle) -> Words:
    before = (" before ", code(_short(one.before))) if one.before else ()
    waits = "find what launched work waits for: an event of another stream, a copy or a collective"
    return waits, *before, f" ({_amount(one)})"


def _not_recorded(_: Idle) -> Words:
    return "record what the host does, too: `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`"


_IDLE_STEPS: Mapping[IdleKind, Callable[[Idle], Words]] = {
    "launching": _launching,
    "synchronizing": _synchronizing,
    "host": _busy_host,
    "queued": _queued,
    "unknown": _not_recorded,
}


def _communication_steps(whole: Joined) -> Iterator[Words]:
    top = next(iter(whole.collectives), None)
    if top is None:
        return
    what = f"{told(top)}, {duration(top.exposed_ns)} exposed"
    if top.is_waiting:
        yield f"find the rank that comes late: {what}; give the traces of all ranks at once"
    else:
        yield f"hide communication behind kernels, or send less: {what}"


def _copies_steps(whole: Joined) -> Iterator[Words]:
    top = next(iter(whole.copies), None)
    if top is None:
        return
    if top.is_pageable:
        advice = "pin the host's memory and copy with `non_blocking=True`"
    elif "DtoD" in (top.name or ""):
        advice = "write results where they are needed, and leave `contiguous()` and `clone()` out"
    else:
        advice = "copy the next batch on a stream of its own, while kernels run"
    yield f"{advice}: {_copied(top)}"


def _graph_steps(whole: Joined) -> Iterator[Words]:
    if whole.graph_hint:
        yield whole.graph_hint


_STEPS: Mapping[Subject, Callable[[Joined], Iterator[Words]]] = {
    "idle": _idle_steps,
    "communication": _communication_steps,
    "copies": _copies_steps,
    "graphs": _graph_steps,
    "unknown": _graph_steps,
}


def _copied(one: Copies) -> str:
    """Say what was copied and how fast: `Memcpy HtoD (Pinned -> Device), 424 MB at 8.37 GB/s`."""
    rate = one.bandwidth_bytes_per_s
    amount = f", {si(one.moved_bytes, 'B')}" if one.moved_bytes is not None else ""
    speed = f" at {si(rate, 'B/s')}" if rate else ""
    return f"{cut(one.name or 'copies')}{amount}{speed}, {duration(one.time_ns)}"
