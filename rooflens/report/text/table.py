"""The table of `analyze` on a terminal, and the same as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from rooflens.format import cut_name, duration, percent, printable, si, significant
from rooflens.model.records import timed
from rooflens.model.verdict.sentences import bottleneck_words
from rooflens.report.text.markdown_parts import code_cell, prose
from rooflens.report.text.markdown_parts import table as markdown_table
from rooflens.report.text.terminal import new_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from rooflens.model.records import Analysis, Bound, Confidence

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
LEGEND = "? medium and ?? low confidence; headroom: speed-up left before the busiest unit is full"
"""Explains the table's marks; printed below it."""

_NAME_MIN, _NAME_MAX = 18, 48
_MARKDOWN_NAME_MAX = 100
_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and how soon it goes when a terminal is narrow (0 never goes)."""

    heading: str
    right: bool = False
    goes: int = 0


COLUMNS = (
    Column("kernel"),
    Column("time", right=True),
    Column("share", right=True, goes=2),
    Column("AI at DRAM", right=True, goes=3),
    Column("FLOP/s of roof", goes=4),
    Column("busiest unit", goes=1),
    Column("verdict"),
    Column("headroom", right=True),
)
_VERDICT = 6
_RIGHT = frozenset(column.heading for column in COLUMNS if column.right)


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one kernel in the order of `COLUMNS`, and the class that colours its verdict."""

    cells: tuple[str, ...]
    bound: Bound


@dataclass(frozen=True, slots=True)
class Section:
    """The kernels of one GPU, longest first; shares are of the GPU time of the section.

    Attributes:
        heading: GPU, clock, kernels and their time, in words.
        analyses: The record behind each row.
    """

    heading: str
    rows: tuple[Row, ...]
    analyses: tuple[Analysis, ...]


def by_time(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Sort by GPU time, longest first; those without a time come last."""
    return sorted(analyses, key=lambda analysis: -(analysis.gpu_time_ns or 0.0))


def to_sections(analyses: Sequence[Analysis], top: int | None = None) -> list[Section]:
    """Make the rows of each GPU, the GPU with most time first; `top` keeps so many of each."""
    gpus: dict[str, list[Analysis]] = {}
    for analysis in by_time(analyses):
        gpus.setdefault(analysis.kernel.gpu or "GPU not named in the report", []).append(analysis)
    return [_section(gpu, members, top) for gpu, members in gpus.items()]


def _section(gpu: str, analyses: Sequence[Analysis], top: int | None) -> Section:
    times_ns = [a.gpu_time_ns for a in timed(analyses) if a.gpu_time_ns]
    total_ns = sum(times_ns)
    launches = sum(analysis.launches for analysis in analyses)
    count = f"{launches} launch{'' if launches == 1 else 'es'}"
    clocks_hz = [a.kernel.counters["sm_clock_hz"] for a in analyses if "sm_clock_hz" in a.kernel.counters]
    clock = f", SM {si(max(clocks_hz), 'Hz')}" if clocks_hz else ""
    heading = f"{printable(gpu)}{clock}: {count}, {duration(total_ns)} of GPU time"
    shown = tuple(analyses[:top])
    return Section(heading, tuple(_row(analysis, total_ns) for analysis in shown), shown)


def _row(analysis: Analysis, total_ns: float) -> Row:
    kernel, verdict = analysis.kernel, analysis.verdict
    time_ns = analysis.gpu_time_ns
    intensity = analysis.levels["dram"].intensity_flop_per_byte
    cells = (
        printable(kernel.name) + (f" x{analysis.launches}" if analysis.launches > 1 else ""),
        duration(time_ns) if time_ns is not None else _MISSING,
        percent(time_ns / total_ns) if time_ns and total_ns else _MISSING,
        f"{significant(intensity)} FLOP/B" if intensity is not None else _MISSING,
        _achieved(analysis),
        bottleneck_words(verdict.bottleneck, kernel.gpu, missing=_MISSING),
        _verdict(analysis),
        f"{significant(verdict.distances.headroom, 2)}x" if verdict.distances.headroom is not None else _MISSING,
    )
    return Row(cells, verdict.bound)


def _achieved(analysis: Analysis) -> str:
    """Write achieved FLOP/s and the roof above the kernel at DRAM: min(peak, intensity x bandwidth)."""
    achieved, peak, level = analysis.flop_per_s, analysis.flop_peak_per_s, analysis.levels["dram"]
    if not achieved:
        return _MISSING
    intensity, bandwidth = level.intensity_flop_per_byte, level.peak_bytes_per_s
    slope = intensity * bandwidth if intensity and bandwidth else None
    roofs = [roof for roof in (peak, slope) if roof]
    about = "~" if "estimated" in analysis.flop_source.values() else ""
    return f"{about}{si(achieved, '')} of {si(min(roofs), '')}" if roofs else f"{about}{si(achieved, '')}"


def _verdict(analysis: Analysis) -> str:
    """Write class and cause on one line; a stall is told by what it waits for."""
    verdict = analysis.verdict
    cause = (verdict.cause or "").rpartition(": ")[2]
    words = f"{verdict.bound}, at the roof" if verdict.at_roof else verdict.bound
    doubt = "" if verdict.bound == "unknown" else _DOUBT[verdict.confidence]
    return f"{words}: {cause}{doubt}" if cause else f"{words}{doubt}"


def to_table(section: Section, width: int) -> Table:
    """Make the table of one GPU for so many columns of width.

    Long names are cut in the middle. Where even short names do not fit, whole columns go, those first that the page
    shows better; kernel, time, verdict and headroom stay.
    """
    widths = [
        max(len(column.heading), *(len(row.cells[i]) for row in section.rows), 0) for i, column in enumerate(COLUMNS)
    ]
    shown = _fitting(widths, width)
    rest = sum(widths[i] + _GAP for i in shown if i)
    name_width = max(_NAME_MIN, min(_NAME_MAX, width - rest, widths[0]))
    table = new_table(
        [COLUMNS[i].heading for i in shown], right=_RIGHT, wrapping={COLUMNS[_VERDICT].heading}, padding=(0, _GAP, 0, 0)
    )
    for row in section.rows:
        table.add_row(*_cells(row, shown, name_width))
    return table


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    shown = list(range(len(COLUMNS)))
    droppable = sorted((i for i in shown if COLUMNS[i].goes), key=lambda i: -COLUMNS[i].goes)
    for i in droppable:
        if _NAME_MIN + sum(widths[j] + _GAP for j in shown if j) <= width:
            break
        shown.remove(i)
    return shown


def _cells(row: Row, shown: Sequence[int], name_width: int) -> Iterator[Text]:
    for i in shown:
        if i == 0:
            yield Text(cut_name(row.cells[i], name_width))
        else:
            yield Text(row.cells[i], style=_STYLES[row.bound] if i == _VERDICT else "")


def to_markdown(analyses: Sequence[Analysis]) -> str:
    """Write the same tables as Markdown."""
    lines = []
    for section in to_sections(analyses):
        rows = [
            (code_cell(cut_name(row.cells[0], _MARKDOWN_NAME_MAX)), *map(prose, row.cells[1:])) for row in section.rows
        ]
        headings = [column.heading for column in COLUMNS]
        lines += [f"**{prose(section.heading)}**", "", markdown_table(headings, rows, _RIGHT), ""]
    return "\n".join(lines)
