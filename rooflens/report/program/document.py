"""What timelines say: where the time goes, kernels by what can be won, why it idles, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rooflens.errors import UnknownNameError
from rooflens.format import MISSING, count, duration, percent, quantity
from rooflens.model.keys import short_names
from rooflens.model.program.grouping import unknown_operators
from rooflens.model.program.kernels import ProgramKernel
from rooflens.model.program.program import Program
from rooflens.model.program.ranks import Joined, joined
from rooflens.model.program.rows import Stretch
from rooflens.report.document import (
    Block,
    Column,
    Columns,
    Document,
    Folded,
    OnPage,
    Paragraph,
    Span,
    Table,
    Words,
    code,
    few,
    paragraph,
)
from rooflens.report.document import (
    joined as joined_words,
)
from rooflens.report.program.by_operator import by_operator
from rooflens.report.program.communication import communication_blocks, ranks_blocks
from rooflens.report.program.fusion import fusion_blocks
from rooflens.report.program.grouping import groups_table, modules_on_page
from rooflens.report.program.idle import idle_blocks
from rooflens.report.program.kernel_rows import from_words, kernel_cells, kernel_columns, listed_kernels, move_words
from rooflens.report.program.lane import lanes_block, sides_of_ranks
from rooflens.report.program.next_steps import next_blocks
from rooflens.report.program.parts import headline_of, parts_line, steps_line
from rooflens.report.program.totals import beside_kernels
from rooflens.report.program.words import LEAST_PART, SHARES, cut, file_name, heads_note, share_head, without_step

if TYPE_CHECKING:
    from rooflens.model.catalogue import Key
    from rooflens.model.program.grouping import GroupedBy
    from rooflens.model.program.parts import Subject

SHOWN = 10
"""Kernels of each list that a terminal and Markdown show; pages and data hold all."""

_KERNELS_ON_PAGE = 500
"""Kernels that a page lists."""

_OPERATORS_NAMED = 5

_NO_GPU = "GPU not named (`--gpu NAME` names it)"

_WON = 3
"""Operators that the answer names."""

_KINDS: Mapping[str, bool] = {"compute kernel": False, "communication kernel": True}
"""What kernels are counted apart: whether they wait for other GPUs."""

_OF_HEADS = {
    "on one scale": "share",
    **dict.fromkeys(SHARES, "share"),
    "from": "module",
    "class": "bound",
    "bytes": "moved_bytes",
    "to win": "gain_ns",
}
"""Heads of the table whose cell is made of several keys, or that have another name -> the one asked for."""


class _List(Struct, frozen=True):
    """A part of the one list: its title, and what those rows that are not shown have in common."""

    title: str
    rest: str
    kernels: list[ProgramKernel]


def traces_document(
    programs: Sequence[Program],
    top: int | None = None,
    columns: Sequence[str] = (),
    *,
    brief: bool = False,
    by: GroupedBy | None = None,
) -> Document:
    """Say what the kernels of timelines take, what can be won, and what to do next; several are one program.

    Args:
        programs: One or more timelines.
        top: Kernels of each list that are shown; by default the first 10 in texts, and all on pages.
        columns: Keys of a kernel in the JSON, or heads of the table, to show instead of its usual columns.
        brief: Leave out what only pages show.
        by: Sum kernels up by this, in place of the lists of kernels.

    Raises:
        UnknownNameError: There is no such column.
    """
    chosen = {name.casefold(): _key_named(name) for name in columns}
    return tuple(_document_blocks(programs, top or SHOWN, chosen, brief=brief, by=by))


def heading(programs: Sequence[Program]) -> tuple[str, list[str], str]:
    """Give the title of the page, facts below it, and how many traces a generator wrote."""
    gpus = dict.fromkeys(program.gpu or "GPU not named" for program in programs)
    named = [file_name(program) for program in programs]
    title = named[0] if len(named) == 1 else count(len(named), "trace")
    written = sum(program.is_synthetic for program in programs)
    synthetic = f"{count(written, 'trace')} written by a generator, not recorded on a GPU." if written else ""
    measured = len({one.name for program in programs for one in program.every if one.measured is not None})
    counters = f"counters of {count(measured, 'kernel')}" if measured else "no counters"
    return title, [*gpus, f"{'traces' if len(named) > 1 else 'a trace'}, {counters}"], synthetic


def _document_blocks(
    programs: Sequence[Program], top: int, keys: Mapping[str, Key], *, brief: bool, by: GroupedBy | None
) -> Iterator[Block]:
    """Yield what there is to say, the answer first."""
    whole = joined(programs)
    names = {name: cut(short) for name, short in short_names(one.name for one in whole.every).items()}
    yield Paragraph(tuple(_answer(whole)), "answer")
    if doubts := [*_doubts(whole)]:
        yield Paragraph(tuple(doubts), "warning")
    yield paragraph(*_program_facts(whole))
    yield from ranks_blocks(whole, names)
    if by is None and not brief:
        yield from next_blocks(whole)
        yield from _page_blocks(whole, names)
    sections: dict[Subject, Iterable[Block]] = {
        "kernels": chain(
            _kernels_blocks(whole, names, (top, keys, by), brief=brief),
            _elsewhere(whole),
        ),
        "communication": communication_blocks(whole, top),
        "idle": chain(idle_blocks(whole, top), _stretches(programs, names)),
    }
    # What takes most stands first; what takes no time, as printed summaries tell of none, keeps its place.
    for subject in dict.fromkeys((*whole.parts.ranked, *sections)):
        yield from sections.get(subject, ())
    yield from beside_kernels(programs)
    yield from fusion_blocks(programs)
    if brief or by is not None:
        yield from next_blocks(whole)
    if notes := _notes(programs):
        yield Paragraph(tuple(f"note: {note}" for note in notes), "note")
    if whole.every:
        yield Paragraph(tuple(_legend(whole)), "note")


def _kernels_blocks(
    whole: Joined, names: Mapping[str, str], how: tuple[int, Mapping[str, Key], GroupedBy | None], *, brief: bool
) -> Iterator[Block]:
    """List the kernels, or the operators, modules or shapes that they are grouped by."""
    top, keys, by = how
    if by is not None:
        yield groups_table(whole, by, names, top)
    else:
        tables = tuple(_kernels_table(whole, part, (top, keys), names) for part in _lists(whole))
        if brief:
            yield from tables
        else:
            # A page has them in the table by operator; columns that were asked for it has in a table of their own.
            yield OnPage((Folded("All kernels", tables),) if keys else (), on_text=tables)
            yield from modules_on_page(whole, names)


def _page_blocks(whole: Joined, names: Mapping[str, str]) -> Iterator[Block]:
    """Yield what only pages show: where the time goes, what to look at first, and beside it the roofline."""
    from rooflens.report.program import charts  # noqa: PLC0415 - terminals draw nothing

    sides = sides_of_ranks(whole)
    others = len(whole.programs) - len(sides)
    yield from lanes_block(sides, names, f"Not drawn: {count(others, 'trace')}." if sides and others else "")
    yield from by_operator(whole, names, sides)
    beside = (
        charts.opportunities(whole, names, move_words, from_words),
        charts.roofline(whole, names),
    )
    if any(beside):
        yield Columns(tuple((block,) for block in beside if block is not None))


def _answer(whole: Joined) -> Iterator[Words]:
    """Say where the time goes, the largest part first, how long steps take, and which operators are above floors."""
    if headline := headline_of(whole):
        yield headline
        yield parts_line(whole)
        if line := steps_line(whole):
            yield line
    else:
        yield from _communication(whole)
    known = listed_kernels(whole).known
    won_ns = sum(one.gain_ns or 0.0 for one in known)
    if known and won_ns >= LEAST_PART * whole.time_ns:
        yield _won_of_operators(known, won_ns)


def _doubts(whole: Joined) -> Iterator[Words]:
    """Say what makes the answer unsure."""
    for program in whole.programs:
        if program.may_be_sample and program.calls_share:
            of = f"{file_name(program)} " if len(whole.programs) > 1 else "The trace "
            held = f"it holds 1 in {1 / program.calls_share:.0f} of the calls that CUDA counted"
            yield f"{of}may be a sample: {held}. What it lacks shows as idle."


def _communication(whole: Joined) -> Iterator[Words]:
    """Say how long communication takes where nothing tells what ran beside it."""
    time_ns = sum(one.communication.time_ns for one in whole.programs if one.communication)
    if whole.time_ns and time_ns >= LEAST_PART * whole.time_ns:
        yield f"Communication takes {percent(time_ns / whole.time_ns)} of the kernel time, {duration(time_ns)}."


def _won_of_operators(kernels: Sequence[ProgramKernel], won_ns: float) -> tuple[str | Span, ...]:
    """Add up by operator what can be won."""
    won: Counter[str] = Counter()
    for one in kernels:
        won[one.operator or ""] += round(one.gain_ns or 0.0)
    of_each: list[Words] = [
        (code(cut(name)) if name else Span("no operator"), f" {duration(time_ns)}")
        for name, time_ns in won.most_common(_WON)
    ]
    more = f" and {count(len(won) - _WON, 'operator')} more" if len(won) > _WON else ""
    all_ns = f", {duration(won_ns)} in all" if len(won) > 1 else ""
    return (
        "To save at most, above the floor that FLOPs and bytes set: ",
        *joined_words(", ", of_each),
        f"{more}{all_ns}.",
    )


def _program_facts(whole: Joined) -> Iterator[Words]:
    """Say what was recorded, and which part of it is shown."""
    gpus = dict.fromkeys(program.gpu or _NO_GPU for program in whole.programs)
    overlap_ns = sum(program.unprofiled.overlap_ns or 0 for program in whole.programs)
    overlap = "; those that run at once count in full" if overlap_ns >= LEAST_PART * whole.time_ns else ""
    several = f"{count(len(whole.programs), 'trace')}, " if len(whole.programs) > 1 else ""
    kinds = {noun: [one for one in whole.every if one.is_communication is waits] for noun, waits in _KINDS.items()}
    counted = [
        f"{count(len({one.name for one in rows}), noun)} in {count(sum(one.count for one in rows), 'launch')}, "
        f"{duration(sum(one.time_ns for one in rows))}"
        for noun, rows in kinds.items()
        if rows
    ]
    yield f"{', '.join(gpus)}: {several}{'; '.join(counted)}{overlap}."
    if len(whole.kernels) < len(whole.every):
        share = percent(sum(one.share or 0.0 for one in whole.kernels))
        yield f"Shown: {len(whole.kernels):,} of {count(len(whole.every), 'row')}, {share} {share_head(whole)}."


def _lists(whole: Joined) -> Iterator[_List]:
    """Title the parts of the one list."""
    known, unknown, rest = listed_kernels(whole)
    if known:
        yield _List("To win, most first", " with less to win", known)
    if unknown:
        yield _List("No known floor, by time", " with less time", unknown)
    if not known and not unknown:
        yield _List("Nothing to win that is known, by time", " with less time", rest)


def _kernels_table(whole: Joined, part: _List, how: tuple[int, Mapping[str, Key]], names: Mapping[str, str]) -> Table:
    kernels, title, amount = part.kernels[:_KERNELS_ON_PAGE], part.title, len(part.kernels)
    (top, keys), columns = how, kernel_columns(whole)
    if keys:
        columns = (columns[0], *starmap(_chosen_column, keys.items()))
        cells = tuple((code(names[one.name]), *(_chosen_cell(key, one) for key in keys.values())) for one in kernels)
        return Table(columns, cells, title, shown=top, amount=amount, rest=part.rest)
    longest = max((one.share or 0.0 for one in kernels), default=0.0) or 1.0
    rows = tuple(tuple(kernel_cells(one, names[one.name], longest).values()) for one in kernels)
    table = Table(columns, rows, title, shown=top, amount=amount, rest=part.rest)
    return table.without_empty(MISSING)


def _key_named(name: str) -> Key:
    """Find a key of a kernel by its name, or by the head that the table has for it, in capitals or not."""
    from rooflens.model.catalogue import PROGRAM_KERNEL  # noqa: PLC0415 - only where columns are chosen

    known = {key.name: key for key in PROGRAM_KERNEL.keys if key.shape.cell is not None}
    asked = name.casefold()
    heads = {
        **{key.removesuffix("_ns").replace("_", " "): key for key in known},
        "launches": "count",
        "a launch": "launch_ns",
    }
    heads |= _OF_HEADS
    found = known.get(asked) or known.get(heads.get(asked, ""))
    if found is None:
        raise UnknownNameError("column", name, list(known), synonyms=heads)
    return found


def _chosen_column(asked: str, key: Key) -> Column:
    is_number = bool(key.unit)
    return Column(asked.removesuffix("_ns").replace("_", " "), right=is_number, fit="keep" if is_number else "end")


def _chosen_cell(key: Key, kernel: ProgramKernel) -> Words:
    value: Any = key.shape.json(key.take(kernel))
    if value is None:
        return "-"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return quantity(value, key.unit)
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "-"
    return Span(cut(str(value)), "literal")


def _elsewhere(whole: Joined) -> Iterator[Block]:
    """Say what stands in no list: kernels at their floor, and operators of which no floor is known."""
    lines: list[Words] = []
    at_floor = [one for one in whole.kernels if one.by == "floor"]
    if at_floor:
        share = f"{percent(sum(one.share or 0.0 for one in at_floor))} {share_head(whole)}"
        lines.append(f"Nothing to win in {count(len(at_floor), 'row')} at the floor or as short as a launch: {share}.")
    unknown = unknown_operators(whole.every)
    if unknown and any(one.floor_ns is not None for one in whole.every):
        operators: list[Words] = [
            (code(cut(one.name)) if one.name else "kernels without an operator", f" ({percent(one.share)})")
            for one in unknown
        ]
        lines.append(("No floor is known of ", *few(operators, _OPERATORS_NAMED), "."))
    yield paragraph(*lines)


def _stretches(programs: Sequence[Program], names: Mapping[str, str]) -> Iterator[Block]:
    """Say where launches came too late one after the other; of several, in the one with most such time."""
    program = max(programs, key=lambda one: sum(each.gap_ns for each in one.stretches))
    if not program.stretches:
        return
    idle_ns = sum(one.gap_ns for one in program.stretches)
    wall_ns = sum(one.wall_ns for one in program.stretches)
    stretches = count(len(program.stretches), "stretch")
    launches = count(sum(one.count for one in program.stretches), "launch")
    of = f" in {file_name(program)}" if len(programs) > 1 else ""
    words = (
        f"Launch-bound{of}: {stretches} with {launches}, idle for {duration(idle_ns)} of {duration(wall_ns)}; longest ",
        *_stretch(program.stretches[0], names),
        ".",
    )
    yield paragraph(words)


def _stretch(stretch: Stretch, names: Mapping[str, str]) -> tuple[str | Span, ...]:
    where = stretch.module or without_step(stretch.nvtx_range)
    return (
        f"{duration(stretch.wall_ns)} from {duration(stretch.start_ns)} on",
        *((" in ", code(cut(where))) if where else ()),
        ", from ",
        code(names[stretch.first]),
        " to ",
        code(names[stretch.last]),
    )


def _notes(programs: Sequence[Program]) -> list[str]:
    """List the notes of all timelines, each once; one that is not of all has its timelines before it."""
    whose: dict[str, list[Program]] = {}
    for program in programs:
        for note in dict.fromkeys(program.notes):
            whose.setdefault(note, []).append(program)
    return [
        note if len(own) == len(programs) else f"{file_name(own[0])}{_more(len(own) - 1)}: {note}"
        for note, own in whose.items()
    ]


def _more(amount: int) -> str:
    return f" and {amount} more" if amount else ""


def _legend(whole: Joined) -> Iterator[Words]:
    yield heads_note(share_head(whole))
    if any(one.floor_ns is not None for one in whole.kernels):
        yield heads_note("floor", "to win", "class")
