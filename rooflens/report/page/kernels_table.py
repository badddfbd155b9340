"""The kernels table: one row per launch that is drawn, sortable and searchable, a plain table without scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens import format as fmt
from rooflens.model.roofline.work import main_work
from rooflens.model.verdict.sentences import bottleneck_words
from rooflens.report.html.templates import render
from rooflens.report.labels import UNITS
from rooflens.report.page.cards.card import carded

if TYPE_CHECKING:
    from markupsafe import Markup

    from rooflens.model.launches import Launch
    from rooflens.model.roofline.work import MainWork
    from rooflens.report.content import Content

NAME_WIDTH = 72
TITLE_WIDTH = 400

LONG_FROM = 24
"""With more rows than this the table scrolls in a box of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """One launch with the words of its cells."""

    launch: Launch
    name: str
    title: str
    bottleneck: str
    has_card: bool
    work: MainWork
    work_unit: str

    @property
    def intensity(self) -> float | None:
        """Operations of the main work per byte at DRAM."""
        return self.work.intensity(self.launch.analysis.levels["dram"])


def kernels(content: Content) -> Markup:
    """List the launches in order of time."""
    with_card = {launch.key for launch in carded(content)}
    rows = [_row(launch, has_card=launch.key in with_card) for launch in content.launches]
    return render("report/kernels_table", content=content, rows=rows, mixed=len(content.gpus) > 1, long_from=LONG_FROM)


def _row(launch: Launch, *, has_card: bool) -> Row:
    work = main_work(launch.analysis)
    return Row(
        launch=launch,
        name=fmt.cut_middle(launch.shown, NAME_WIDTH),
        title=fmt.cut_middle(launch.name, TITLE_WIDTH),
        bottleneck=bottleneck_words(launch.bottleneck, launch.gpu, missing=fmt.MISSING),
        has_card=has_card,
        work=work,
        work_unit=UNITS[work.unit],
    )
