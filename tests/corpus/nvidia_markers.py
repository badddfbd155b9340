"""Hold our hot spots against the lines and instructions that NVIDIA's rules mark in the source.

A rule marks every place above a threshold, not the hottest three, so two questions are asked. Of stalls, whose markers
state their weight, the strongest three must be among our top three. Of uncoalesced accesses, whose markers do not, our
top three must be marked, and where three places or fewer are, all of them must be among ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nvidia_results import Marker, NvidiaKernel

    from rooflens.model.records import Kernel

TOP = 3

MEASURES: Mapping[str, tuple[str, ...]] = {
    "CPIStall": ("samples",),
    "UncoalescedGlobalAccess": ("load_excess_sectors", "store_excess_sectors"),
    "UncoalescedSharedAccess": ("shared_excess_wavefronts",),
}
"""Rule that marks places -> what our hot spots are sorted by. Other rules' markers have no such measure."""

_STALL_SHARE = re.compile(r"([\d.]+)% of all warp stalls")

Place = int | tuple[str, int]
"""Offset of an instruction from the kernel's start in bytes, or name of a file and line."""


@dataclass(frozen=True, slots=True)
class MarkedPlace:
    """One place that must be in both lists, and whether it is.

    Attributes:
        by: `sass` or `line`.
    """

    report: str
    index: int
    rule: str
    by: str
    what: str
    hit: bool


def marked(nvidia: NvidiaKernel, kernel: Kernel) -> Iterator[MarkedPlace]:
    """Compare the markers of one kernel, rule by rule, instructions and lines apart."""
    for rule, measures in MEASURES.items():
        markers = [marker for marker in nvidia.markers if marker.identifier == rule]
        weights = _weights(markers)
        for by, places in (("sass", weights), ("line", _lines(markers, weights))):
            ours = _top(kernel, by, measures) if places else []
            for place, hit in _compare(places, ours):
                yield MarkedPlace(nvidia.report, nvidia.index, rule, by, _words(place), hit)


def _compare(places: Mapping[Place, float | None], ours: list[Place]) -> Iterator[tuple[Place, bool]]:
    if all(weight is not None for weight in places.values()):
        weights = [weight or 0.0 for weight in places.values()]
        for place, weight in places.items():
            if sum(other >= (weight or 0.0) for other in weights) <= TOP:  # a tie for the last place proves nothing
                yield place, place in ours
    elif len(places) <= TOP or not ours:
        yield from ((place, place in ours) for place in list(places)[:TOP])
    else:
        yield from ((place, place in places) for place in ours)


def _weights(markers: list[Marker]) -> dict[Place, float | None]:
    """Return the marked instructions with their share of all stalls, or None where the marker does not say."""
    found: dict[Place, float | None] = {}
    for marker in markers:
        if marker.pc is not None:
            match = _STALL_SHARE.search(marker.message)
            found[marker.pc] = float(match[1]) if match else None
    return found


def _lines(markers: list[Marker], weights: Mapping[Place, float | None]) -> dict[Place, float | None]:
    """Return the marked lines with the weight of their marked instructions, which state it."""
    found: dict[Place, float | None] = {
        (_base(marker.file), marker.line): None for marker in markers if marker.file and marker.line is not None
    }
    by_pc = {marker.pc: marker.source for marker in markers if marker.pc is not None and marker.source}
    for pc, (file, line) in by_pc.items():
        weight, place = weights.get(pc or 0), (_base(file), line)
        if place in found and weight is not None:
            found[place] = (found[place] or 0.0) + weight
    return found


def _top(kernel: Kernel, by: str, measures: tuple[str, ...]) -> list[Place]:
    """Return the places of our hottest spots of a kind, the hottest first."""
    spots = [spot for spot in getattr(kernel, "hotspots", ()) if spot.by == by]
    amounts = {id(spot): sum(spot.measures.get(name, 0.0) for name in measures) for spot in spots}
    hot = sorted((spot for spot in spots if amounts[id(spot)] > 0), key=lambda spot: -amounts[id(spot)])[:TOP]
    return [spot.pc if by == "sass" else (_base(spot.file or ""), spot.line) for spot in hot]


def _base(file: str) -> str:
    return re.split(r"[/\\]", file)[-1]


def _words(place: Place) -> str:
    return f"{place:#x}" if isinstance(place, int) else f"{place[0]}:{place[1]}"
