"""Compare our hot spots with the lines and instructions that NVIDIA's rules mark in the source.

A rule marks every place above a threshold, not the hottest three, so there are two checks. If markers state a weight
(instructions that stall), the strongest three must be among our top three. If not (uncoalesced accesses, and all
lines), our top three must be marked, and if at most three places are marked, all must be among ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
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


class MarkedPlace(Struct, frozen=True):
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
        for by, places in (("sass", _weights(markers)), ("line", _lines(markers))):
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
    """Return the marked instructions with their share of all stalls, or None if the marker has no weight."""
    found: dict[Place, float | None] = {}
    for marker in markers:
        if marker.pc is not None:
            match = _STALL_SHARE.search(marker.message)
            found[marker.pc] = float(match[1]) if match else None
    return found


def _lines(markers: list[Marker]) -> dict[Place, float | None]:
    """Return the marked lines, whose markers never state the weight of a whole line.

    A line of uncoalesced accesses names the file that was looked at last (ncu 2023 to 2025); its instructions, also
    marked, name the right file.
    """
    files = {marker.source[1]: marker.source[0] for marker in markers if marker.source}
    lines = {marker.line: marker.file or "" for marker in markers if marker.line is not None}
    return {(_base(files.get(line, file)), line): None for line, file in lines.items()}


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
