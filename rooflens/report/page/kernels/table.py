"""The list of kernels: a row for each, sortable and searchable, whose card opens below it; plain text without scripts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rooflens.report.html.templates import render
from rooflens.report.page.cards.card import cards
from rooflens.report.page.kernels.columns import SETS, columns, longest_share, subject, time_parts
from rooflens.report.page.kernels.launches import launches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from rooflens.model.launches import Group
    from rooflens.report.content import Content
    from rooflens.report.page.cards.card import Cards
    from rooflens.report.page.kernels.columns import Cell, Column
    from rooflens.report.page.kernels.launches import Launches


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel with its cells, and what opens below it.

    Attributes:
        parts: Its time by verdict, as fractions of the longest kernel's.
        cards: The card of its worst launch first.
    """

    group: Group
    cells: tuple[Cell, ...]
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
        """Whether anything stands below it."""
        return bool(self.cards or self.launches)


def kernels(content: Content) -> Markup:
    """List the kernels in order of time, the failed ones last; columns without a value wait among those on offer."""
    written = cards(content)
    offered = columns(gpus=len(content.gpus), reports=len(content.runs))
    longest = longest_share(content.listed)
    rows = [_row(content, group, offered, written, longest) for group in content.listed]
    empty = {column.key for i, column in enumerate(offered) if not any(row.cells[i].raw for row in rows)}
    shown = [replace(column, shown=column.shown and column.key not in empty) for column in offered]
    return render(
        "report/kernels_table",
        content=content,
        columns=shown,
        sets=[(name, [column for column in shown[1:] if column.of == name]) for name in SETS],
        rows=rows,
        alone=len(rows) == 1 and content.other is None,
        has_gains=written.has_gains,
        common=written.common,
        uncarded=sum(not row.cards for row in rows),
    )


def _row(content: Content, group: Group, offered: Sequence[Column], written: Cards, longest: float) -> Row:
    label = content.report_labels.get(group.worst.analysis.kernel.digest) or group.report
    row = subject(group, label)
    keys = (group.worst.key, *(launch.key for launch in group.launches if launch is not group.worst))
    return Row(
        group=group,
        cells=tuple(column.cell(row) for column in offered),
        flags=row.flags,
        at_roof=row.mean.verdict.at_roof,
        parts=time_parts(group, longest),
        cards=tuple(written.by_launch[key] for key in keys if key in written.by_launch),
        launches=launches(group, written.by_launch.keys()),
    )
