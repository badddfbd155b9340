"""All text of the plane as rows: names of roofs, ridges, ranks and kernels, each with its place at every size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from rooflens.report.point_labels import Request, gap_boxes, levels_shown, place_labels, still_free
from rooflens.report.roof_labels import Flat, Slope, drawing, drawings, name_boxes, name_roofs, top_of
from rooflens.report.roofline_rows import flat_names, rounded, slope_names
from rooflens.report.sheet import SIZES, WIDE, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.report.point_labels import Label
    from rooflens.report.roof_labels import Drawing, RoofNames
    from rooflens.report.roofline_data import Plane, Point
    from rooflens.report.roofline_rows import Row
    from rooflens.report.sheet import Domain, SizeClass


@dataclass(frozen=True, slots=True)
class Sized:
    """A plane with the names of its roofs placed, at one class of sizes."""

    size: SizeClass
    drawn: tuple[Drawing, ...]
    names: RoofNames


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which launches have marks of their own.

    Attributes:
        ranks: Numbers of the biggest losses by launch.
        picked: The launch whose gap is drawn from the start.
        wider: The range of the plane while other roofs are shown too; None where there are none.
    """

    ranks: Mapping[str, int]
    picked: str
    wider: tuple[Domain, Domain] | None = None


def sized(plane: Plane, picked: str) -> tuple[Sized, ...]:
    """Place the names of the plane's roofs at every class of sizes, clear of the gap that is drawn from the start."""
    gapped = next((p for p in plane.points if p.launch.key == picked and p.level == plane.levels[0]), None)
    return tuple(_sized(plane, size, gapped) for size in SIZES)


def _sized(plane: Plane, size: SizeClass, gapped: Point | None) -> Sized:
    drawn = drawings(plane, size)
    if gapped is not None:
        drawn = [replace(one, soft=tuple(gap_boxes(plane, gapped, one.sheet.at))) for one in drawn]
    return Sized(size, tuple(drawn), name_roofs(plane, slopes(plane), flats(plane, size), drawn))


def slopes(plane: Plane) -> list[Slope]:
    """List the diagonal roofs that want a name."""
    top = top_of(plane)
    return [Slope(roof.keys[0], roof.peak, top, slope_names(roof)) for roof in plane.level_roofs]


def flats(plane: Plane, size: SizeClass) -> list[Flat]:
    """List the flat roofs that want a name; a narrow plane has no room for the clock."""
    named = [(roof, flat_names(roof, plane.clocks_hz)) for roof in plane.pipe_roofs]
    return [Flat(roof.keys[0], roof.peak, names[-1:] if size.narrow else names) for roof, names in named]


def slope_places(sizes: Iterable[Sized], key: str) -> list[list[str | float] | None]:
    """Write the name of a diagonal roof, the part of the line where it begins and its side, for each class of sizes."""
    found = [one.names.slopes.get(key) for one in sizes]
    return [along.row if along else None for along in found]


def flat_places(sizes: Iterable[Sized], key: str) -> list[list[str | float] | None]:
    """Write the name of a flat roof and its place at the right edge, for each class of sizes."""
    found = [one.names.flats.get(key) for one in sizes]
    return [[one[0], *one[1].row] if one else None for one in found]


def label_rows(plane: Plane, sizes: Sequence[Sized], wanted: Wanted) -> list[Row]:
    """Make one row per text at a point or a corner and level, with its place at each class of sizes.

    Keys: `s` kind, `k` and `g` where it belongs to a launch, `t` text, `u` text on a narrow plane, `p` places, `d`
    where it also stands free while other roofs are shown.
    """
    requests = [Request(plane, level, wanted.ranks, wanted.picked) for level in levels_shown(plane)]
    return list(chain.from_iterable(_level_rows(request, sizes, wanted.wider) for request in requests))


def _level_rows(request: Request, sizes: Sequence[Sized], wider: tuple[Domain, Domain] | None) -> list[Row]:
    by_size = [place_labels(request, one.size, one.drawn) for one in sizes]
    rows: dict[tuple[object, ...], Row] = {}
    for i, label in ((i, label) for i, labels in enumerate(by_size) for label in labels if label.spot):
        row = rows.setdefault(_identity(label), _label_row(label, len(sizes)))
        row["p"][i] = label.spot.row if label.spot else None
        if label.text != row["t"]:
            row["u"] = label.text
    if wider is not None:
        sheet = Sheet(*wider, WIDE.widths_px[0], WIDE.height_px)
        for label in still_free(by_size[0], request, _renamed(request.plane, sheet, sizes[0])):
            rows[_identity(label)]["d"] = 1
    return list(rows.values())


def _identity(label: Label) -> tuple[object, ...]:
    return label.kind, label.launch.key if label.launch else "", label.level, label.x, label.y


def _label_row(label: Label, sizes: int) -> Row:
    row: Row = {"s": label.kind, "level": label.level, "x": rounded(label.x), "y": rounded(label.y), "t": label.text}
    row |= {"k": label.launch.key, "g": label.launch.group_key} if label.launch else {}
    return row | {"p": [None] * sizes}


def _renamed(plane: Plane, sheet: Sheet, one: Sized) -> Drawing:
    """Draw a plane over a wider range, with the names of its roofs where the chart then draws them."""
    drawn = drawing(sheet, plane)
    boxes = name_boxes(slopes(plane), flats(plane, one.size), one.names, sheet)
    return replace(drawn, canvas=replace(drawn.canvas, taken=boxes))
