"""The launches of one kernel as a compact table: what each took, what limits it, and how it was launched."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.roofline.work import main_work
from rooflens.model.summary import KernelSummary, Launch
from rooflens.model.verdict.sentences import bottleneck_words
from rooflens.report.page.kernels.columns import Cell, intensity_cell

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
