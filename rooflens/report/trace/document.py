"""What a timeline without a report says: kernels by what can be won, gaps, what has no floor, and what to profile."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rooflens.format import count, duration, factor, percent, si
from rooflens.model.bounds import Bound, shown_class
from rooflens.model.keys import short_names
from rooflens.model.program.program import Program, ProgramKernel, Stretch, Unknown
from rooflens.report.document import (
    SPARE,
    Block,
    Column,
    Columns,
    Document,
    Folded,
    Heading,
    Paragraph,
    Span,
    Table,
    Words,
    bullets,
    code,
    few,
    paragraph,
)

SHOWN = 20
"""Kernels that a terminal and Markdown show; pages and data hold all."""

_ON_PAGE = 500
"""Kernels that a page lists, of each trace."""

_NAMED = 5
_HOW = (
    "A floor is the least time by FLOPs and bytes that the sizes of an operator state, at the peaks of the GPU's "
    "datasheet: cold caches; `warm` where operands and result fit in L2, `partly` where some must have been there. "
    "What can be won counts from cold caches, and from 5 \u00b5s a launch. Shares are of the time of all kernels. "
    "Nothing was counted inside a kernel, so that its class is open until it is profiled."
)

_NOTE = (
    "floor: by the sizes of the operator, cold caches unless it says warm; to win: time above the cold floor and "
    "5 \u00b5s a launch; a class is open until the kernel is profiled"
)

_COLUMNS = (
    Column("kernel", fit="name", least=16, most=48),
    Column("on one scale", fit="bar", page=True),
    Column("time", right=True, worth=9),
    Column("share", right=True, worth=8),
    Column("launches", right=True, worth=6),
    Column("a launch", right=True, worth=SPARE + 1),
    Column("floor", right=True, worth=8),
    Column("to win", right=True, worth=9),
    Column("operator", fit="end", least=12, worth=7),
    Column("shape", fit="end", least=12, worth=5),
    Column("from", fit="end", least=10, worth=5),
    Column("class", worth=SPARE),
    Column("FLOP", right=True, page=True),
    Column("bytes", right=True, page=True),
)


def traces_document(programs: Sequence[Program], top: int | None = None) -> Document:
    """Say of each timeline what its kernels take, what can be won, and what to do next.

    Args:
        programs: One or more timelines.
        top: Kernels of each that are shown; by default the first 20 in texts, and all on pages.
    """
    return tuple(block for program in programs for block in _blocks(program, top, several=len(programs) > 1))


def heading(programs: Sequence[Program]) -> tuple[str, list[str], str]:
    """Give the title of the page, facts below it, and how many traces a generator wrote."""
    gpus = dict.fromkeys(program.gpu or "GPU not named" for program in programs)
    named = [program.source.replace("\\", "/").rpartition("/")[2] for program in programs]
    title = named[0] if len(named) == 1 else count(len(named), "trace")
    written = sum(program.is_synthetic for program in programs)
    synthetic = f"{count(written, 'trace')} written by a generator, not recorded on a GPU." if written else ""
    return title, [*gpus, "a trace, no counters"], synthetic


def _blocks(program: Program, top: int | None, *, several: bool) -> Iterator[Block]:
    """Yield what there is to say of one timeline, the answer first."""
    names = short_names(one.name for one in program.kernels)
    if several:
        yield Heading((code(program.source),))
    yield Paragraph(tuple(_answer(program, names)), "answer")
    shown = top or SHOWN
    yield _table(program.kernels[:shown], len(program.kernels), names)
    if unknown := _unknown(program):
        yield paragraph(unknown)
    yield from _gaps(program, names)
    if commands := profile_commands(program):
        yield Heading("Profile next", 3)
        yield bullets([code(command) for command in commands], numbered=True)
        yield Paragraph((_FROM_BEGIN,), "note")
    if program.notes:
        yield Paragraph(tuple(f"note: {note}" for note in program.notes), "note")
    if program.has_datasheet:
        yield Paragraph((_NOTE,), "note")
    folds = [Folded("How to read it", (paragraph(_HOW),))]
    if len(program.kernels) > shown:
        folds.insert(0, Folded("All kernels", (_table(program.kernels[:_ON_PAGE], len(program.kernels), names),)))
    yield Columns((tuple(folds),))


_FROM_BEGIN = (
    "`--launch-skip` counts a function's launches from where the trace begins: add those before it. `PROGRAM` is what "
    "was traced."
)


def _answer(program: Program, names: dict[str, str]) -> Iterator[Words]:
    """Say in two sentences what the program is, and what can be won."""
    told = program.unprofiled
    idle = f"; the GPU is idle for {percent(told.gap_share)} of {duration(told.wall_ns)}" if told.gap_share else ""
    gpu = program.gpu or "GPU not named"
    functions = len({one.name for one in program.kernels})
    yield (
        f"{gpu}: {count(functions, 'kernel')}, {count(program.launches, 'launch')}, {duration(program.time_ns)} of "
        f"GPU time{idle}."
    )
    waiting_ns = sum(one.time_ns for one in program.kernels if one.is_communication)
    if waiting_ns:
        share = waiting_ns / program.time_ns if program.time_ns else None
        yield f"{percent(share)} of it is in kernels that wait for other GPUs."
    known = [one for one in program.kernels if one.gain_ns]
    if known and program.gain_ns is not None:
        first = known[0]
        yield (
            f"{duration(program.gain_ns)} above the floors of {percent(program.known_share)} of the time; most in ",
            code(names[first.name]),
            f": {duration(first.gain_ns)}{_times_floor(first)}{_where(first)}.",
        )


def _times_floor(one: ProgramKernel) -> str:
    if not one.floor_cold_ns:
        return ""
    return f", {factor(one.time_ns / one.floor_cold_ns)} its floor from cold caches"


def _where(one: ProgramKernel) -> str:
    where = _from(one)
    return f", from {where}" if where else ""


def _from(one: ProgramKernel) -> str:
    """Say where most of a kernel comes from: module and line, else its range."""
    return ", ".join(part for part in (one.module, one.code) if part) or one.nvtx_range or ""


def _table(kernels: Sequence[ProgramKernel], amount: int, names: dict[str, str]) -> Table:
    longest = max((one.share for one in kernels), default=0.0) or 1.0
    rows = tuple(_row(one, names[one.name], longest) for one in kernels)
    return Table(_COLUMNS, rows, amount=amount, rest=" with less to win", label="Kernels, most to win first")


def _row(one: ProgramKernel, name: str, longest: float) -> tuple[Words, ...]:
    floor = duration(one.floor_ns) + (f" ({one.caches})" if one.caches not in {None, "cold"} else "")
    return (
        code(name),
        Span(f"{one.share / longest:.4f}", "unknown"),
        duration(one.time_ns),
        percent(one.share),
        f"{one.count:,}",
        duration(one.launch_ns),
        floor,
        duration(one.gain_ns),
        code(one.operator) if one.operator else "",
        code(one.shape) if one.shape else "",
        code(_from(one)) if _from(one) else "",
        _class(one),
        si(one.flop, "FLOP"),
        si(one.moved_bytes, "B"),
    )


def _class(one: ProgramKernel) -> Words:
    """Write the class as everywhere: one that is left alone has a question mark, for nothing was counted."""
    if one.bound != "unknown":
        return Span(one.bound, shown_class(one.bound, ()))
    if len(one.or_bound) == 1:
        left: Bound = one.or_bound[0]
        return Span(f"{left}?", shown_class(left, (left,)))
    return Span("unknown", "unknown")


def _unknown(program: Program) -> Words:
    """Name the operators that have no floor, those that take most time first."""
    if not program.has_datasheet or not program.unknown:
        return ""
    named: list[Words] = [_named(one) for one in program.unknown]
    return ("No floor is known of ", *few(named, _NAMED), ".")


def _named(one: Unknown) -> Words:
    label = code(one.operator) if one.operator else Span("kernels without an operator")
    return label, f" ({percent(one.share)})"


def _gaps(program: Program, names: dict[str, str]) -> Iterator[Block]:
    """Say how long the GPU was idle, after which kernels, and where launches came too late."""
    told = program.unprofiled
    if not told.gap_ns:
        return
    yield Heading("Gaps", 3)
    lines: list[Words] = [f"idle for {duration(told.gap_ns)}, {percent(told.gap_share)} of {duration(told.wall_ns)}"]
    bare = short_names(gap.name for gap in told.gaps_after if gap.name)
    after: list[Words] = [
        (
            code(bare[gap.name]) if gap.name else Span("copies and graphs"),
            f" ({duration(gap.gap_ns)}, {count(gap.count, 'gap')})",
        )
        for gap in told.gaps_after
    ]
    if after:
        lines.append(("longest after ", *few(after, 3)))
    if program.stretches:
        idle_ns = sum(one.gap_ns for one in program.stretches)
        wall_ns = sum(one.wall_ns for one in program.stretches)
        stretches = count(len(program.stretches), "stretch")
        launches = count(sum(one.count for one in program.stretches), "launch")
        lines.append(
            (
                f"launch-bound: {stretches} with {launches}, idle for {duration(idle_ns)} of {duration(wall_ns)}: ",
                "capture them as a CUDA graph, or fuse their kernels; longest ",
                *_stretch(program.stretches[0], names),
            )
        )
    yield bullets(lines)


def _stretch(one: Stretch, names: dict[str, str]) -> tuple[str | Span, ...]:
    where = one.module or one.nvtx_range
    return (
        f"{duration(one.wall_ns)} from {duration(one.start_ns)} on",
        *((" in ", code(where)) if where else ()),
        ", from ",
        code(names[one.first]),
        " to ",
        code(names[one.last]),
    )


def profile_commands(program: Program) -> list[str]:
    """Write the commands that profile a typical launch of the kernels with most to win, at most three."""
    return [
        shlex.join(
            (
                "rooflens",
                "profile",
                "--kernel",
                one.function,
                *(("--launch-skip", str(one.launch)) if one.launch else ()),
                "--launch-count",
                "1",
                "--",
                "PROGRAM",
            )
        )
        for one in program.next
    ]
