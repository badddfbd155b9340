"""A kernel of a timeline as a row of a table."""

from __future__ import annotations

from rooflens.format import duration, percent, si
from rooflens.model.program.kernels import ProgramKernel
from rooflens.report.document import SPARE, Column, Span, Words, code
from rooflens.report.program.words import FLOOR, cut, without_step

CLASS = Column("class", fit="wrap", least=25, most=36, worth=8)
"""The column of classes where a report says what makes them so."""

COLUMNS = (
    Column("kernel", fit="name", least=26, most=48),
    Column("on one scale", fit="bar", page=True),
    Column("time", right=True, worth=9),
    Column("share", right=True, worth=8),
    Column("launches", right=True, worth=6),
    Column("a launch", right=True, worth=SPARE + 1),
    Column("floor", right=True, worth=8, about=FLOOR),
    Column("to win", right=True, worth=9),
    Column("operator", fit="end", least=12, worth=6),
    Column("shape", fit="end", least=12, worth=5),
    Column("from", fit="end", least=10, worth=7),
    Column("class", fit="wrap", least=12, worth=SPARE),
    Column("FLOP", right=True, page=True),
    Column("bytes", right=True, page=True),
    Column("first move", fit="prose", least=60),
)
"""What `kernel_cells` writes."""


def kernel_cells(one: ProgramKernel, name: str, longest: float) -> tuple[Words, ...]:
    """Write the cells of a kernel.

    Args:
        one: The kernel.
        name: Its short name.
        longest: The share that fills the bar.
    """
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
        code(cut(one.operator)) if one.operator else "",
        code(cut(one.shape)) if one.shape else "",
        code(cut(from_words(one))) if from_words(one) else "",
        class_words(one),
        si(one.flop, "FLOP"),
        si(one.moved_bytes, "B"),
        move_words(one),
    )


def class_words(one: ProgramKernel) -> Words:
    """Write the class as everywhere, with what makes it so where a report holds the kernel."""
    if one.measured is None:
        return Span(one.shown_class, one.shown_class)
    from rooflens.report.words.verdicts import verdict_words  # noqa: PLC0415 - only where there is a report

    return Span(verdict_words(one.measured), one.shown_class)


def move_words(one: ProgramKernel) -> Words:
    """Write the first move, where a report holds the kernel."""
    if one.measured is None:
        return ""
    from rooflens.report.words.verdict import best_move  # noqa: PLC0415 - only where there is a report

    return Span(best_move(one.measured).partition(": ")[0], "dim")


def from_words(one: ProgramKernel) -> str:
    """Say where most of a kernel comes from: module and line, else its range; of a file its name, and no folder."""
    line = ", ".join(part.rpartition("/")[2] for part in (one.code or "").split(", "))
    return ", ".join(filter(None, (one.module, line))) or without_step(one.nvtx_range)
