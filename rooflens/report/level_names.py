"""What the memory levels are called at points, and where the names of one launch's levels stand along its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVEL_MARKS: Mapping[str, str] = {"dram": "H", "l2": "2", "l1": "1", "smem": "S"}
"""Letters that tell the levels apart where all of them are shown."""

RING_PX = 3.2
"""Half the width of the ring at another level of the picked launch."""

NAME_ORDER = ("l2", "l1", "smem", "dram")
OFFSETS_PX = (14, 28, 42, -14)
NEAR_LEVELS_RATIO = 2.0
"""Levels whose intensities differ by less would write their names over one another."""


@dataclass(frozen=True, slots=True)
class Offset:
    """Where a level's name stands under or over its place: pixels, and the direction to add a neighbour's size in."""

    dy: int
    push: int


USUAL = Offset(OFFSETS_PX[0], 0)
"""Where the name of a level without near neighbours stands."""


def name_offsets(places: Mapping[str, float]) -> dict[str, Offset]:
    """Give each level of one launch the first free offset; the far level is last, as the usual choice needs no name.

    Args:
        places: Intensity by level.
    """
    offsets: dict[str, Offset] = {}
    for level in sorted(places, key=NAME_ORDER.index):
        near = [other for other, x in places.items() if other != level and _are_near(x, places[level])]
        taken = [offsets[other].dy for other in near if other in offsets]
        dy = next(offset for offset in OFFSETS_PX if offset not in taken)
        offsets[level] = Offset(dy, (1 if dy > 0 else -1) if near else 0)
    return offsets


def _are_near(one: float, other: float) -> bool:
    return max(one, other) / min(one, other) < NEAR_LEVELS_RATIO
