"""The columns of the list: what each says of a kernel, as text and as the raw number that is sorted and exported."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.records import LEVELS
from rooflens.model.roofline.occupancy import find_occupancy
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import known_sum
from rooflens.model.verdict.sentences import bottleneck_words, resource_label
from rooflens.report.labels import UNITS
from rooflens.report.plane.plane import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflens.model.records import Analysis, Kernel, Level
    from rooflens.model.roofline.work import MainWork
    from rooflens.model.summary import KernelSummary

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
        also: What is exported beside it: the smaller end of a span, the name of a unit.
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

    @property
    def kernels(self) -> list[Kernel]:
        """Its launches as they were recorded."""
        return [launch.analysis.kernel for launch in self.group.launches]


class Column(Struct, frozen=True):
    """One column.

    Attributes:
        export: Its heading where raw values are exported: with the unit.
        also: Heading of what is exported beside it; empty where that is nothing.
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


def subject(group: KernelSummary, label: str) -> Subject:
    """Take a kernel for its row."""
    return Subject(group, label)


def columns(*, gpus: int, reports: int) -> tuple[Column, ...]:
    """List the columns; GPU and report are there from the start where the page has several."""
    return (
        Column("name", "Kernel", "Kernel", _name, is_number=False),
        Column("report", "Report", "Report", _report, shown=reports > 1, is_number=False),
        Column("gpu", "GPU", "GPU", _gpu, shown=gpus > 1, is_number=False),
        Column("launches", "Launches", "Launches", _launches, also="Launches left by the filters"),
        Column("time", "Time", "GPU time of all launches (ns)", _time),
        Column(
            "share", "Share", "Share of GPU time (fraction)", _share, hint="of the GPU time of this page, by verdict"
        ),
        Column("bound", "Verdict", "Verdict", _bound, is_number=False),
        Column("leader", "Busiest unit", "Share of its peak (fraction)", _leader, also="Busiest unit"),
        Column("roof", "Of its roof", "Rate over its lowest roof (fraction)", _roof, hint=_ROOF_HINT),
        Column("potential", "Potential", "Potential (factor)", _potential, hint=_POTENTIAL_HINT),
        Column("winnable", "Winnable", "Winnable GPU time (ns)", _winnable, hint=_WINNABLE_HINT),
        *(_intensity_column(level) for level in LEVELS),
        *(_level_column(level) for level in LEVELS),
        *_LAUNCH_COLUMNS,
        *_WORK_COLUMNS,
    )


def filled(offered: Iterable[Column], rows: Sequence[Subject]) -> list[tuple[Column, list[Cell]]]:
    """Work the cells of each column out, and leave out columns in which no kernel of the page has a value."""
    every = [(column, [column.cell(row) for row in rows]) for column in offered]
    return [(column, cells) for column, cells in every if column.key in _KEPT or any(cell.raw for cell in cells)]


_KEPT = frozenset({"name", "launches", "time", "bound"})
"""Columns that a list has even where they are empty."""

_ROOF_HINT = "achieved rate over the lowest roof above it, of any memory level or of its pipes"
_POTENTIAL_HINT = "upper bound of the speed-up if proven waste goes"
_WINNABLE_HINT = "GPU time above the floor, which its potential leads to"


def _name(row: Subject) -> Cell:
    return Cell(fmt.cut_middle(row.group.shown, NAME_WIDTH), fmt.cut_middle(row.group.name, TITLE_WIDTH))


def _report(row: Subject) -> Cell:
    return Cell(fmt.cut_middle(row.label, LABEL_WIDTH), row.label)


def _gpu(row: Subject) -> Cell:
    """Leave the maker out where it stands: there is one."""
    gpu = row.group.gpu
    return Cell(gpu.removeprefix("NVIDIA ").removeprefix("GeForce "), gpu)


def _launches(row: Subject) -> Cell:
    amount = row.group.launch_count
    return Cell(f"{amount:,}", str(amount), str(amount))


def _time(row: Subject) -> Cell:
    return _number(row.group.duration_ns, fmt.duration)


def _share(row: Subject) -> Cell:
    return _number(row.group.time_share, fmt.percent)


def _bound(row: Subject) -> Cell:
    words = "failed" if row.failed else row.analysis.verdict.bound
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


def _potential(row: Subject) -> Cell:
    return _number(row.analysis.verdict.distances.potential, fmt.factor)


def _winnable(row: Subject) -> Cell:
    return _number(row.group.winnable_ns, fmt.duration)


def _intensity_column(level: str) -> Column:
    name = resource_label(level)

    def cell(row: Subject) -> Cell:
        return intensity_cell(row.work, row.analysis.levels[level])

    return Column(f"ai-{level}", f"AI at {name}", f"AI at {name} (FLOP/B or OP/B)", cell, of="Levels", shown=False)


def _level_column(level: str) -> Column:
    name = resource_label(level)

    def cell(row: Subject) -> Cell:
        return _number(row.analysis.levels[level].share, fmt.percent)

    return Column(f"share-{level}", f"{name} busy", f"{name} share of peak (fraction)", cell, of="Levels", shown=False)


def intensity_cell(work: MainWork, level: Level) -> Cell:
    """Write an intensity, with its unit where that is not FLOP per byte."""
    value = work.intensity(level)
    return _number(value, fmt.bare_intensity if work.unit == "FLOP" else lambda v: fmt.intensity(v, UNITS[work.unit]))


def _occupancy(row: Subject) -> Cell:
    """Weigh the occupancy of the launches by their time; None where one of them lacks it."""
    rows = [(find_occupancy(a.kernel).achieved, a.gpu_time_ns) for a in (one.analysis for one in row.group.launches)]
    known = [(share, time_ns) for share, time_ns in rows if share is not None and time_ns]
    if len(known) < len(rows):
        return Cell(fmt.MISSING)
    total_ns = sum(time_ns for _, time_ns in known)
    return _number(sum(share * time_ns for share, time_ns in known) / total_ns, fmt.percent)


def _span(values: Iterable[float | None], write: Callable[[float], str]) -> Cell:
    """Write what differs between launches from the least to the most; None where a launch lacks it."""
    found = list(values)
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return Cell(fmt.MISSING)
    return Cell(fmt.span(write(min(known)), write(max(known))), _raw(max(known)), _raw(min(known)))


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def grid_cell(kernels: Iterable[Kernel]) -> Cell:
    """Write the blocks of a launch, as a span where launches differ."""
    return _span((None if k.grid is None else prod(k.grid) for k in kernels), _whole)


def _block(row: Subject) -> Cell:
    return _span((None if k.block is None else prod(k.block) for k in row.kernels), _whole)


def _registers(row: Subject) -> Cell:
    return _span((k.counters.get("registers_per_thread") for k in row.kernels), _whole)


def _shared_memory(row: Subject) -> Cell:
    return _span((k.counters.get("smem_per_block_bytes") for k in row.kernels), lambda value: fmt.si(value, "B"))


def _spanned(key: str, label: str, what: str, cell: Callable[[Subject], Cell], hint: str) -> Column:
    """Make a column of spans: both ends are exported."""
    also = f"{what.replace(' (', ', least (', 1)}"
    export = f"{what.replace(' (', ', most (', 1)}"
    return Column(key, label, export, cell, also=also, hint=hint, of="Launch", shown=False)


_LAUNCH_COLUMNS: Sequence[Column] = (
    Column("occupancy", "Occupancy", "Achieved occupancy (fraction)", _occupancy, hint="achieved, of the warp slots",
           of="Launch", shown=False),
    _spanned("registers", "Registers", "Registers (per thread)", _registers, "of a thread"),
    _spanned("grid", "Grid", "Grid (blocks)", lambda row: grid_cell(row.kernels), "blocks of a launch"),
    _spanned("block", "Block", "Block (threads)", _block, "threads of a block"),
    _spanned("smem", "Shared memory", "Shared memory (B per block)", _shared_memory, "of a block"),
)  # fmt: skip


def _rate(row: Subject) -> Cell:
    return _number(row.work.per_s, lambda value: fmt.si(value, f"{UNITS[row.work.unit]}/s") if value else "0")


def _total(row: Subject) -> Cell:
    return _number(row.group.work, lambda value: fmt.si(value, UNITS[row.work.unit]) if value else "0")


def _traffic(row: Subject) -> Cell:
    return _number(row.group.bytes_at("dram"), lambda value: fmt.si(value, "B"))


def _headroom(row: Subject) -> Cell:
    return _number(row.analysis.verdict.distances.headroom, fmt.factor)


def _unit(row: Subject) -> Cell:
    unit = "" if row.work.total is None else UNITS[row.work.unit]
    return Cell(unit or fmt.MISSING, unit)


_WORK_COLUMNS: Sequence[Column] = (
    Column("flops", "Achieved", "Achieved rate (FLOP/s or OP/s)", _rate, of="Work", shown=False),
    Column("flop", "Operations", "Operations of all launches (FLOP or OP)", _total, of="Work", shown=False),
    Column("unit", "Unit", "Unit of operations", _unit, of="Work", shown=False, is_number=False),
    Column("bytes", "DRAM traffic", "DRAM traffic of all launches (B)", _traffic, of="Work", shown=False),
    Column("headroom", "Headroom", "Headroom as written (factor)", _headroom, of="Work", shown=False,
           hint="speed-up as written, with its busiest unit at its peak"),
)  # fmt: skip


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
    total_ns = known_sum(group.bound_ns.values())
    if not total_ns or not group.time_share:
        return []
    return [(bound, group.time_share / longest * ns / total_ns) for bound, ns in group.bound_ns.items()]
