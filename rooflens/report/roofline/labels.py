"""All text of the roofline's plane: names of roofs, numbers of the ranking, ridges, names of the heaviest kernels.

All of it is placed here, level by level and for each class of sizes, because Vega-Lite places no labels: what would
overlap other text, a point or the edge of the plane is dropped. What belongs to a picked launch comes and goes: the
chart draws it over other words, on cleared ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooflens.model.roofline.roofs import RoofLine
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.marks import rounded
from rooflens.report.plane.placement import Canvas, Spot, Text, apart, mark_spots, ridge_spots
from rooflens.report.plane.plane import ALL, LEVEL_MARKS, OWN, Domain, Plane, Point
from rooflens.report.plane.roofs import CORNER_PX, NamedRoof, Roofs, flat_roof, ridge_text, slope_roof, work_unit
from rooflens.report.plane.viewport import CROWD, SIZES, Sheet, SizeClass, dot_box, point_box, radius_px
from rooflens.report.roofline.naming import KernelNames, PlaneLabel, kernel_names, label
from rooflens.report.roofline.rows import Row, clock_text
from rooflens.report.roofline.selection import bar_boxes, picked_boxes, shown_at

Domains = tuple[Domain, Domain]
Drawings = Mapping[str, Sequence["PlaneDrawing"]]
"""By level, then by class of sizes."""

NAMED_LAUNCHES = 4
"""With no more launches than this, names of levels take the place of their letters."""


class PlaneDrawing(Struct, frozen=True):
    """A plane for a range of screen sizes, with its roof names placed."""

    size: SizeClass
    canvas: Canvas
    roofs: Mapping[str, list[Any]]


def domains(plane: Plane, level: str) -> Domains:
    """Find the visible part of a plane at a level."""
    return plane.x_domain(level), plane.y_domain(level)


def drawings(
    plane: Plane, picked: str, levels: Iterable[str] | None = None, sizes: Sequence[SizeClass] = SIZES
) -> Drawings:
    """Draw a plane at each of some levels, by default all that it can be shown at, and at each size."""
    return {level: _drawn_at(plane, picked, level, sizes) for level in levels or plane.choices}


def _drawn_at(plane: Plane, picked: str, level: str, sizes: Iterable[SizeClass]) -> list[PlaneDrawing]:
    seen = domains(plane, level)
    slopes = tuple(slope_roof(roof, plane.gpu) for roof in plane.level_roofs)

    def draw(size: SizeClass) -> PlaneDrawing:
        """Name the roofs, clear of points and of what the picked launch shows where they can be."""
        view = Sheet(*seen, size.width_px, size.height_px)
        roofs = Roofs(slopes, tuple(pipe_roof(roof, plane.roofs.clocks_hz, size) for roof in plane.pipe_roofs), *seen)
        avoid = [dot_box(plane, point, view) for point in plane.points_at(level)]
        canvas = Canvas(view, lines=roofs.lines(view))
        return PlaneDrawing(size, canvas, roofs.name(canvas, avoid + _picked_boxes(plane, picked, view, level)))

    return [draw(size) for size in sizes]


def pipe_roof(roof: RoofLine, clocks_hz: Domain | None, size: SizeClass) -> NamedRoof:
    """Name a flat roof with its instruction, value and clock; a narrow plane has no room for unit and clock."""
    named = flat_roof(roof, clock_text(clocks_hz))
    return replace(named, names=named.names[-2:-1] if size.narrow else named.names[:-1])


def roof_places(drawn: Drawings, key: str) -> dict[str, list[list[Any] | None]]:
    """List the place of a roof's name by level and slot."""
    return {level: [drawing.roofs.get(key) for drawing in at_level] for level, at_level in drawn.items()}


def label_rows(plane: Plane, drawn: Drawings, picked: str) -> list[Row]:
    """Make a row per text at a point, in it or at a corner, and level.

    Keys: `s` kind, `k` and `g` where it belongs to a launch, `t` text, `p` places at each class of sizes.
    """
    names = kernel_names(plane)
    rows: dict[tuple[object, ...], Row] = {}
    for level in (level for level in drawn if plane.points_at(level)):
        for slot, drawing in enumerate(drawn[level]):
            for (kind, launch, text), place in _placed(*_wanted(names, level, drawing, picked)):
                keys = {"k": launch.key, "g": launch.group_key} if launch else {}
                new = {"s": kind, "level": level, "x": rounded(text.x), "y": rounded(text.y), "t": place[0]}
                identity = (kind, launch.key if launch else "", level, text.x, text.y)
                row = rows.setdefault(identity, new | keys | {"p": [None] * len(drawn[level])})
                # Only words that differ from the row's are written again.
                row["p"][slot] = ["" if place[0] == row["t"] else place[0], *place[1:]]
    numbers = [row for level, at_level in drawn.items() for row in _number_rows(plane, level, at_level)]
    return [*numbers, *rows.values()]


def _number_rows(plane: Plane, level: str, at_level: Sequence[PlaneDrawing]) -> Iterator[Row]:
    """Write the numbers of the ranking inside their points, which are large enough; where two would overlap, the first.

    They stand on their own points, so that they keep clear of one another alone.
    """
    ranked = [(rank, point) for point in shown_at(plane.points, level) if (rank := point.launch.rank)]
    sheets = [Canvas(drawing.canvas.view) for drawing in at_level]
    for rank, point in sorted(ranked, key=itemgetter(0)):
        text = Text((str(rank),), *point.at, [Spot(0, 0, 0)])
        places = [canvas.place(text) for canvas in sheets]
        if any(places):
            yield {
                "s": "rank",
                "level": level,
                "x": rounded(point.intensity),
                "y": rounded(point.per_s),
                "t": str(rank),
                "k": point.launch.key,
                "g": point.launch.group_key,
                "p": [place and ["", *place[1:]] for place in places],
            }


def _placed(canvas: Canvas, wanted: Iterable[Iterable[PlaneLabel]]) -> Iterator[tuple[PlaneLabel, list[Any]]]:
    """Place the first of each group of labels that finds room; a launch gets one name."""
    named: set[str] = set()
    for labels in wanted:
        for one in labels:
            key = one.launch.key if one.launch and one.kind == "name" else ""
            if key in named or (place := canvas.place(one.text)) is None:
                continue
            named |= {key} - {""}
            yield one, place
            break


def _wanted(
    names: KernelNames, level: str, drawing: PlaneDrawing, picked: str
) -> tuple[Canvas, Iterator[Iterable[PlaneLabel]]]:
    """Return occupied boxes and wanted labels at a level: the first kernel's name, ridges, other names."""
    plane = names.plane
    canvas = drawing.canvas.copy()
    view = canvas.view
    corners = plane.ridges(plane.first_level if level in {ALL, OWN} else level)
    canvas.taken.extend(dot_box(plane, point, view) for point in plane.points_at(level))
    canvas.taken.extend(point_box(view.at(x, y), CORNER_PX) for x, y in corners)
    canvas.taken.extend(box for point in shown_at(plane.points, level) for box in bar_boxes(point, view))

    seen = [point for point in shown_at(plane.points, level) if _is_seen(point, view)]
    ridges = (
        PlaneLabel("ridge", None, Text((ridge_text(x, work_unit(pipe.keys[0])),), x, y, ridge_spots()))
        for (x, y), pipe in zip(corners, plane.pipe_roofs, strict=False)
    )
    alone = chain(ridges, _level_labels(plane, level, drawing))
    asked = names.ask(seen, picked, drawing.size, partial(picked_boxes, plane, view=view, level=level))

    def in_turn() -> Iterator[Iterable[PlaneLabel]]:
        """Begin with the name of the picked launch; what comes after it keeps clear of all that the launch shows."""
        yield from islice(asked, 1)
        canvas.taken.extend(_picked_boxes(plane, picked, view, level))
        yield from chain(([one] for one in alone), asked)

    return canvas, in_turn()


def _is_seen(point: Point, view: Sheet) -> bool:
    """Return whether the plane has room for a point: what lies beyond its axes gets no words."""
    right, down = view.at(*point.at)
    return 0 <= right <= view.width_px and 0 <= down <= view.height_px


def _picked_boxes(plane: Plane, picked: str, view: Sheet, level: str) -> list[Box]:
    found = (point for point in shown_at(plane.points, level) if point.launch.key == picked)
    return [box for point in found for box in picked_boxes(plane, point, view=view, level=level)]


def _level_labels(plane: Plane, level: str, drawing: PlaneDrawing) -> Iterator[PlaneLabel]:
    """Ask for the names or letters of levels where they differ; a crowd would fill the plane with them."""
    launches = len(plane.launches)
    if level not in {ALL, OWN} or launches > CROWD or len(plane.levels) == 1:
        return
    words = LEVEL_MARKS if launches > NAMED_LAUNCHES or drawing.size.narrow else plane.level_names
    seen = (point for point in plane.points_at(level) if _is_seen(point, drawing.canvas.view))
    for point in apart(seen, by_level=True):
        yield label("mark", point, (words[point.level],), mark_spots(radius_px(plane, point.launch)))
