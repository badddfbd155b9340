"""What appears with a picked launch, as boxes that other text keeps clear of: its gap, its other levels, and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rooflens import format as fmt
from rooflens.report.plane.geometry import Box, Boxes, text_px
from rooflens.report.plane.placement import BOLD_PX, LINE_PX
from rooflens.report.plane.plane import ALL, Plane, Point
from rooflens.report.plane.viewport import CROWD, POINT_AIR_PX, Viewport, dot_box, point_box, radius_px

GapSpot = tuple[float, int]

GAP_FROM = 1.1
"""A gap smaller than this would be hidden behind its own point."""

GAP_PX = 5
"""Distance of the gap's factor from its line and from the roof."""

GAP_ROOM_PX = 26
"""Where this much of the line is visible above the point, the factor is next to it; else above the roof."""

GAP_PARTS = (0.5, 0.25, 0.75)
USUAL_GAP = (0.5, 1)
"""Where beside its line the factor may stand: the part of the line from the roof down, and the side."""

LEVEL_MARKS: Mapping[str, str] = {"dram": "D", "l2": "L2", "l1": "L1", "smem": "S"}
"""Marks that tell the levels apart where all of them are shown; none can be taken for a number of the ranking."""

RING_PX = 3.2
"""Half the width of the ring at another level of the picked launch."""

NAME_ORDER = ("l2", "l1", "smem", "dram")

OFFSETS_PX = (14, 28, 42, -14)

NEAR_LEVELS_RATIO = 2.0
"""Levels whose intensities differ by less would write their names over one another."""


def shown_at(points: Iterable[Point], level: str) -> list[Point]:
    """List one point of each launch: its position at a level, or at its nearest one where all are shown."""
    return [point for point in points if (point.nearest if level == ALL else point.level == level)]


def own_boxes(plane: Plane, shown: Point, view: Viewport, *, level: str) -> list[Box]:
    """Make the boxes of what appears when a launch is picked: its gap with the factor, its other levels, their names.

    Args:
        plane: The plane.
        shown: The launch's position at the level.
        view: The plane at one size.
        level: The level that is shown.
    """
    own = [point for point in plane.points if point.launch.key == shown.launch.key]
    boxes = (
        []
        if _is_small(shown)
        else [_gap_line(shown, view), _factor_box(plane, shown, view, _gap_spot(plane, shown, view, level))]
    )
    here, down = view.at(*shown.at)
    rights = [view.at(*point.at)[0] for point in own]
    rim = radius_px(plane, shown.launch) + POINT_AIR_PX
    for begin, end in ((min(rights), here - rim), (here + rim, max(rights))):
        if begin < end:
            boxes.append(Box((begin + end) / 2, down, (end - begin) / 2, 1, here))
    if level != ALL:
        offsets = name_offsets({point.level: point.intensity_flop_per_byte for point in own})
        for point, right in zip(own, rights, strict=True):
            if point is not shown:
                dy = offsets[point.level].dy + offsets[point.level].push * (rim - POINT_AIR_PX - 4)
                boxes.append(point_box((right, down), RING_PX))
                boxes.append(Box(right, down + dy, text_px(plane.level_names[point.level]) / 2, LINE_PX / 2, right))
    return boxes


def gap_spots(plane: Plane, views: Mapping[str, Sequence[Viewport]]) -> dict[tuple[str, str], list[GapSpot]]:
    """Choose where factors stand clear of other points: by launch and level, for each class of sizes.

    Usual places are left out; in a crowd all are usual, as there is no clear ground.

    Args:
        plane: The plane.
        views: The plane at each class of sizes, by level.
    """
    if plane.drawn > CROWD:
        return {}
    found = {
        (point.launch.key, level): [_gap_spot(plane, point, view, level) for view in sizes]
        for level, sizes in views.items()
        for point in shown_at(plane.points, level)
        if not _is_small(point)
    }
    return {key: spots for key, spots in found.items() if set(spots) != {USUAL_GAP}}


def _gap_spot(plane: Plane, point: Point, view: Viewport, level: str) -> GapSpot:
    """Choose the first place beside the line at which the factor covers no point of another launch."""
    if plane.drawn > CROWD:
        return USUAL_GAP
    others = Boxes(dot_box(plane, other, view) for other in plane.points_at(level) if other is not point)
    for part in GAP_PARTS:
        for side in (1, -1):
            box = _factor_box(plane, point, view, (part, side))
            is_seen = box.half_width < box.x < view.width_px - box.half_width
            if is_seen and not others.hits(box):
                return part, side
    return USUAL_GAP


def _is_small(point: Point) -> bool:
    """Return whether the gap is too small to draw."""
    return point.roof_flop_per_s is None or point.gap is None or point.gap < GAP_FROM


def _gap_line(point: Point, view: Viewport) -> Box:
    right, down = view.at(*point.at)
    _, roof = view.at(point.intensity_flop_per_byte, point.roof_flop_per_s or point.flop_per_s)
    return Box(right, (down + roof) / 2, 2, (down - roof) / 2, right)


def _factor_box(plane: Plane, point: Point, view: Viewport, spot: GapSpot) -> Box:
    """Make the box of the factor: beside its line where enough of it is seen, else at its upper end, over the roof."""
    part, side = spot
    right, down = view.at(*point.at)
    _, roof = view.at(point.intensity_flop_per_byte, point.roof_flop_per_s or point.flop_per_s)
    half = text_px(fmt.factor(point.gap), BOLD_PX, bold=True) / 2
    rim = down - radius_px(plane, point.launch)
    beside = rim - roof >= GAP_ROOM_PX
    middle = roof + (rim - roof) * part if beside else min(roof - GAP_PX, rim - 2) - LINE_PX / 2
    return Box(right + (GAP_PX + half) * (side if beside else -side), middle, half, LINE_PX / 2, right)


class Offset(Struct, frozen=True):
    """Where a level's name is placed under or over its point: pixels, and the direction in which a neighbour adds."""

    dy: int
    push: int


USUAL = Offset(OFFSETS_PX[0], 0)
"""Where the name of a level without near neighbours is placed."""


def name_offsets(places: Mapping[str, float]) -> dict[str, Offset]:
    """Give each level of one launch the first free offset; the far level is last, as the usual choice needs no name.

    Args:
        places: Intensity by level.
    """
    offsets: dict[str, Offset] = {}
    for level in sorted(places, key=NAME_ORDER.index):
        near = [
            other
            for other, x in places.items()
            if other != level and max(x, places[level]) / min(x, places[level]) < NEAR_LEVELS_RATIO
        ]
        taken = [offsets[other].dy for other in near if other in offsets]
        dy = next(offset for offset in OFFSETS_PX if offset not in taken)
        offsets[level] = Offset(dy, (1 if dy > 0 else -1) if near else 0)
    return offsets
