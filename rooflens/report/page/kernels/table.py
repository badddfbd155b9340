"""The list of kernels: a row for each, sorted and filtered, whose card opens below it; plain text without scripts."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.summary import KernelSummary
from rooflens.report.content import Content
from rooflens.report.html.embed import json_block
from rooflens.report.html.templates import render
from rooflens.report.page.cards.card import Cards, cards
from rooflens.report.page.kernels.columns import (
    SETS,
    Cell,
    Column,
    Subject,
    columns,
    filled,
    longest_share,
    subject,
    time_parts,
)
from rooflens.report.page.kernels.launches import Launches, launches


class Row(Struct, frozen=True):
    """One kernel with its cells, and what opens below it.

    Attributes:
        cells: The text of the columns that are shown from the start.
        parts: Its time by verdict, as fractions of the longest kernel's.
        cards: The card of its worst launch first.
    """

    group: KernelSummary
    cells: tuple[tuple[Column, Cell], ...]
    flags: tuple[str, ...]
    at_roof: bool
    parts: Sequence[tuple[str, float]]
    cards: tuple[Markup, ...]
    launches: Launches | None

    @property
    def keys(self) -> str:
        """Keys of its launches."""
        return " ".join(launch.key for launch in self.group.launches)

    @property
    def opens(self) -> bool:
        """Whether anything is below it."""
        return bool(self.cards or self.launches)


def kernels(content: Content) -> Markup:
    """List the kernels in order of time, the failed ones last."""
    written = cards(content)
    longest = longest_share(content.listed)
    subjects = [_subject(content, group) for group in content.listed]
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


def _subject(content: Content, group: KernelSummary) -> Subject:
    label = content.report_labels.get(group.analysis.kernel.digest) or group.report
    return subject(group, label)


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
        cells=tuple(cells),
        flags=row.flags,
        at_roof=row.analysis.verdict.at_roof,
        parts=time_parts(group, longest),
        cards=tuple(written.by_launch[key] for key in keys if key in written.by_launch),
        launches=launches(group, written.by_launch.keys()) if lists else None,
    )
