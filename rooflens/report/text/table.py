"""The table of `analyze` on a terminal, and the same as Markdown: a line for each kernel, first what can win most."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.text import Text

from rooflens.format import (
    count,
    cut_end,
    cut_middle,
    cut_name,
    duration,
    factor,
    percent,
    plain_name,
    printable,
    si,
    significant,
)
from rooflens.model.records import ratio
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import by_stake, first_move, summarize
from rooflens.model.verdict.sentences import bottleneck_words, resource_label
from rooflens.report.labels import UNITS
from rooflens.report.text.markdown_parts import code_cell, prose
from rooflens.report.text.markdown_parts import table as markdown_table
from rooflens.report.text.terminal import new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from rooflens.model.bounds import Bound
    from rooflens.model.records import Analysis, Confidence
    from rooflens.model.roofline.work import MainWork
    from rooflens.model.summary import KernelSummary, Launch

_STYLES: dict[Bound, str] = {
    "memory": "blue",
    "compute": "red",
    "latency": "magenta",
    "overhead": "yellow",
    "balanced": "green",
    "unknown": "dim",
}
_MISSING = "-"
_DOUBT: dict[Confidence, str] = {"high": "", "medium": " ?", "low": " ??"}
LEGEND = (
    "most to win first; FLOPs of all types, under the roof of their mix; ? medium, ?? low confidence. How much faster "
    "at most: headroom, as written, with its busiest unit full; potential, with only the FLOPs and bytes it needs; "
    "by reuse, with all operands kept on chip as well"
)
"""Explains the table's order, marks and distances; printed below it."""

_NAME_MIN, _NAME_MAX = 12, 48
_NARROW, _NARROW_MOST = 120, 28
"""Below so many columns of width a cell has fewer characters: `latency: 0.21 warps ready ?` still stands whole."""
_NAME_BESIDE_MOVES = 28
_MOVE_MIN = 40
_MARKDOWN_NAME_MAX = 100
_GAP = 2
_NEVER = 10**6
"""The width of no terminal: such a column is for Markdown."""


class Column(Struct, frozen=True):
    """One column.

    Attributes:
        from_width: Least width of a terminal that shows it, whatever the rows hold.
        most: Most characters of a cell; the middle of longer ones is cut.
    """

    heading: str
    right: bool = False
    from_width: int = 0
    most: int = 32


COLUMNS = (
    Column("kernel", most=_NAME_MAX),
    Column("report", from_width=100, most=24),
    Column("time", right=True),
    Column("share", right=True, from_width=72),
    Column("AI at DRAM", right=True, from_width=180),
    Column("FLOP/s of roof", from_width=180),
    Column("busiest unit", from_width=_NEVER),
    Column("verdict", most=36),
    Column("headroom", right=True),
    Column("potential", right=True, from_width=72),
    Column("by reuse", right=True, from_width=100),
    Column("first move", from_width=140),
)
_NAME, _REPORT, _VERDICT, _MOVE = 0, 1, 7, 11
_RIGHT = frozenset(column.heading for column in COLUMNS if column.right)


class Row(Struct, frozen=True):
    """The cells of one kernel in the order of `COLUMNS`, and the class that colours its verdict.

    Attributes:
        launches: How many launches it stands for.
        analysis: The median one.
    """

    cells: tuple[str, ...]
    launches: int
    bound: Bound
    analysis: Analysis

    def name(self, width: int) -> str:
        """Write its name with its launches in so many characters: `gemm<128, 64> x12`."""
        times = f" x{self.launches:,}" if self.launches > 1 else ""
        return cut_name(self.cells[_NAME], max(width - len(times), 1)) + times


class Section(Struct, frozen=True):
    """The kernels of one GPU, first what can win most, failed ones last; shares are of the GPU time of the section.

    Attributes:
        heading: GPU, clock, kernels and their time, in words.
        columns: Positions in `COLUMNS` of those that say something here.
    """

    heading: str
    rows: tuple[Row, ...]
    columns: tuple[int, ...]

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """The record behind each row."""
        return tuple(row.analysis for row in self.rows)


def to_sections(kernels: Sequence[KernelSummary], top: int | None = None) -> list[Section]:
    """Make the rows of each GPU, the GPU with most time first.

    Args:
        kernels: Kernels or single launches, of any number of reports.
        top: Keep so many rows of each GPU.
    """
    gpus: defaultdict[str, list[KernelSummary]] = defaultdict(list)
    for kernel in kernels:
        gpus[kernel.analysis.kernel.gpu or "GPU not named in the report"].append(kernel)
    by_time = sorted(gpus.items(), key=lambda item: -_total_ns(item[1]))
    return [_section(gpu, members, top) for gpu, members in by_time]


def _total_ns(kernels: Sequence[KernelSummary]) -> float:
    return sum(kernel.duration_ns or 0.0 for kernel in kernels)


def _section(gpu: str, kernels: Sequence[KernelSummary], top: int | None) -> Section:
    total_ns = _total_ns(kernels)
    listed = by_stake(kernel for kernel in kernels if not kernel.is_failed)
    listed += [kernel for kernel in kernels if kernel.is_failed]
    several = len({kernel.analysis.kernel.digest for kernel in kernels}) > 1
    return Section(
        heading=_heading(gpu, kernels),
        rows=tuple(to_row(kernel, total_ns) for kernel in listed[:top]),
        columns=tuple(i for i in range(len(COLUMNS)) if several or i != _REPORT),
    )


def _heading(gpu: str, kernels: Sequence[KernelSummary]) -> str:
    sound = [kernel for kernel in kernels if not kernel.is_failed]
    names = len({(kernel.name, kernel.analysis.kernel.digest) for kernel in sound})
    launches = sum(kernel.launch_count for kernel in sound)
    failed = sum(len(kernel.launches) for kernel in kernels if kernel.is_failed)
    counted = count(names, "kernel") + (f", {count(launches, 'launch')}" if launches != names else "")
    counted += f", {count(failed, 'failed launch')}" if failed else ""
    clocks = [
        (launch.duration_ns or 0.0, hz)
        for kernel in sound
        for launch in kernel.launches
        if (hz := launch.analysis.kernel.counters.get("sm_clock_hz")) is not None
    ]
    clock = f", SM {si(max(clocks, key=itemgetter(0))[1], 'Hz')}" if clocks else ""
    total_ns = _total_ns(kernels)
    return f"{printable(gpu)}{clock}: {counted}" + (f", {duration(total_ns)} of GPU time" if total_ns else "")


def to_row(kernel: KernelSummary, total_ns: float) -> Row:
    """Write one kernel: the times of all its launches, and what is said of the median one.

    Args:
        kernel: Its launches.
        total_ns: The GPU time of which it has a share.
    """
    analysis = kernel.analysis
    share, distances = ratio(kernel.duration_ns, total_ns), analysis.verdict.distances
    work = main_work(analysis)
    intensity = work.intensity(analysis.levels["dram"])
    cells = (
        printable(plain_name(kernel.name)),
        printable(kernel.report),
        duration(kernel.duration_ns) if kernel.duration_ns is not None else _MISSING,
        percent(share) if share is not None else _MISSING,
        f"{significant(intensity)} {UNITS[work.unit]}/B" if intensity is not None else _MISSING,
        _achieved(kernel.representative, work),
        bottleneck_words(analysis.verdict.bottleneck, analysis.kernel.gpu, missing=_MISSING),
        printable(_verdict(analysis)),
        *(
            factor(distance) if distance is not None else _MISSING
            for distance in (distances.headroom, distances.potential, distances.potential_by_reuse)
        ),
        printable(first_move(analysis)),
    )
    return Row(cells, kernel.launch_count, analysis.verdict.bound, analysis)


def _achieved(launch: Launch, work: MainWork) -> str:
    """Write the achieved rate and the roof above the kernel at DRAM: min(peak, intensity x bandwidth).

    It counts FLOPs; operations of integer tensors, where these are the main work, have their unit.
    """
    if not work.per_s:
        return _MISSING
    dram = launch.analysis.levels["dram"]
    intensity = work.intensity(dram)
    slope = intensity * dram.peak_bytes_per_s if intensity and dram.peak_bytes_per_s else None
    roofs = [roof for roof in (work.peak_per_s, slope) if roof]
    is_float = work.unit == "FLOP"
    about = "~" if is_float and launch.estimated else ""
    unit = "" if is_float else f"{UNITS[work.unit]}/s"
    return about + (f"{si(work.per_s, '')} of {si(min(roofs), unit)}" if roofs else si(work.per_s, unit))


def _verdict(analysis: Analysis) -> str:
    """Write the class with what makes it so: `memory: L1 full`, `compute: FP64 70 %`, `latency: 0.40 warps ready`."""
    verdict, gpu = analysis.verdict, analysis.kernel.gpu
    if verdict.bound in {"memory", "compute", "balanced"}:
        full = verdict.at_roof and verdict.resource is not None
        why = f"{resource_label(verdict.resource, gpu)} full" if full else bottleneck_words(verdict.bottleneck, gpu)
        why = why.removeprefix("instruction ")
    else:
        why = _waits(analysis) if verdict.bound == "latency" else verdict.cause or ""
    doubt = "" if verdict.bound == "unknown" else _DOUBT[verdict.confidence]
    return f"{verdict.bound}: {why}{doubt}" if why else f"{verdict.bound}{doubt}"


def _waits(analysis: Analysis) -> str:
    """Say how few warps are ready per cycle and scheduler; where that is not counted, why they wait."""
    ready_warps = analysis.kernel.counters.get("eligible_warps_per_cycle")
    if ready_warps is not None:
        return f"{significant(ready_warps, 2)} warps ready"
    costing = (finding.title for finding in analysis.findings if finding.severity != "note")
    return analysis.verdict.cause or next(costing, "")


def to_table(section: Section, width: int) -> Table:
    """Make the table of one GPU for so many columns of width.

    Which columns there are depends on the width alone. No line wraps: names are cut in the middle, moves at their end.
    """
    shown = [i for i in section.columns if COLUMNS[i].from_width <= width]
    table = new_table([COLUMNS[i].heading for i in shown], right=_RIGHT, wrapping=frozenset(), padding=(0, _GAP, 0, 0))
    widths = _widths(section, shown, width)
    for row in section.rows:
        table.add_row(*(_cell(row, i, widths[i]) for i in shown))
    return table


def _widths(section: Section, shown: Sequence[int], width: int) -> dict[int, int]:
    """Share a width out: what every column needs, then the names, then what is left for the first move."""
    most = {i: min(COLUMNS[i].most, _NARROW_MOST if width < _NARROW else width) for i in shown}
    needed = {
        i: max(len(COLUMNS[i].heading), *(min(len(row.cells[i]), most[i]) for row in section.rows), 0) for i in shown
    }
    needed[_NAME] = max([_NAME_MIN, *(len(row.name(_NAME_MAX)) for row in section.rows)])
    rest = width - _GAP * (len(shown) - 1) - sum(needed[i] for i in shown if i not in {_NAME, _MOVE})
    if _MOVE in shown:
        needed[_NAME] = min(needed[_NAME], max(_NAME_BESIDE_MOVES, rest - _MOVE_MIN))
        needed[_MOVE] = max(rest - needed[_NAME], len(COLUMNS[_MOVE].heading))
    else:
        needed[_NAME] = max(_NAME_MIN, min(needed[_NAME], rest))
    return needed


def _cell(row: Row, i: int, width: int) -> Text:
    if i == _NAME:
        return Text(row.name(width))
    cut = cut_end if i == _MOVE else cut_middle
    return Text(cut(row.cells[i], width), style=_STYLES[row.bound] if i == _VERDICT else "")


def to_markdown(analyses: Sequence[Analysis], top: int | None = None) -> str:
    """Write the same tables as Markdown, with all of their columns; `top` as for `to_sections`."""
    lines = []
    for section in to_sections(summarize(analyses), top):
        rows = [
            (code_cell(row.name(_MARKDOWN_NAME_MAX)), *(prose(row.cells[i]) for i in section.columns if i != _NAME))
            for row in section.rows
        ]
        headings = [COLUMNS[i].heading for i in section.columns]
        lines += [f"**{prose(section.heading)}**", "", markdown_table(headings, rows, _RIGHT), ""]
    return "\n".join(lines)
