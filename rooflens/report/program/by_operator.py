"""Where the time of timelines goes, as a table of a page: operators, which open to their kernels, and all that is none.

Its rows add up to the time of the program: of kernels each instant is shared among those that run in it; of
communication and copies the exposed time counts; idle time has a row for each thing that the host did meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from rooflens.format import MISSING, duration, percent, si
from rooflens.model.knowledge.items import column_heads
from rooflens.model.program.copies import Copies
from rooflens.model.program.grouping import RowGroup, grouped
from rooflens.model.program.idle import Idle, IdleKind
from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.parts import Subject
from rooflens.model.program.ranks import Joined
from rooflens.model.verdict_classes import SHOWN_CLASSES
from rooflens.report.document import Block, Column, Filtered, OnPage, Pick, Span, Style, Table, Words, code
from rooflens.report.program.idle import IDLE_BECAUSE, idle_place
from rooflens.report.program.kernel_rows import HEADS, kernel_cells, kernel_columns
from rooflens.report.program.lane import DrawnProgram, mark_of, name_of, streams_of
from rooflens.report.program.words import OF_WALL, PART_NAMES, cut

SHOWN = 12
"""Rows that a page shows before a reader asks for all."""

_OPERATORS, _KERNELS, _CAUSES = 300, 500, 50
"""Operators and kernels that a page lists, and causes of each kind of idle time."""

_CLASSES = (*SHOWN_CLASSES, "communication", "copies", "graphs", "idle")


class OperatorRow(Struct, frozen=True):
    """A row of the table.

    Attributes:
        cells: Its cells by the heads of their columns, without bar and share.
        share: As of a kernel; None if it has none of its own.
        style: The colour of its bar.
        mark: What the page calls it, where nothing opens from it.
        bound: The class that the filters know it by.
        streams, ranks: Where it ran.
        rows: What opens from it.
    """

    cells: Mapping[str, Words]
    share: float | None
    style: Style = "unknown"
    mark: str = ""
    bound: str = ""
    streams: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    rows: tuple[OperatorRow, ...] = ()


def by_operator(whole: Joined, names: Mapping[str, str], sides: Sequence[DrawnProgram]) -> Iterator[Block]:
    """Yield the table, below its filters.

    Args:
        whole: The timelines.
        names: Short names of their kernels.
        sides: Those whose lanes stand on the page, too.
    """
    parts = parts_of(whole, names, sides)
    if not parts:
        return
    most = max(one.share or 0.0 for one in parts) or 1.0
    rows: list[tuple[Words, ...]] = []
    within, marks = [], []
    for part in parts:
        place = len(rows)
        for one in (part, *part.rows):
            share = "" if one.share is None else percent(one.share)
            bar = Span(f"{(one.share or 0.0) / most:.4f}", one.style)
            cells: dict[str, Words] = {**one.cells, OF_WALL: share, "on one scale": bar}
            rows.append(tuple(cells.get(head, "") for head in HEADS if head != "operator"))
            within.append(-1 if one is part else place)
            marks.append("" if one.rows else one.mark)
    left_out = len(whole.kernels) - min(_KERNELS, len(whole.kernels))
    table = Table(
        tuple(_operator_columns(whole)),
        tuple(rows),
        label="Where the time goes, by operator",
        amount=len(rows) + left_out,
        rest=" kernels with less time",
        marks=tuple(marks),
        within=tuple(within),
    )
    items = tuple(_row_item(one) for part in parts for one in (part, *part.rows) if not one.rows)
    classes = tuple(one for one in _CLASSES if any(item["bound"] == one for item in items))
    filtered = Filtered("Where the time goes", table.without_empty(MISSING), classes, _picks(items), items, SHOWN)
    yield OnPage((filtered,))


def parts_of(whole: Joined, names: Mapping[str, str], sides: Sequence[DrawnProgram]) -> list[OperatorRow]:
    """List operators, communication, copies, graphs and kinds of idle time, what takes most first."""
    rows = [*_RowMaker(whole, names, sides).rows(), *_copies_and_graphs(whole), *_idle(whole)]
    return sorted(rows, key=lambda one: -(one.share or 0.0))


class _RowMaker:
    def __init__(self, whole: Joined, names: Mapping[str, str], sides: Sequence[DrawnProgram]) -> None:
        self._whole, self._names = whole, names
        self._streams, self._ranks = streams_of(sides), _ranks(whole)
        self._listed = {id(one) for one in sorted(whole.kernels, key=lambda one: -one.time_ns)[:_KERNELS]}

    def rows(self) -> Iterator[OperatorRow]:
        """Yield operators, communication, and kernels that were not chosen."""
        whole = self._whole
        sent, computing = ([one for one in whole.kernels if one.is_communication is waits] for waits in (True, False))
        groups = grouped(computing, "operator")
        for group in groups[:_OPERATORS]:
            name = code(cut(group.name)) if group.name else Span("kernels without an operator", "dim")
            yield self._summed_row([member.kernel for member in group.rows], _group_cells(group, name), group.name)
        if rest := [member.kernel for group in groups[_OPERATORS:] for member in group.rows]:
            yield self._summed_row(rest, _sums(f"{len(groups) - _OPERATORS:,} other operators", rest), "other")
        if every := [one for one in whole.every if one.is_communication]:
            rows = self._opened_rows(sorted(sent, key=lambda one: -one.time_ns))
            yield replace(_exposed_row(whole, "communication", every, rows), style="communication")
        chosen = {one.identity for one in whole.kernels}
        if left := [one for one in whole.every if not one.is_communication and one.identity not in chosen]:
            yield self._summed_row(left, _sums("kernels that were not chosen", left), "not chosen")

    def _summed_row(
        self, kernels: Sequence[ProgramKernel], cells: Mapping[str, Words], name: str | None
    ) -> OperatorRow:
        share, style, rows = sum(one.share or 0.0 for one in kernels), _style(kernels), self._opened_rows(kernels)
        return OperatorRow(cells, share, style, mark_of("operator", name), style, rows=rows)

    def _opened_rows(self, kernels: Sequence[ProgramKernel]) -> tuple[OperatorRow, ...]:
        return tuple(self._operator_row(one) for one in kernels if id(one) in self._listed)

    def _operator_row(self, kernel: ProgramKernel) -> OperatorRow:
        cells = kernel_cells(kernel, self._names[kernel.name])
        mark, kind = mark_of(*kernel.identity), kernel.shown_class
        return OperatorRow(
            cells, kernel.share, kind, mark, kind, self._streams.get(mark, ()), self._ranks.get(mark, ())
        )


def _ranks(whole: Joined) -> dict[str, tuple[str, ...]]:
    """Map each kernel to the timelines that have it; empty for one timeline."""
    found: dict[str, dict[str, None]] = {}
    if len(whole.programs) > 1:
        for program in whole.programs:
            for one in program.every:
                found.setdefault(mark_of(*one.identity), {})[cut(name_of(program))] = None
    return {mark: tuple(names) for mark, names in found.items()}


def _copies_and_graphs(whole: Joined) -> Iterator[OperatorRow]:
    """Yield copies and graphs, where they take time that nothing else does."""
    parts = whole.parts
    if parts.copies_ns:
        yield _exposed_row(whole, "copies", whole.copies, tuple(map(_copies, whole.copies[:_CAUSES])))
    graphs: tuple[Subject, ...] = ("graphs", "unknown")
    for subject in graphs:
        if time_ns := parts.of(subject):
            name = PART_NAMES[subject]
            yield OperatorRow(_short_cells(name, time_ns), whole.share(subject), mark=mark_of(name), bound="graphs")


def _exposed_row(
    whole: Joined,
    subject: Literal["communication", "copies"],
    of: Sequence[ProgramKernel | Copies],
    rows: tuple[OperatorRow, ...],
) -> OperatorRow:
    """Make a row of the exposed time, with the time in all where kernels hide some; without wall time, of all of it."""
    time_ns = sum(one.time_ns for one in of)
    own_ns = whole.parts.of(subject) if whole.parts.wall_ns else time_ns
    in_all = "" if time_ns == own_ns else f" ({duration(time_ns)} in all)"
    name = f"{PART_NAMES[subject]}{in_all}" if whole.parts.wall_ns else subject
    cells = _short_cells(name, own_ns, sum(one.count for one in of))
    return OperatorRow(cells, own_ns / (whole.whole_ns or 1), mark=mark_of(subject), bound=subject, rows=rows)


def _copies(copies: Copies) -> OperatorRow:
    name = code(cut(copies.name)) if copies.name else "not named"
    cells = {**_short_cells(name, copies.time_ns, copies.count), "bytes": si(copies.moved_bytes, "B")}
    return OperatorRow(cells, None, mark=mark_of("copy", copies.name), bound="copies")


def _idle(whole: Joined) -> Iterator[OperatorRow]:
    """Yield idle time by what the host did, which opens to where it did that."""
    for kind, time_ns in whole.parts.idle_by_kind.items():
        causes = [one for one in whole.idle if one.cause.kind == kind]
        rows = tuple(_idle_row(kind, place, one) for place, one in enumerate(causes[:_CAUSES]))
        cells = _short_cells(f"idle: {IDLE_BECAUSE[kind]}", time_ns, sum(one.count for one in causes))
        share = time_ns / whole.parts.wall_ns
        yield OperatorRow(cells, share, rows=rows, mark=f"idle-{kind}", bound="idle")


def _idle_row(kind: IdleKind, place: int, idle: Idle) -> OperatorRow:
    cells = _short_cells(idle_place(idle.cause), idle.gap_ns, idle.count)
    call: Words = code(cut(idle.cause.call)) if idle.cause.call else ""
    return OperatorRow({**cells, "from": call}, idle.share, mark=f"idle-{kind}-{place}", bound="idle")


def _style(kernels: Sequence[ProgramKernel]) -> Style:
    """Return the class of most of the time."""
    times: dict[Style, int] = {}
    for one in kernels:
        times[one.shown_class] = times.get(one.shown_class, 0) + one.time_ns
    return max(times, key=times.__getitem__)


def _group_cells(group: RowGroup, name: Words) -> dict[str, Words]:
    is_part = group.floor_ns is not None and group.floor_time_ns < group.time_ns
    floor = duration(group.floor_ns) + (f" (of {duration(group.floor_time_ns)})" if is_part else "")
    return {**_short_cells(name, group.time_ns, group.count), "floor": floor, "to win": duration(group.gain_ns)}


def _short_cells(name: Words, time_ns: float, amount: int | None = None) -> dict[str, Words]:
    """Write the cells that rows of any kind have."""
    return {"kernel": name, "time": duration(time_ns), "launches": "" if amount is None else f"{amount:,}"}


def _sums(name: Words, kernels: Sequence[ProgramKernel]) -> dict[str, Words]:
    return _short_cells(name, sum(one.time_ns for one in kernels), sum(one.count for one in kernels))


def _operator_columns(whole: Joined) -> Iterator[Column]:
    """Yield the columns of a kernel but its operator, each with what its head means."""
    about = {**column_heads()["analyze TRACE"], "kernel": ""}
    for column in kernel_columns(whole):
        if column.heading != "operator":
            head = "operator, kernel" if column.heading == "kernel" else column.heading
            yield column._replace(heading=head, about=about.get(column.heading, ""))


def _row_item(row: OperatorRow) -> dict[str, Any]:
    item: dict[str, Any] = {"k": row.mark, "g": row.mark, "n": 1, "bound": row.bound}
    if row.streams or row.ranks:
        item |= {"stream": row.streams, "rank": row.ranks}
    return item


def _picks(items: Sequence[Mapping[str, Any]]) -> tuple[Pick, ...]:
    """List what rows can be chosen by: streams and ranks, where there are several."""
    picks = []
    for key in ("stream", "rank"):
        values = dict.fromkeys(value for item in items for value in item.get(key, ()))
        if len(values) > 1:
            picks.append(Pick(key, key, tuple(sorted(values, key=_numbers_first))))
    return tuple(picks)


def _numbers_first(name: str) -> tuple[object, ...]:
    """Sort names that end with numbers by these."""
    return tuple((0, int(word), "") if word.isdecimal() else (1, 0, word) for word in name.split(" "))
