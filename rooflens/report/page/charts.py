"""The charts of the page: specifications, their selectors, and the table behind each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflens.report.html.embed import json_block
from rooflens.report.html.templates import render
from rooflens.report.page.time_chart import time_spec
from rooflens.report.plane.plane import plane
from rooflens.report.plane.viewport import CROWD
from rooflens.report.roofline.chart import default_level, roofline_spec
from rooflens.report.roofline.datasheet import datasheet_roofs
from rooflens.report.roofline.rows import LEVEL_MARKS, clock_text
from rooflens.report.summary import ranking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from rooflens.report.content import Content
    from rooflens.report.plane.plane import Plane

MAX_DATA_ROWS = 200
"""Rows of the table behind a chart; the kernels table and the JSON hold the rest."""


@dataclass(frozen=True, slots=True)
class RooflineFigure:
    """The roofline of one GPU, ready to be placed.

    Attributes:
        drawable: False when nothing in the plane or the strip can be placed.
    """

    key: str
    plane: Plane
    levels: tuple[tuple[str, str], ...]
    default_level: str
    drawable: bool

    @property
    def marks(self) -> str:
        """Explain the letters that tell the levels apart where all are shown; empty where points have none."""
        crowded = len({point.launch.key for point in self.plane.points}) > CROWD
        if crowded or len(self.levels) == 1:
            return ""
        return ", ".join(f"{LEVEL_MARKS[level]}: {label}" for level, label in self.levels)

    @property
    def caption(self) -> str:
        """Name GPU and clock."""
        clock = clock_text(self.plane.clocks_hz)
        return f"{self.plane.gpu}, SM {clock}" if clock else self.plane.gpu


def charts(content: Content) -> Markup:
    """Place the roofline of each GPU and the time by kernel side by side."""
    if not content.timed:
        return render("report/no_charts", content=content)
    ranks = {row.group.worst.key: row.rank for row in ranking(content)}
    gpus = dict.fromkeys(launch.gpu for launch in content.timed)
    figures = [_figure(f"roofline-{i}", content, gpu) for i, gpu in enumerate(gpus)]
    specs = {f.key: _spec(f, content, ranks) for f in figures if f.drawable}
    if content.total_ns:
        specs["time"] = time_spec(content)
    untimed = sum(not group.duration_ns for group in content.groups)
    blocks = [json_block(f"spec-{key}", spec) for key, spec in specs.items()]
    return render(
        "report/charts", content=content, figures=figures, blocks=blocks, max_rows=MAX_DATA_ROWS, untimed=untimed
    )


def _figure(key: str, content: Content, gpu: str) -> RooflineFigure:
    launches = [launch for launch in content.timed if launch.gpu == gpu]
    placed = plane(gpu, launches, content.report_labels)
    return RooflineFigure(
        key=key,
        plane=placed,
        levels=tuple((level, placed.level_names[level]) for level in placed.levels),
        default_level=default_level(placed),
        drawable=bool(placed.placed),
    )


def _spec(figure: RooflineFigure, content: Content, ranks: Mapping[str, int]) -> dict[str, Any]:
    keys = {point.launch.key for point in figure.plane.placed}
    picked = next((key for key in ranks if key in keys), next(iter(keys), ""))
    title = f"{figure.caption}: synthetic data" if content.synthetic else figure.caption
    return roofline_spec(figure.plane, title=title, picked=picked, ranks=ranks, datasheet=datasheet_roofs(figure.plane))
