"""What appears with a picked launch, as boxes that other text keeps clear of: its gap, its other levels, and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflens import format as fmt
from rooflens.model.verdict.sentences import LEVEL_LABELS
from rooflens.report.plane.geometry import Box, segment, text_px
from rooflens.report.plane.placement import BOLD_PX, FONT_PX, LINE_PX
from rooflens.report.plane.viewport import POINT_AIR_PX, point_box, radius_px

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflens.report.plane.placement import Place
    from rooflens.report.plane.plane import Plane, Point
    from rooflens.report.plane.viewport import SizeClass


ALL = "all"
"""Stands for every level, shown together."""

GAP_FROM = 1.1
"""A gap smaller than this would be hidden behind its own point."""

GAP_PX = 5
"""Distance of the gap's factor from its line and from the roof."""

GAP_ROOM_PX = 26
"""Where so much of the line is seen over the point, the factor stands beside it; else over the roof."""

LEVEL_MARKS: Mapping[str, str] = {"dram": "H", "l2": "2", "l1": "1", "smem": "S"}
"""Letters that tell the levels apart where all of them are shown."""

RING_PX = 3.2
"""Half the width of the ring at another level of the picked launch."""

NAME_ORDER = ("l2", "l1", "smem", "dram")

OFFSETS_PX = (14, 28, 42, -14)

NEAR_LEVELS_RATIO = 2.0
"""Levels whose intensities differ by less would write their names over one another."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to place at one level: who wants the ranks, whose gap is drawn from the start, and the lines' ridges."""

    plane: Plane
    level: str
    ranks: Mapping[str, int]
    picked: str


def shown_at(plane: Plane, level: str) -> list[Point]:
    """List one point of each launch: where it stands at a level, or at its nearest one where all are shown."""
    return [point for point in plane.points if (point.nearest if level == ALL else point.level == level)]


def own_boxes(request: Request, key: str, size: SizeClass, at: Place) -> list[Box]:
    """Make the boxes of a launch's gap and of the names of its other levels, as they are drawn when it is picked."""
    own = [point for point in request.plane.points if point.launch.key == key]
    shown = [point for point in own if (point.nearest if request.level == ALL else point.level == request.level)]
    boxes = [box for point in shown for box in gap_boxes(request.plane, point, at, both=key != request.picked)]
    boxes += [box for point in shown for box in _joint_boxes(request.plane, point, own, at)]
    if request.level == ALL or not own:
        return boxes
    return boxes + [box for point in own if point not in shown for box in _level_boxes(request, point, own, size, at)]


def _joint_boxes(plane: Plane, shown: Point, own: Sequence[Point], at: Place) -> Iterator[Box]:
    """Make the boxes of the line from a point to its other levels, on both sides of it."""
    (left, right), down = _ends(own, at), at(shown.intensity_flop_per_byte, shown.flop_per_s)[1]
    here = at(shown.intensity_flop_per_byte, shown.flop_per_s)[0]
    rim = radius_px(plane, shown.launch) + POINT_AIR_PX
    for begin, end in ((left, here - rim), (here + rim, right)):
        if begin < end:
            yield segment((begin, down), (end, down))


def _ends(own: Sequence[Point], at: Place) -> tuple[float, float]:
    places = [at(point.intensity_flop_per_byte, point.flop_per_s)[0] for point in own]
    return min(places), max(places)


def gap_boxes(plane: Plane, point: Point, at: Place, *, both: bool) -> Iterator[Box]:
    """Make the boxes of the line from a point to its roof, and of the factor on its usual side or on both."""
    if point.roof_flop_per_s is None or point.gap is None or point.gap < GAP_FROM:
        return
    x = point.intensity_flop_per_byte
    yield segment(at(x, point.flop_per_s), at(x, point.roof_flop_per_s), 4)
    for flipped in (False, True) if both else (False,):
        yield factor_box(plane, point, at, flipped=flipped)


def factor_box(plane: Plane, point: Point, at: Place, *, flipped: bool) -> Box:
    """Make the box of a gap's factor: right of its line where enough of that is seen, else left of its upper end.

    Flipped, it stands on the other side.
    """
    x, y = point.intensity_flop_per_byte, point.flop_per_s
    right, roof = at(x, point.roof_flop_per_s or y)
    half = text_px(fmt.factor(point.gap), BOLD_PX, bold=True) / 2
    rim = at(x, y)[1] - radius_px(plane, point.launch)
    beside = rim - roof >= GAP_ROOM_PX
    down = (rim + roof) / 2 if beside else min(roof - GAP_PX, rim - 2) - LINE_PX / 2
    return Box(right + (GAP_PX + half) * (1 if beside != flipped else -1), down, half, LINE_PX / 2)


def _level_boxes(request: Request, point: Point, own: Sequence[Point], size: SizeClass, at: Place) -> Iterator[Box]:
    """Make the boxes of a ring at another level and of its name."""
    right, down = at(point.intensity_flop_per_byte, point.flop_per_s)
    yield point_box((right, down), RING_PX)
    if size.narrow:
        return
    offset = name_offsets({p.level: p.intensity_flop_per_byte for p in own})[point.level]
    dy = offset.dy + offset.push * (radius_px(request.plane, point.launch) - 4)
    yield Box(right, down + dy, text_px(LEVEL_LABELS[point.level], FONT_PX) / 2, LINE_PX / 2)


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
