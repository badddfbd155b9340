"""The charts of the page: specifications, their selectors, and the table behind each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.summary import Launch
from rooflens.report.content import Content
from rooflens.report.html.embed import json_block
from rooflens.report.html.templates import render
from rooflens.report.page.time_chart import time_spec
from rooflens.report.plane.plane import Plane, plane
from rooflens.report.roofline.bars import NO_BYTES, NONE, UNCOUNTED, UNPLACED, reasons
from rooflens.report.roofline.boost import Boost, boost
from rooflens.report.roofline.chart import default_level, roofline_spec
from rooflens.report.roofline.datasheet import datasheet_roofs
from rooflens.report.roofline.rows import clock_text
from rooflens.report.summary import ranking

MAX_DATA_ROWS = 200
"""Rows of the table behind a chart; the kernels table and the JSON hold the rest."""

REASON_SENTENCES: Mapping[str, str] = {
    UNCOUNTED: (
        "The report has no FLOP counters, so these kernels have no arithmetic intensity and no place in a roofline. "
        "Both rooflens profile and ncu --set full collect them."
    ),
    NONE: "These kernels do no floating-point work, so they have no arithmetic intensity and no place in a roofline.",
    NO_BYTES: "FLOPs were counted and bytes were not, so these kernels have no arithmetic intensity.",
    UNPLACED: "These kernels have no arithmetic intensity at any level.",
}
"""Why a page without a plane has none."""


class RooflineFigure(Struct, frozen=True):
    """The roofline of one GPU, ready to be placed.

    Attributes:
        drawable: False when no launch has a point or a share.
    """

    key: str
    plane: Plane
    levels: tuple[tuple[str, str], ...]
    default_level: str
    drawable: bool

    @property
    def heading(self) -> str:
        """Name the picture: a roofline, or bars where no kernel has a point."""
        return "Memory levels" if self.drawable and not self.plane.points else "Roofline"

    @property
    def level_choices(self) -> tuple[tuple[str, str], ...]:
        """The levels that its points can be shown at; bars show all of them."""
        return self.levels if self.plane.points else ()

    @property
    def boost(self) -> Boost | None:
        """What the roofs would be at boost clock."""
        return boost(self.plane)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said below the chart: why kernels have no point, and what the profiled clock costs."""
        said = [REASON_SENTENCES[why] for why in reasons(self.plane) if not self.plane.points]
        if self.plane.unplaced:
            launches = fmt.count(self.plane.unplaced, "launch")
            said.append(f"{launches} without FLOPs or bandwidth shares cannot be placed; they are in the table.")
        found = self.boost
        return (*said, *((found.sentence,) if found and found.sentence else ()))

    @property
    def caption(self) -> str:
        """Name GPU and clock."""
        clock = clock_text(self.plane.clocks_hz)
        return f"{self.plane.gpu}, SM {clock}" if clock else self.plane.gpu


def roofline_figures(content: Content) -> tuple[RooflineFigure, ...]:
    """Place the launches of each GPU in the plane of its roofline.

    The GPU with the most time at stake comes first; those without a point in their plane stand behind all others.
    """
    launches: dict[str, list[Launch]] = {}
    for launch in content.timed:
        launches.setdefault(launch.gpu, []).append(launch)
    at_stake = {gpu: sum(launch.at_stake_ns for launch in those) for gpu, those in launches.items()}
    gpus = sorted(launches, key=at_stake.__getitem__, reverse=True)
    planes = sorted((plane(gpu, launches[gpu], content.report_labels) for gpu in gpus), key=lambda one: not one.points)
    return tuple(_figure(f"roofline-{i}", placed) for i, placed in enumerate(planes))


class Chart(Struct, frozen=True):
    """What is drawn of the roofline of one GPU.

    Attributes:
        picked: Key of the launch that is picked first; empty where there is none.
        ranks: Numbers of launches in the ranking, by key.
    """

    key: str
    plane: Plane
    title: str
    picked: str
    ranks: Mapping[str, int]


def chart(drawn: Chart) -> str:
    """Draw one roofline: the block that its specification is embedded in."""
    spec = roofline_spec(
        drawn.plane,
        title=drawn.title,
        picked=drawn.picked,
        ranks=drawn.ranks,
        datasheet=datasheet_roofs(drawn.plane),
    )
    return json_block(f"spec-{drawn.key}", spec)


def to_draw(content: Content, figures: Sequence[RooflineFigure]) -> list[Chart]:
    """Say what is to be drawn: each is drawn by itself, by `chart`, in any order."""
    ranks = {row.group.representative.key: row.rank for row in ranking(content)}
    return [_chart(figure, content, ranks) for figure in figures if figure.drawable]


def charts(content: Content, figures: Sequence[RooflineFigure], drawn: Mapping[str, str]) -> Markup:
    """Show the roofline of each GPU, and the time by kernel where there are several.

    Args:
        content: The page.
        figures: The rooflines.
        drawn: What `chart` returned, by the key of the figure.
    """
    if not figures:
        return render("report/no_charts", content=content)
    blocks = [Markup(drawn[figure.key]) for figure in figures if figure.drawable]  # noqa: S704 - of `json_block`
    if content.total_ns and len(content.kernels) > 1:
        blocks.append(json_block("spec-time", time_spec(content)))
    untimed = sum(not group.duration_ns for group in content.kernels)
    return render(
        "report/charts", content=content, figures=figures, blocks=blocks, max_rows=MAX_DATA_ROWS, untimed=untimed
    )


def _figure(key: str, placed: Plane) -> RooflineFigure:
    return RooflineFigure(
        key=key,
        plane=placed,
        levels=tuple((level, placed.level_names[level]) for level in placed.levels),
        default_level=default_level(placed),
        drawable=bool(placed.placed),
    )


def _chart(figure: RooflineFigure, content: Content, ranks: Mapping[str, int]) -> Chart:
    keys = dict.fromkeys(point.launch.key for point in figure.plane.placed)
    return Chart(
        key=figure.key,
        plane=figure.plane,
        title=f"{figure.caption}: synthetic data" if content.synthetic else figure.caption,
        picked=next((key for key in ranks if key in keys), next(iter(keys), "")),
        ranks=ranks if len(content.kernels) > 1 else {},
    )
