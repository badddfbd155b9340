"""The strips of a map: kernels as wide as their time, what no kernel fills, and what is too small to be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rooflens.format import count, duration, percent
from rooflens.report.document import Cell, Map, Strip

MOST_STRIPS = 24
LEAST_PART = 0.002
"""Kernels with less of the map's time are left out: nobody would see them."""

NO_KERNEL = "no kernel ran"


def strip_of(label: str, cells: Sequence[Cell], whole_ns: float, choice: str = "", value: str = "") -> Strip | None:
    """Make a strip of its kernels, the longest first; None if none is wide enough to be seen.

    Args:
        label: What the kernels have in common.
        cells: All of them.
        whole_ns: The time of the whole map.
        choice: The filter of the page that a click sets.
        value: What that filter takes.
    """
    part = sum(cell.part for cell in cells)
    seen = tuple(sorted((cell for cell in cells if cell.part >= LEAST_PART), key=lambda cell: -cell.part))
    return Strip(label, duration(part * whole_ns), part, seen, choice, value) if seen else None


def blank(label: str, time_ns: float, whole_ns: float, style: Literal["elsewhere", "gap"]) -> Iterator[Strip]:
    """Yield a strip for time that no kernel of the page fills; nothing if it is too short to be seen."""
    part = time_ns / whole_ns
    if part >= LEAST_PART:
        time = duration(time_ns)
        yield Strip(label, time, part, (Cell(label, f"{label}, {time}", part, 0.0, style),))


def mapped(strips: Sequence[Strip], label: str, what: str) -> Map:
    """Make a map of the longest strips in their order, and count the others, each `what`."""
    longest = sorted(range(len(strips)), key=lambda place: -strips[place].part)
    left_out = [strips[place].part for place in longest[MOST_STRIPS:]]
    rest = f"Not drawn: {count(len(left_out), what)} with {percent(sum(left_out))} of the time." if left_out else ""
    return Map(tuple(strips[place] for place in sorted(longest[:MOST_STRIPS])), label, rest)
