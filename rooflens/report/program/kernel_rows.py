"""A kernel of a timeline as a row of a table."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from msgspec.structs import replace

from rooflens.format import duration, percent, si
from rooflens.model.program.kernels import ProgramKernel, in_order, summed
from rooflens.model.program.ranks import Joined
from rooflens.report.document import SPARE, Column, Span, Words, code
from rooflens.report.program.words import OF_WALL, cut, share_head, without_step

_CLASS = Column("class", fit="wrap", least=25, most=36, worth=8)
"""The column of classes where a report says what makes them so."""

_COLUMNS = (
    Column("kernel", fit="name", least=26, most=48),
    Column("time", right=True, worth=9),
    Column(OF_WALL, right=True, worth=8),
    Column("on one scale", fit="bar", page=True),
    Column("launches", right=True, worth=6),
    Column("a launch", right=True, worth=SPARE + 1),
    Column("floor", right=True, worth=8),
    Column("to win", right=True, worth=9),
    Column("operator", fit="end", least=12, worth=7),
    Column("shape", fit="end", least=12, worth=5),
    Column("from", fit="end", least=10, worth=6),
    Column("class", fit="wrap", least=12, worth=SPARE),
    Column("FLOP", right=True, page=True),
    Column("bytes", right=True, page=True),
    Column("first move", fit="prose", least=60),
)

_LISTED = ({"gain", "limit"}, {"time"}, {"communication", "floor"})
"""What the rows of each part of the list are ranked by."""

HEADS = tuple(one.heading for one in _COLUMNS)
"""What `kernel_cells` calls its cells."""


def kernel_columns(whole: Joined) -> tuple[Column, ...]:
    """Return the columns of what `kernel_cells` writes."""
    has_counters = any(one.measured is not None for one in whole.kernels)
    heads = {OF_WALL: share_head(whole)}
    return tuple(
        _CLASS if has_counters and one.heading == "class" else one._replace(heading=heads.get(one.heading, one.heading))
        for one in _COLUMNS
    )


def kernel_cells(kernel: ProgramKernel, name: str, longest: float = 1.0) -> dict[str, Words]:
    """Write the cells of a kernel by `HEADS`, in their order.

    Args:
        kernel: The kernel.
        name: Its short name.
        longest: The share that fills the bar.
    """
    cells: tuple[Words, ...] = (
        code(name),
        duration(kernel.time_ns),
        "" if kernel.share is None else percent(kernel.share),
        Span(f"{(kernel.share or 0.0) / longest:.4f}", "unknown"),
        f"{kernel.count:,}",
        duration(kernel.launch_ns),
        duration(kernel.floor_ns) + (f" ({kernel.caches})" if kernel.caches not in {None, "cold"} else ""),
        duration(kernel.gain_ns),
        code(cut(kernel.operator)) if kernel.operator else "",
        code(cut(kernel.shape)) if kernel.shape else "",
        code(cut(from_words(kernel))) if from_words(kernel) else "",
        class_words(kernel),
        si(kernel.flop, "FLOP"),
        si(kernel.moved_bytes, "B"),
        move_words(kernel),
    )
    return dict(zip(HEADS, cells, strict=True))


class ListedKernels(NamedTuple):
    """The parts of the one list.

    Attributes:
        known: Kernels of which something can be won, most first.
        unknown: Those of which nobody knows what, by time; sizes tell nothing there, so that all of them are one row.
        rest: Those that communicate, and those with nothing to win.
    """

    known: list[ProgramKernel]
    unknown: list[ProgramKernel]
    rest: list[ProgramKernel]


def listed_kernels(whole: Joined) -> ListedKernels:
    """Part the kernels, so that neither what can be won nor what is not known hides the other."""
    known, unknown, rest = ([one for one in whole.kernels if one.by in kinds] for kinds in _LISTED)
    alike: defaultdict[tuple[str, str | None], list[ProgramKernel]] = defaultdict(list)
    for one in unknown:
        alike[one.name, one.operator].append(one)
    merged = [own[0] if len(own) == 1 else replace(summed(own), shape=f"{len(own):,} shapes") for own in alike.values()]
    return ListedKernels(known, [*in_order(merged)], rest)


def class_words(kernel: ProgramKernel) -> Words:
    """Write the class as everywhere, with what makes it so where a report holds the kernel."""
    if kernel.measured is None:
        return Span(kernel.shown_class, kernel.shown_class)
    from rooflens.report.words.verdicts import verdict_words  # noqa: PLC0415 - only where there is a report

    return Span(verdict_words(kernel.measured), kernel.shown_class)


def move_words(kernel: ProgramKernel) -> Words:
    """Write the first move, where a report holds the kernel."""
    if kernel.measured is None:
        return ""
    from rooflens.report.words.verdict import best_move  # noqa: PLC0415 - only where there is a report

    return Span(best_move(kernel.measured).partition(": ")[0], "dim")


def from_words(kernel: ProgramKernel) -> str:
    """Say where most of a kernel comes from: module and line, else its ranges; of a file its name, and no folder."""
    line = ", ".join(part.rpartition("/")[2] for part in (kernel.code or "").split(", "))
    # Of `forward/forward:mlp` the first says nothing.
    ranges = without_step(kernel.nvtx_range).split("/")
    told = (one for one, within in zip(ranges, (*ranges[1:], ""), strict=True) if not within.startswith(one))
    return ", ".join(filter(None, (kernel.module, line))) or "/".join(told)
