"""The list of kernels: a row for each, its columns, and what opens below it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.catalogue import Quantity, kernel_quantities, quantities
from rooflens.model.records import Analysis
from rooflens.model.roofline.work import MainWork, Unit, main_work
from rooflens.model.summary import KernelSummary, Launch, known_sum
from rooflens.model.verdict.sentences import TODAY, bottleneck_words, limit_cell, resource_label
from rooflens.report.content import Content
from rooflens.report.html.embed import json_block
from rooflens.report.page.cards.card import Cards, cards
from rooflens.report.plane.plane import places
from rooflens.report.templates import render
from rooflens.report.words.labels import UNITS

NAME_WIDTH = 72
TITLE_WIDTH = 400
LABEL_WIDTH = 28

BASIC = "Basic"
SETS = (BASIC, "Levels", "Launch", "Work")
"""Sets of columns in the order in which they are offered."""


class Cell(Struct, frozen=True):
    """One value of a row.

    Attributes:
        raw: What is sorted and exported; empty where it is missing.
        also: What is exported with it: the smaller end of a span, the name of a unit.
    """

    text: str
    raw: str = ""
    also: str = ""


class Subject(Struct, frozen=True):
    """A kernel as the columns see it.

    Attributes:
        label: What sets its report apart.
    """

    group: KernelSummary
    label: str

    @property
    def analysis(self) -> Analysis:
        """Its median launch."""
        return self.group.analysis

    @property
    def failed(self) -> bool:
        """True where its launches failed while they were profiled."""
        return self.group.is_failed

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags that change the verdict of any of its launches."""
        return tuple(sorted({flag for launch in self.group.launches for flag in launch.cautions}))

    @property
    def work(self) -> MainWork:
        """Main work of the median launch."""
        return main_work(self.analysis)


class Column(Struct, frozen=True):
    """One column.

    Attributes:
        export: Its heading where raw values are exported: with the unit.
        also: Heading of what is exported with it; empty where that is nothing.
        hint: What the heading means, where it needs words.
        of: The set it is offered in.
        shown: Whether it is there from the start.
    """

    key: str
    label: str
    export: str
    cell: Callable[[Subject], Cell]
    also: str = ""
    hint: str = ""
    of: str = BASIC
    shown: bool = True
    is_number: bool = True


def columns(*, gpus: int, reports: int) -> tuple[Column, ...]:
    """List the columns; GPU and report are there from the start where the page has several.

    Those that need more than a value are listed here; the others are the catalogue's that name a set of the page.
    """
    time, share, launches = (kernel_quantities()[name] for name in ("kernel_time_ns", "time_share", "kernel_launches"))
    own = (
        Column("name", "Kernel", "Kernel", _name, is_number=False),
        Column("report", "Report", "Report", _report, shown=reports > 1, is_number=False),
        Column("gpu", "GPU", "GPU", _gpu, shown=gpus > 1, is_number=False),
        replace(_column(launches, shown=True), key="launches", cell=_launches, also="Launches left by the filters"),
        replace(_column(time, shown=True), key="time", export="GPU time of all launches (ns)"),
        replace(
            _column(share, shown=True),
            key="share",
            export="Share of GPU time (fraction)",
            hint="of the GPU time of this page, by verdict",
        ),
        Column("bound", "Verdict", "Verdict", _bound, is_number=False),
        Column("leader", "Busiest unit", "Share of its peak (fraction)", _leader, also="Busiest unit"),
        Column("roof", "Of its roof", "Rate over its lowest roof (fraction)", _roof, hint=_ROOF_HINT),
    )
    rest = (one for one in kernel_quantities().values() if one.key.page and one not in (time, share, launches))
    made = {one.name: _column(one, shown=one.key.page == BASIC) for one in rest}
    limit = made["verdict_limit_factor"]
    made[limit.key] = replace(limit, cell=_limit, hint=f"{limit.hint}; {TODAY}")
    return *own, *made.values()


def _column(one: Quantity, *, shown: bool) -> Column:
    """Make the column of a quantity: of launches that differ in how they were launched it shows the span."""
    key, is_number = one.key, one.kind in {"real", "count"}
    unit = {"": "", "share": " (fraction)"}.get(key.unit, f" ({key.unit})")
    spans = key.page == "Launch"
    return Column(
        key=one.name,
        label=one.label,
        export=f"{one.label}, most{unit}" if spans else f"{one.label}{unit}",
        cell=partial(_span if spans else _value, one),
        also=f"{one.label}, least{unit}" if spans else "",
        hint=key.meaning,
        of=key.page,
        shown=shown,
        is_number=is_number,
    )


def _value(one: Quantity, row: Subject) -> Cell:
    return _cell(one, None if row.failed and one.kind == "real" else one.value(row.group), row)


def _cell(one: Quantity, value: Any, row: Subject) -> Cell:
    if value is None:
        return Cell(fmt.MISSING)
    if one.kind not in {"real", "count"}:
        return Cell(str(value), str(value))
    unit = one.key.unit
    if unit.endswith("op/B"):
        return intensity_cell(value, row.work.unit)
    own = {"FLOP or op": UNITS[row.work.unit], "FLOP/s or op/s": f"{UNITS[row.work.unit]}/s"}
    text = fmt.si(value, own[unit]) if unit in own and value else fmt.quantity(value, unit if value else "")
    return Cell(text, _raw(value))


def _span(one: Quantity, row: Subject) -> Cell:
    """Write what differs between launches from the least to the most; nothing where a launch lacks it."""
    of_launch = next(known for known in quantities() if known.name == one.name)
    values = [of_launch.value(launch.analysis) for launch in row.group.launches]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Cell(fmt.MISSING)
    least, most = min(known), max(known)
    bare = partial(fmt.quantity, unit=one.key.unit if one.key.unit in {"B", "share"} else "")
    return Cell(fmt.span(bare(least), bare(most)), _raw(most), _raw(least))


def filled(offered: Iterable[Column], rows: Sequence[Subject]) -> list[tuple[Column, list[Cell]]]:
    """Work the cells of each column out, and leave out columns in which no kernel of the page has a value."""
    every = [(column, [column.cell(row) for row in rows]) for column in offered]
    return [(column, cells) for column, cells in every if column.key in _KEPT or any(cell.raw for cell in cells)]


_KEPT = frozenset({"name", "launches", "time", "bound"})
"""Columns that a list has even where they are empty."""

_ROOF_HINT = "achieved rate over the lowest roof above it, of any memory level or of its pipes"


def _name(row: Subject) -> Cell:
    return Cell(fmt.cut_middle(row.group.shown, NAME_WIDTH), fmt.cut_middle(row.group.name, TITLE_WIDTH))


def _report(row: Subject) -> Cell:
    return Cell(fmt.cut_middle(row.label, LABEL_WIDTH), row.label)


def _limit(row: Subject) -> Cell:
    limit = row.analysis.verdict.limit
    return Cell(limit_cell(limit), "" if limit.factor is None else _raw(limit.factor))


def _gpu(row: Subject) -> Cell:
    """Leave out the maker's name, which all GPUs share."""
    gpu = row.group.gpu
    return Cell(gpu.removeprefix("NVIDIA ").removeprefix("GeForce "), gpu)


def _launches(row: Subject) -> Cell:
    amount = row.group.launch_count
    return Cell(f"{amount:,}", str(amount), str(amount))


def _bound(row: Subject) -> Cell:
    words = "failed" if row.failed else row.analysis.verdict.shown_class
    return Cell(words, words)


def _leader(row: Subject) -> Cell:
    found = row.analysis.verdict.bottleneck
    if found is None:
        return Cell(fmt.MISSING)
    words = bottleneck_words(found, row.group.gpu)
    return Cell(words, _raw(found.share), resource_label(found.resource, row.group.gpu))


def _roof(row: Subject) -> Cell:
    """Set the rate against the lowest roof; a kernel without a place in the plane has none."""
    shares = [place.flop_per_s / place.roof_flop_per_s for place in places(row.analysis) if place.roof_flop_per_s]
    return _number(max(shares, default=None), fmt.percent)


def intensity_cell(per_byte: float | None, unit: Unit) -> Cell:
    """Write an intensity, with its unit where that is not FLOP per byte."""
    return _number(per_byte, fmt.bare_intensity if unit == "FLOP" else lambda v: fmt.intensity(v, UNITS[unit]))


def _number(value: float | None, write: Callable[[float], str]) -> Cell:
    return Cell(fmt.MISSING) if value is None else Cell(write(value), _raw(value))


def _raw(value: float) -> str:
    """Write a number with more digits than any counter has."""
    return f"{value:.9g}"


def longest_share(groups: Iterable[KernelSummary]) -> float:
    """Find the share of GPU time that the longest bar stands for; 1 where none is known."""
    return max((group.time_share or 0.0 for group in groups), default=0.0) or 1.0


def time_parts(group: KernelSummary, longest: float) -> list[tuple[str, float]]:
    """Part the bar of a kernel by verdict: widths as fractions of the longest bar."""
    total_ns = known_sum(group.class_ns.values())
    if not total_ns or not group.time_share:
        return []
    return [(bound, group.time_share / longest * ns / total_ns) for bound, ns in group.class_ns.items()]


MAX_LAUNCHES = 50
"""Launches of a kernel that are listed: the longest ones."""


class Line(Struct, frozen=True):
    """One launch with the words of its cells."""

    launch: Launch
    has_card: bool
    bottleneck: str
    intensity: Cell
    grid: str


class Launches(Struct, frozen=True):
    """The launches of a kernel.

    Attributes:
        more: How many are not listed.
        added_up: One of them stands for several launches of the program.
        has_intensity: One of those listed has an intensity.
    """

    lines: tuple[Line, ...]
    more: int
    added_up: bool
    has_intensity: bool


def launches(group: KernelSummary, cards: Collection[str]) -> Launches | None:
    """List the launches of a kernel; None where it has one.

    Args:
        group: The kernel.
        cards: Keys of the launches that have a card.
    """
    if len(group.launches) == 1:
        return None
    shown = group.launches[:MAX_LAUNCHES]
    lines = tuple(_line(launch, has_card=launch.key in cards) for launch in shown)
    return Launches(
        lines=lines,
        more=sum(launch.analysis.launches for launch in group.launches[MAX_LAUNCHES:]),
        added_up=any(launch.analysis.launches > 1 for launch in group.launches),
        has_intensity=any(line.intensity.raw for line in lines),
    )


def _line(launch: Launch, *, has_card: bool) -> Line:
    analysis, work = launch.analysis, main_work(launch.analysis)
    return Line(
        launch=launch,
        has_card=has_card,
        bottleneck=bottleneck_words(launch.bottleneck, launch.gpu, missing=fmt.MISSING),
        intensity=intensity_cell(work.intensity(analysis.levels["dram"]), work.unit),
        grid=f"{prod(analysis.kernel.grid):,}" if analysis.kernel.grid else fmt.MISSING,
    )


class Row(Struct, frozen=True):
    """One kernel with its cells, and what opens below it.

    Attributes:
        keys: Keys of its launches that the page draws.
        cells: The text of the columns that are shown from the start.
        parts: Its time by verdict, as fractions of the longest kernel's.
        cards: The card of its worst launch first.
    """

    group: KernelSummary
    keys: str
    cells: tuple[tuple[Column, Cell], ...]
    flags: tuple[str, ...]
    at_roof: bool
    parts: Sequence[tuple[str, float]]
    cards: tuple[Markup, ...]
    launches: Launches | None

    @property
    def opens(self) -> bool:
        """Whether anything is below it."""
        return bool(self.cards or self.launches)


def kernels(content: Content) -> Markup:
    """List the kernels in order of time, the failed ones last."""
    written = cards(content)
    longest = longest_share(content.listed)
    labels = content.report_labels
    subjects = [Subject(group, labels.get(group.analysis.kernel.digest) or group.report) for group in content.listed]
    offered = filled(columns(gpus=len(content.gpus), reports=len(content.runs)), subjects)
    shown = [(column, cells) for column, cells in offered if column.shown]
    waiting = [(place, column, cells) for place, (column, cells) in enumerate(offered) if not column.shown]
    rows = [
        _row(one, [(column, cells[i]) for column, cells in shown], written, longest, lists=not content.aggregated)
        for i, one in enumerate(subjects)
    ]
    return render(
        "report/kernels_table",
        content=content,
        columns=[column for column, _ in shown],
        waiting=[(place, column) for place, column, _ in waiting],
        waiting_cells=json_block("waiting-cells", {one.key: [*map(_packed, cells)] for _, one, cells in waiting}),
        sets=[(name, [column for column, _ in offered[1:] if column.of == name]) for name in SETS],
        rows=rows,
        alone=len(rows) == 1 and content.other is None,
        offers_intensity=any(column.key.endswith("_per_byte") for column, _ in offered),
        offers_unit=any(column.key == "leader" for column, _ in offered),
        has_gains=written.has_gains,
        common=written.common,
        texts=written.texts,
        uncarded=sum(not row.cards for row in rows),
    )


def _packed(cell: Cell) -> list[str]:
    """Write a cell of a column that waits: raw value, text, and what is exported with it where that differs."""
    if not cell.raw:
        return []
    also = "" if cell.also == cell.raw else cell.also
    return [cell.raw, fmt.unbroken(cell.text), *([also] if also else [])]


def _row(row: Subject, cells: Sequence[tuple[Column, Cell]], written: Cards, longest: float, *, lists: bool) -> Row:
    group = row.group
    keys = (
        group.representative.key,
        *(launch.key for launch in group.launches if launch.key != group.representative.key),
    )
    return Row(
        group=group,
        # Where one launch is drawn for all of its kernel, the scripts know no other.
        keys=" ".join(launch.key for launch in group.launches) if lists else group.representative.key,
        cells=tuple(cells),
        flags=row.flags,
        at_roof=row.analysis.verdict.at_roof,
        parts=time_parts(group, longest),
        cards=tuple(written.by_launch[key] for key in keys if key in written.by_launch),
        launches=launches(group, written.by_launch.keys()) if lists else None,
    )
