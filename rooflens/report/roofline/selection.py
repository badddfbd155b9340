"""What appears with a picked launch, as boxes that other text keeps clear of: its gap, its other levels, and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from rooflens.model.records import Gain
from rooflens.model.roofline.unit_names import binding_label
from rooflens.report.plane.geometry import Box, Boxes, text_px
from rooflens.report.plane.marks import BAR_NAME_PX, BAR_PX
from rooflens.report.plane.placement import LINE_PX, Canvas, PlacedWords, Text, around
from rooflens.report.plane.plane import ALL, OWN, Plane, Point
from rooflens.report.plane.viewport import POINT_AIR_PX, Sheet, point_box, radius_px
from rooflens.report.roofline.choices import ghost_at, ghost_labels

GAP_FROM = 1.1
"""A gap smaller than this would be hidden behind its own point."""

RING_PX = 3.2
"""Half the width of the ring at another level of the picked launch."""

BAR_ROOM_PX = 140
"""The bar of what binds a launch has its name on its left where there is less room than this on its right."""

NARROW_PX = 480
"""A plane that is not as wide has short words."""

NAME_ORDER = ("l2", "l1", "smem", "dram")

OFFSETS_PX = (14, 28, 42, -14)

NEAR_LEVELS_RATIO = 2.0
"""Levels whose intensities differ by less would write their names over each other."""


def shown_at(points: Iterable[Point], level: str) -> list[Point]:
    """List one point of each launch: its position at a level, or at its own where that or all are shown."""
    return [point for point in points if (point.nearest if level in {ALL, OWN} else point.level == level)]


def picked_boxes(plane: Plane, shown: Point, *, view: Sheet, level: str) -> list[Box]:
    """Make the boxes of what appears when a launch is picked: its gap, its other levels, their names.

    Args:
        plane: The plane.
        shown: The launch's position at the level.
        view: The plane at one size.
        level: The level that is shown.
    """
    boxes = steady_boxes(plane, shown, _points_of(plane, shown), view, level)
    first = next((move for move in shown.launch.gains if move[0] == 0), None)
    if first is None:
        return boxes
    place = ghost_place(plane, shown, first, view, boxes)
    ring = point_box(view.at(*_ghost_at(plane, shown, first[1])), radius_px(plane, shown.launch))
    return [*boxes, ring, *(place.boxes if place else ())]


def _points_of(plane: Plane, shown: Point) -> list[Point]:
    """List the points of a launch, one a level; those of many launches are better found at once."""
    return [point for point in plane.points if point.launch.key == shown.launch.key]


def steady_boxes(plane: Plane, shown: Point, points: Sequence[Point], view: Sheet, level: str) -> list[Box]:
    """Make the boxes of what is the same for all moves of a launch, whose points are its own."""
    boxes = [_gap_line(shown, view)] if shows_gap(shown) else []
    boxes += [*bar_boxes(shown, view), *_bar_name_boxes(shown, view)]
    here, down = view.at(*shown.at)
    rights = [view.at(*point.at)[0] for point in points]
    rim = radius_px(plane, shown.launch) + POINT_AIR_PX
    for begin, end in ((min(rights), here - rim), (here + rim, max(rights))):
        if begin < end:
            boxes.append(Box((begin + end) / 2, down, (end - begin) / 2, 1, here))
    if level != ALL:
        offsets = name_offsets({point.level: point.intensity for point in points})
        for point, right in zip(points, rights, strict=True):
            if point is not shown:
                dy = offsets[point.level].dy + offsets[point.level].push * (rim - POINT_AIR_PX - 4)
                boxes.append(point_box((right, down), RING_PX))
                boxes.append(Box(right, down + dy, text_px(plane.level_names[point.level]) / 2, LINE_PX / 2, right))
    return boxes


def bar_boxes(shown: Point, view: Sheet) -> list[Box]:
    """Make the box of the bar of what binds a launch, which shows whether the launch is picked or not."""
    if shown.binding is None:
        return []
    right, down = view.at(shown.intensity, shown.binding.per_s)
    return [Box(right, down, BAR_PX / 2, 2, right)]


def _bar_name_boxes(shown: Point, view: Sheet) -> list[Box]:
    if shown.binding is None:
        return []
    right, down = view.at(shown.intensity, shown.binding.per_s)
    half = text_px(binding_label(shown.binding)) / 2
    side = 1 if view.width_px - right > BAR_ROOM_PX else -1
    return [Box(right + side * (BAR_PX / 2 + BAR_NAME_PX + half), down, half, LINE_PX / 2, right)]


def ghost_place(
    plane: Plane, shown: Point, move: tuple[int, Gain], view: Sheet, steady: Sequence[Box]
) -> PlacedWords | None:
    """Place the words at the ghost of a move, clear of all else that a picked launch shows; None without room.

    The longest words of a size have the place, so that the same holds for a single launch and for one of several.

    Args:
        plane: The plane.
        shown: The launch's position at the level.
        move: The move, with its place among the choices.
        view: The plane at one size.
        steady: What is the same for all moves of the launch there.
    """
    label, short = ghost_labels(*move, each=True)
    radius, (x, y) = radius_px(plane, shown.launch), _ghost_at(plane, shown, move[1])
    words = short if view.width_px < NARROW_PX else label
    dots = (point_box(view.at(*place), radius) for place in ((x, y), shown.at))
    canvas = Canvas(view, Boxes([*steady, *dots]))
    return canvas.find(Text((words,), x, y, around(radius)).places(view))


def _ghost_at(plane: Plane, shown: Point, gain: Gain) -> tuple[float, float]:
    slope = next((roof.peak for roof in plane.level_roofs if shown.level in roof.keys), None)
    return ghost_at(shown, gain, slope)


def shows_gap(point: Point) -> bool:
    """Return whether its gap is known, and large enough to draw."""
    return point.gap is not None and point.gap >= GAP_FROM


def _gap_line(point: Point, view: Sheet) -> Box:
    right, down = view.at(*point.at)
    _, roof = view.at(point.intensity, point.limit_per_s or point.per_s)
    return Box(right, (down + roof) / 2, 2, (down - roof) / 2, right)


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
