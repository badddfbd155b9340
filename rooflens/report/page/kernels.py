"""The list of kernels: a row for each, its columns, and what opens below it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.catalogue import KernelQuantity, kernel_quantities, quantities
from rooflens.model.records import Analysis
from rooflens.model.roofline.standing import standing
from rooflens.model.roofline.unit_names import bottleneck_words, resource_label
from rooflens.model.roofline.work import Unit, main_work
from rooflens.model.summary import KernelSummary, Launch, cautions, known_sum
from rooflens.model.verdict_classes import ShownClass
from rooflens.report.content import Content
from rooflens.report.page.cards import Card, cards
from rooflens.report.templates import render
from rooflens.report.words.gain_and_limit import TODAY, limit_cell
from rooflens.report.words.labels import UNITS
from rooflens.report.words.verdict import best_move

NAME_WIDTH = 72
TITLE_WIDTH = 400
LABEL_WIDTH = 28

BASIC = "Basic"
LIMIT = "verdict_limit_factor"
SETS = (BASIC, "Levels", "Launch", "Work")
"""Sets of columns in the order in which they are offered."""


class ValueCell(Struct, frozen=True):
    """One value of a row.

    Attributes:
        raw: What is sorted and exported; empty if it is missing.
        also: What is exported with it: the smaller end of a span, the name of a unit.
    """

    text: str
    raw: str = ""
    also: str = ""


class KernelColumn(Struct, frozen=True):
    """One column.

    Attributes:
        export: Its heading where raw values are exported: with the unit.
        also: Heading of what is exported with it; empty if that is nothing.
        hint: What the heading means, where it needs words.
        of: The set it is offered in.
        shown: Whether it is there from the start.
        quantity: What the catalogue gives it; None if the cells of a kernel are written together.
    """

    key: str
    label: str
    export: str
    quantity: KernelQuantity | None = None
    also: str = ""
    hint: str = ""
    of: str = BASIC
    shown: bool = True
    is_number: bool = True


def columns(*, gpus: int, reports: int) -> tuple[KernelColumn, ...]:
    """List the columns; GPU and report are there from the start where the page has several.

    Those that need more than a value are listed here; the others are the catalogue's that name a set of the page.
    """
    time, share, launches = (kernel_quantities()[name] for name in ("kernel_time_ns", "time_share", "kernel_launches"))
    own = (
        KernelColumn("name", "Kernel", "Kernel", is_number=False),
        KernelColumn("report", "Report", "Report", shown=reports > 1, is_number=False),
        KernelColumn("gpu", "GPU", "GPU", shown=gpus > 1, is_number=False),
        replace(_column(launches, shown=True), key="launches", quantity=None, also="Launches left by the filters"),
        replace(_column(time, shown=True), key="time", export="GPU time of all launches (ns)"),
        replace(
            _column(share, shown=True),
            key="share",
            export="Share of GPU time (fraction)",
            hint="of the GPU time of this page, by verdict",
        ),
        KernelColumn("bound", "Verdict", "Verdict", is_number=False),
        KernelColumn("leader", "Busiest unit", "Share of its peak (fraction)", also="Busiest unit"),
        KernelColumn("roof", "Of its roof", "Rate over its roof (fraction)", hint=_ROOF_HINT),
        KernelColumn("cause", "Cause", "Cause", shown=False, is_number=False),
        KernelColumn("move", "First move", "First move", shown=False, is_number=False),
    )
    rest = (one for one in kernel_quantities().values() if one.key.page and one not in (time, share, launches))
    made = {one.name: _column(one, shown=one.key.page == BASIC) for one in rest}
    limit = made[LIMIT]
    made[limit.key] = replace(limit, quantity=None, hint=f"{limit.hint}; {TODAY}; far: over 10x")
    return *own, *made.values()


def _column(quantity: KernelQuantity, *, shown: bool) -> KernelColumn:
    """Make the column of a quantity: of launches that differ in how they were launched it shows the span."""
    key, is_number = quantity.key, quantity.kind in {"real", "count"}
    unit = {"": "", "share": " (fraction)"}.get(key.unit, f" ({key.unit})")
    spans = key.page == "Launch"
    return KernelColumn(
        key=quantity.name,
        label=quantity.label,
        export=f"{quantity.label}, most{unit}" if spans else f"{quantity.label}{unit}",
        quantity=quantity,
        also=f"{quantity.label}, least{unit}" if spans else "",
        hint=key.meaning,
        of=key.page,
        shown=shown,
        is_number=is_number,
    )


def written(group: KernelSummary, label: str, offered: Iterable[KernelColumn]) -> list[ValueCell]:
    """Write the cells of a kernel; `label` is what sets its report apart."""
    analysis, verdict = group.analysis, group.analysis.verdict
    unit, gpu, busiest = main_work(analysis).unit, group.gpu, verdict.bottleneck
    at = standing(analysis)
    words = "failed" if group.is_failed else verdict.shown_class
    own = {
        "name": ValueCell(fmt.cut_middle(group.shown, NAME_WIDTH), fmt.cut_middle(group.name, TITLE_WIDTH)),
        "report": ValueCell(fmt.cut_middle(label, LABEL_WIDTH), label),
        # All GPUs share the maker's name.
        "gpu": ValueCell(gpu.removeprefix("NVIDIA ").removeprefix("GeForce "), gpu),
        "launches": ValueCell(f"{group.launch_count:,}", str(group.launch_count), str(group.launch_count)),
        "bound": ValueCell(words, words),
        "leader": ValueCell(fmt.MISSING)
        if busiest is None
        else ValueCell(bottleneck_words(busiest, gpu), _raw(busiest.share), resource_label(busiest.resource, gpu)),
        "roof": _number_cell(at.share if at else None, fmt.percent),
        "cause": _text_cell("" if group.is_failed else verdict.cause or ""),
        "move": _text_cell("" if group.is_failed else best_move(group.analysis)),
        LIMIT: ValueCell(
            limit_cell(verdict.limit), "" if verdict.limit.over_floor is None else _raw(verdict.limit.over_floor)
        ),
    }
    cells = []
    for column in offered:
        one = column.quantity
        if one is None:
            cells.append(own[column.key])
        elif column.of == "Launch":
            cells.append(_span_cell(one, [_of_launch(one.name)(launch.analysis) for launch in group.launches]))
        else:
            cells.append(
                _quantity_cell(one, None if group.is_failed and one.kind == "real" else one.value(group), unit)
            )
    return cells


def _text_cell(text: str) -> ValueCell:
    return ValueCell(text or fmt.MISSING, text)


@cache
def _of_launch(name: str) -> Callable[[Analysis], Any]:
    """Find what reads a quantity of a launch: that of its kernel reads the median."""
    return next(known.value for known in quantities() if known.name == name)


def _quantity_cell(quantity: KernelQuantity, value: Any, work: Unit) -> ValueCell:
    if value is None:
        return ValueCell(fmt.MISSING)
    if quantity.kind not in {"real", "count"}:
        return ValueCell(str(value), str(value))
    unit = quantity.key.unit
    if unit.endswith("op/B"):
        return intensity_cell(value, work)
    own = {"FLOP or op": UNITS[work], "FLOP/s or op/s": f"{UNITS[work]}/s"}
    text = fmt.si(value, own[unit]) if unit in own and value else fmt.quantity(value, unit if value else "")
    return ValueCell(text, _raw(value))


def _span_cell(quantity: KernelQuantity, values: Sequence[Any]) -> ValueCell:
    """Write what differs between launches from the least to the most; nothing if a launch lacks it."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return ValueCell(fmt.MISSING)
    least, most = min(known), max(known)
    bare = partial(fmt.quantity, unit=quantity.key.unit if quantity.key.unit in {"B", "share"} else "")
    return ValueCell(fmt.span(bare(least), bare(most)), _raw(most), _raw(least))


def filled(
    offered: Iterable[KernelColumn], rows: Sequence[Sequence[ValueCell]]
) -> list[tuple[KernelColumn, list[ValueCell]]]:
    """Set the cells of all kernels in columns, and leave out those in which no kernel of the page has a value."""
    every = [(column, [cells[at] for cells in rows]) for at, column in enumerate(offered)]
    return [
        (column, cells) for column, cells in every if column.key in _FIXED_COLUMNS or any(cell.raw for cell in cells)
    ]


_FIXED_COLUMNS = frozenset({"name", "launches", "time", "bound"})
"""Columns that a list has even where they are empty."""

_ROOF_HINT = "achieved rate over what it is measured against in the roofline: a roof, or what is full before it"


def intensity_cell(per_byte: float | None, unit: Unit) -> ValueCell:
    """Write an intensity, with its unit where that is not FLOP per byte."""
    return _number_cell(per_byte, fmt.bare_intensity if unit == "FLOP" else lambda v: fmt.intensity(v, UNITS[unit]))


def _number_cell(value: float | None, write: Callable[[float], str]) -> ValueCell:
    return ValueCell(fmt.MISSING) if value is None else ValueCell(write(value), _raw(value))


def _raw(value: float) -> str:
    """Write a number with more digits than any counter has."""
    return f"{value:.9g}"


def time_parts(class_ns: Mapping[ShownClass, float], share: float | None, longest: float) -> list[tuple[str, float]]:
    """Part the bar of a kernel by verdict: widths as fractions of the longest kernel's share of the time."""
    total_ns = known_sum(class_ns.values())
    if not total_ns or not share:
        return []
    return [(bound, share / longest * ns / total_ns) for bound, ns in class_ns.items()]


MAX_LAUNCHES = 50
"""Launches of a kernel that are listed: the longest ones."""


class LaunchLine(Struct, frozen=True):
    """One launch with the words of its cells."""

    launch: Launch
    has_card: bool
    bottleneck: str
    intensity: ValueCell
    grid: str


class KernelLaunches(Struct, frozen=True):
    """The launches of a kernel.

    Attributes:
        more: How many are not listed.
        added_up: One of them stands for several launches of the program.
        has_intensity: One of those listed has an intensity.
    """

    lines: tuple[LaunchLine, ...]
    more: int
    added_up: bool
    has_intensity: bool


def launches(every: Sequence[Launch], cards: Collection[str]) -> KernelLaunches:
    """List the launches of a kernel.

    Args:
        every: All of them, in order of falling time.
        cards: Keys of the launches that have a card.
    """
    lines = tuple(_launch_line(launch, has_card=launch.key in cards) for launch in every[:MAX_LAUNCHES])
    return KernelLaunches(
        lines=lines,
        more=sum(launch.analysis.launches for launch in every[MAX_LAUNCHES:]),
        added_up=any(launch.analysis.launches > 1 for launch in every),
        has_intensity=any(line.intensity.raw for line in lines),
    )


def _launch_line(launch: Launch, *, has_card: bool) -> LaunchLine:
    analysis, work = launch.analysis, main_work(launch.analysis)
    return LaunchLine(
        launch=launch,
        has_card=has_card,
        bottleneck=bottleneck_words(analysis.verdict.bottleneck, launch.gpu, missing=fmt.MISSING),
        intensity=intensity_cell(work.intensity(analysis.levels["dram"]), work.unit),
        grid=f"{prod(analysis.kernel.grid):,}" if analysis.kernel.grid else fmt.MISSING,
    )


class KernelTableRow(Struct, frozen=True):
    """One kernel with its cells, and what opens below it.

    Attributes:
        key: Of the kernel; `median` is that of the launch that represents it.
        keys: Keys of its launches that the page draws.
        cells: The text of the columns that are shown from the start.
        flags: Those that change the verdict of any of its launches.
        parts: Its time by verdict, as fractions of the longest kernel's.
        cards: The card of its worst launch first.
    """

    key: str
    median: str
    keys: str
    is_failed: bool
    launch_count: int
    cells: tuple[tuple[KernelColumn, ValueCell], ...]
    flags: tuple[str, ...]
    at_roof: bool
    parts: Sequence[tuple[str, float]]
    cards: tuple[Card, ...]
    launches: KernelLaunches | None


def kernels(content: Content) -> Markup:
    """List the kernels in order of time, the failed ones last."""
    shown_cards = cards(content)
    longest = max((group.time_share or 0.0 for group in content.listed), default=0.0) or 1.0
    labels, every = content.report_labels, columns(gpus=len(content.gpus), reports=len(content.runs))
    listed = [written(one, labels.get(one.analysis.kernel.digest) or one.report, every) for one in content.listed]
    offered = filled(every, listed)
    shown = [(column, cells) for column, cells in offered if column.shown]
    waiting = [(place, column, cells) for place, (column, cells) in enumerate(offered) if not column.shown]
    rows = [
        _table_row(
            one, [(column, cells[i]) for column, cells in shown], shown_cards, longest, lists=not content.aggregated
        )
        for i, one in enumerate(content.listed)
    ]
    return render(
        "report/kernels",
        content=content,
        columns=[column for column, _ in shown],
        waiting=[(place, column) for place, column, _ in waiting],
        waiting_cells={one.key: [*map(_packed, cells)] for _, one, cells in waiting},
        sets=[(name, [column for column, _ in offered[1:] if column.of == name]) for name in SETS],
        rows=rows,
        alone=content.is_of_one,
        offers_intensity=any(column.key.endswith("_per_byte") for column, _ in offered),
        offers_unit=any(column.key == "leader" for column, _ in offered),
        uncarded=sum(not row.cards for row in rows),
    )


def _packed(cell: ValueCell) -> list[str]:
    """Write a cell of a column that waits: raw value, text, and what is exported with it where that differs."""
    if not cell.raw:
        return []
    also = "" if cell.also == cell.raw else cell.also
    return [cell.raw, fmt.unbroken(cell.text), *([also] if also else [])]


def _table_row(
    group: KernelSummary,
    cells: Sequence[tuple[KernelColumn, ValueCell]],
    shown_cards: Mapping[str, Card],
    longest: float,
    *,
    lists: bool,
) -> KernelTableRow:
    median = group.representative.key
    keys = (median, *(launch.key for launch in group.launches if launch.key != median))
    own = tuple(shown_cards[key] for key in keys if key in shown_cards)
    below = launches(group.launches, shown_cards.keys()) if lists and len(group.launches) > 1 else None
    return KernelTableRow(
        key=group.key,
        median=median,
        # Where one launch is drawn for all of its kernel, the scripts know no other.
        keys=" ".join(launch.key for launch in group.launches) if lists else median,
        is_failed=group.is_failed,
        launch_count=group.launch_count,
        cells=tuple(cells),
        flags=tuple(sorted({flag for launch in group.launches for flag in cautions(launch.analysis)})),
        at_roof=group.analysis.verdict.at_roof,
        parts=time_parts(group.class_ns, group.time_share, longest),
        cards=own,
        launches=below,
    )
