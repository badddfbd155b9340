"""The table of `analyze` on a terminal, and the same as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rooflens.model.records import shares_of
from rooflens.model.units import cut_middle, duration, percent, si, significant
from rooflens.model.words import resource_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.model.records import Analysis, Bound

_STYLES: dict[Bound, str] = {
    "memory": "blue",
    "compute": "red",
    "latency": "magenta",
    "overhead": "yellow",
    "balanced": "green",
    "unknown": "dim",
}
_MISSING = "-"
_NAME_MIN, _NAME_MAX = 14, 48
_OTHER_COLUMNS_WIDTH = 104
"""Width of all columns but the name, with their padding, at usual contents."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one kernel, as text."""

    name: str
    time: str
    time_share: str
    intensity: str
    achieved: str
    leader: str
    verdict: str
    headroom: str
    bound: Bound


HEADINGS = ("kernel", "time", "share", "AI at HBM", "FLOP/s of roof", "leader", "verdict", "headroom")


def by_time(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Sort by GPU time, longest first; those without a time come last."""
    return sorted(analyses, key=lambda analysis: -(analysis.kernel.duration_ns or 0.0))


def to_rows(analyses: Sequence[Analysis]) -> list[Row]:
    """Make the table's rows, sorted by time."""
    total_ns = sum(a.kernel.duration_ns or 0.0 for a in analyses if a.kernel.status != "failed")
    return [_row(analysis, total_ns) for analysis in by_time(analyses)]


def _row(analysis: Analysis, total_ns: float) -> Row:
    kernel, verdict = analysis.kernel, analysis.verdict
    time_ns = kernel.duration_ns
    intensity = analysis.levels["dram"].intensity_flop_per_byte
    return Row(
        name=_printable(kernel.name),
        time=duration(time_ns) if time_ns is not None else _MISSING,
        time_share=percent(time_ns / total_ns) if time_ns and total_ns else _MISSING,
        intensity=f"{significant(intensity)} FLOP/B" if intensity is not None else _MISSING,
        achieved=_achieved(analysis),
        leader=_leader(analysis),
        verdict=_verdict(analysis),
        headroom=f"{significant(verdict.headroom, 2)}x" if verdict.headroom is not None else _MISSING,
        bound=verdict.bound,
    )


def _printable(text: str) -> str:
    """Replace control characters: text of a report must not steer the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _achieved(analysis: Analysis) -> str:
    """Write achieved FLOP/s and the roof above the kernel at HBM: min(peak, intensity x bandwidth)."""
    achieved, peak, level = analysis.flop_per_s, analysis.flop_peak_per_s, analysis.levels["dram"]
    if not achieved:
        return _MISSING
    slope = (
        level.intensity_flop_per_byte
        and level.peak_bytes_per_s
        and level.intensity_flop_per_byte * level.peak_bytes_per_s
    )
    roofs = [roof for roof in (peak, slope) if roof]
    about = "~" if "estimated" in analysis.flop_source.values() else ""
    return f"{about}{si(achieved, '')} of {si(min(roofs), '')}" if roofs else f"{about}{si(achieved, '')}"


def _leader(analysis: Analysis) -> str:
    """Name the resource with the largest share."""
    shares = shares_of(analysis.levels, analysis.pipes)
    if not shares:
        return _MISSING
    verdict = analysis.verdict
    name = verdict.resource if verdict.resource in shares else max(shares, key=lambda key: shares[key])
    return f"{resource_label(name)} {percent(1 / verdict.headroom if verdict.headroom else shares[name])}"


def _verdict(analysis: Analysis) -> str:
    verdict = analysis.verdict
    parts = [verdict.bound, *(["at the roof"] if verdict.at_roof else []), *([verdict.cause] if verdict.cause else [])]
    doubt = "" if verdict.confidence == "high" or verdict.bound == "unknown" else f" ({verdict.confidence} confidence)"
    return ", ".join(parts) + doubt


def to_table(analyses: Sequence[Analysis], width: int) -> Table:
    """Make the terminal table for so many columns of width; long names are cut in the middle."""
    name_width = max(_NAME_MIN, min(_NAME_MAX, width - _OTHER_COLUMNS_WIDTH))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in HEADINGS:
        right = heading in {"time", "share", "AI at HBM", "headroom"}
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading != "verdict")
    for row in to_rows(analyses):
        table.add_row(
            Text(cut_middle(row.name, name_width)),
            row.time,
            row.time_share,
            row.intensity,
            row.achieved,
            escape(row.leader),
            Text(row.verdict, style=_STYLES[row.bound]),
            row.headroom,
        )
    return table


def to_markdown(analyses: Sequence[Analysis]) -> str:
    """Write the same table as Markdown."""
    lines = [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
    for row in to_rows(analyses):
        cells = (row.name, row.time, row.time_share, row.intensity, row.achieved, row.leader, row.verdict, row.headroom)
        lines.append(f"| {' | '.join(_markdown_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _markdown_cell(text: str) -> str:
    """Keep report text from ending a cell or becoming HTML."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
