"""The map of a program: NVTX ranges and modules, and in each its kernels, as wide as their time."""

from __future__ import annotations

from collections import defaultdict

from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.summary import KernelSummary, Launch
from rooflens.report.content import Content
from rooflens.report.templates import render
from rooflens.report.words.program import place_of

MOST_RANGES = 24
LEAST_PART = 0.002
"""Kernels with less of the page's time are left out: nobody would see them."""

OUTSIDE = "outside of any range"


class Cell(Struct, frozen=True):
    """A kernel within a range.

    Attributes:
        part: Its part of the page's GPU time.
        won: The part of its own time that can be won, 0 to 1; 0 where that is unknown.
    """

    group: KernelSummary
    time_ns: float
    part: float
    won: float
    bound: str


class Strip(Struct, frozen=True):
    """One range or module with its kernels, the longest first; `value` is what the filter by range takes."""

    label: str
    value: str
    time_ns: float
    part: float
    cells: tuple[Cell, ...]


def program_map(content: Content) -> Markup:
    """Draw the program as ranges and kernels; nothing where its launches lie in fewer than two ranges."""
    strips = _strips(content)
    if len(strips) < 2 or not any(strip.value for strip in strips):
        return Markup()
    longest = sorted(range(len(strips)), key=lambda place: -strips[place].time_ns)
    return render(
        "report/program_map",
        strips=[strips[place] for place in sorted(longest[:MOST_RANGES])],
        rest=[strips[place].part for place in longest[MOST_RANGES:]],
    )


def _strips(content: Content) -> list[Strip]:
    """Part the GPU time by range, in the order of their first launches, then by kernel."""
    launches: dict[str, defaultdict[str, list[Launch]]] = {}
    for launch in sorted(content.counted, key=lambda one: int(one.key[1:])):
        by_kernel = launches.setdefault(place_of(launch.analysis), defaultdict(list))
        by_kernel[launch.group_key].append(launch)
    groups = {group.key: group for group in content.kernels}
    strips = []
    for value, by_kernel in launches.items():
        cells = [_cell(groups[key], own, content.total_ns) for key, own in by_kernel.items()]
        time_ns = sum(cell.time_ns for cell in cells)
        seen = sorted((cell for cell in cells if cell.part >= LEAST_PART), key=lambda cell: -cell.time_ns)
        label = fmt.cut_middle(value or OUTSIDE, 60)
        strips.append(Strip(label, value, time_ns, time_ns / (content.total_ns or 1.0), tuple(seen)))
    return [strip for strip in strips if strip.cells]


def _cell(group: KernelSummary, launches: list[Launch], total_ns: float) -> Cell:
    time_ns = sum(launch.duration_ns or 0.0 for launch in launches)
    won_ns = sum(launch.winnable_ns or 0.0 for launch in launches)
    part = time_ns / total_ns if total_ns else 0.0
    return Cell(group, time_ns, part, won_ns / time_ns if time_ns else 0.0, launches[0].shown_class)
