"""All text of the plane as rows: names of roofs, ridges, ranks and kernels, each with its place at every size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from rooflens.report.plane.geometry import hits_any
from rooflens.report.plane.placement import Spot, Wish, text_box
from rooflens.report.plane.roof_names import Flat, Slope, drawing, drawings, name_boxes, name_roofs, top_of
from rooflens.report.plane.viewport import SIZES, WIDE, Sheet
from rooflens.report.roofline.labels import levels_shown, place_labels, still_free
from rooflens.report.roofline.rows import flat_names, rounded, slope_names
from rooflens.report.roofline.selection import GAP_FROM, Request, factor_box, own_boxes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.report.plane.geometry import Box
    from rooflens.report.plane.plane import Domain, Plane
    from rooflens.report.plane.roof_names import Drawing, RoofNames
    from rooflens.report.plane.viewport import SizeClass
    from rooflens.report.roofline.labels import Label
    from rooflens.report.roofline.rows import Row


@dataclass(frozen=True, slots=True)
class Sized:
    """A plane with the names of its roofs placed, at one class of sizes.

    Attributes:
        first: What is seen at first: the level, and the launch whose gap is drawn from the start.
        labels: The text at points that is seen then.
    """

    size: SizeClass
    drawn: tuple[Drawing, ...]
    names: RoofNames
    first: Request
    labels: tuple[Label, ...]


def sized(plane: Plane, ranks: Mapping[str, int], picked: str) -> tuple[Sized, ...]:
    """Place the text that is seen at first at every class of sizes.

    Args:
        plane: The plane.
        ranks: Numbers of the biggest losses by launch.
        picked: The launch whose gap is drawn from the start.
    """
    first = Request(plane, plane.first_level, ranks, picked)
    return tuple(_sized(size, first) for size in SIZES)


def _sized(size: SizeClass, first: Request) -> Sized:
    drawn = [
        replace(one, soft=tuple(own_boxes(first, first.picked, size, one.sheet.at)))
        for one in drawings(first.plane, size)
    ]
    names = name_roofs(first.plane, slopes(first.plane), flats(first.plane, size), drawn)
    return Sized(size, tuple(drawn), names, first, tuple(place_labels(first, size, drawn)))


def slopes(plane: Plane) -> list[Slope]:
    """List the diagonal roofs that want a name."""
    top = top_of(plane)
    return [Slope(roof.keys[0], roof.peak, top, slope_names(roof)) for roof in plane.level_roofs]


def flats(plane: Plane, size: SizeClass) -> list[Flat]:
    """List the flat roofs that want a name; a narrow plane has no room for the clock."""
    named = [(roof, flat_names(roof, plane.clocks_hz)) for roof in plane.pipe_roofs]
    fastest = max((roof.peak for roof in plane.level_roofs), default=None)
    return [
        Flat(
            roof.keys[0],
            roof.peak,
            texts=names[-1:] if size.narrow else names[:-1],
            begin=roof.peak / fastest if fastest else None,
        )
        for roof, names in named
    ]


def slope_places(sizes: Iterable[Sized], key: str) -> list[list[str | float] | None]:
    """Write the name of a diagonal roof, the part of the line where it begins and its side, for each class of sizes."""
    found = [one.names.slopes.get(key) for one in sizes]
    return [along.row if along else None for along in found]


def flat_places(sizes: Iterable[Sized], key: str) -> list[list[str | float] | None]:
    """Write the name of a flat roof and its place at the right edge, for each class of sizes."""
    found = [one.names.flats.get(key) for one in sizes]
    return [[one[0], *one[1].row] if one else None for one in found]


def label_rows(plane: Plane, sizes: Sequence[Sized], wider: tuple[Domain, Domain] | None) -> list[Row]:
    """Make one row per text at a point or a corner and level, with its place at each class of sizes.

    Args:
        plane: The plane.
        sizes: Its drawings.
        wider: The range of the plane while other roofs are shown too; None where there are none.

    Keys: `s` kind, `k` and `g` where it belongs to a launch, `t` text, `u` text on a narrow plane, `p` places, `o`
    those while only its kernel is shown, `d` where it stands free while other roofs are shown too.
    """
    requests = [replace(sizes[0].first, level=level) for level in levels_shown(plane)]
    return list(chain.from_iterable(_level_rows(request, sizes, wider) for request in requests))


def _level_rows(request: Request, sizes: Sequence[Sized], wider: tuple[Domain, Domain] | None) -> list[Row]:
    by_size = [one.labels if request == one.first else place_labels(request, one.size, one.drawn) for one in sizes]
    rows: dict[tuple[object, ...], Row] = {}
    for i, label in ((i, label) for i, labels in enumerate(by_size) for label in labels if label.spot):
        row = rows.setdefault(_identity(label), _label_row(label, len(sizes)))
        row["p"][i] = label.spot.row if label.spot else None
        row["o"][i] = label.alone.row if label.alone else None
        if label.text != row["t"]:
            row["u"] = label.text
    if wider is not None:
        sheet = Sheet(*wider, WIDE.widths_px[0], WIDE.height_px)
        for label in still_free(by_size[0], request, _renamed(request.plane, sheet, sizes[0])):
            rows[_identity(label)]["d"] = 1
    return [_without_same(row) for row in rows.values()]


def flipped(plane: Plane, wide: Sized, labels: Iterable[Row]) -> set[tuple[str, str]]:
    """Find the points whose gap has its factor better on the other side: launch and level.

    Names of roofs and ridges stay when a kernel is isolated; names of other kernels go.
    """
    drawn = wide.drawn[0]
    ridges: dict[str, list[Box]] = {}
    for row in labels:
        if row["s"] == "ridge" and (spot := row["p"][0]):
            box = text_box(Wish(row["t"], row["x"], row["y"], ()), Spot(*spot), drawn.sheet.at)
            ridges.setdefault(row["level"], []).append(box)
    found = set()
    for point in plane.points:
        fixed = [*drawn.canvas.taken, *ridges.get(point.level, [])]
        if point.gap is not None and point.gap >= GAP_FROM:
            usual, other = (factor_box(plane, point, drawn.sheet.at, flipped=flip) for flip in (False, True))
            if hits_any(usual, fixed) and not hits_any(other, fixed):
                found.add((point.launch.key, point.level))
    return found


def _without_same(row: Row) -> Row:
    """Leave out the places for an isolated kernel where they are the usual ones."""
    return {key: value for key, value in row.items() if key != "o" or value != row["p"]}


def _identity(label: Label) -> tuple[object, ...]:
    return label.kind, label.launch.key if label.launch else "", label.level, label.x, label.y


def _label_row(label: Label, sizes: int) -> Row:
    row: Row = {"s": label.kind, "level": label.level, "x": rounded(label.x), "y": rounded(label.y), "t": label.text}
    row |= {"k": label.launch.key, "g": label.launch.group_key} if label.launch else {}
    return row | {"p": [None] * sizes, "o": [None] * sizes}


def _renamed(plane: Plane, sheet: Sheet, one: Sized) -> Drawing:
    """Draw a plane over a wider range, with the names of its roofs where the chart then draws them."""
    drawn = drawing(sheet, plane)
    boxes = name_boxes(slopes(plane), flats(plane, one.size), one.names, sheet)
    return replace(drawn, canvas=replace(drawn.canvas, taken=boxes))
