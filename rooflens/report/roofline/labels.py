"""All text of the roofline's plane: names of roofs, numbers of the ranking, ridges, names of the heaviest kernels.

All of it is placed here, level by level and for each class of sizes, because Vega-Lite places no labels: what would
overlap other text, a point or the edge of the plane is dropped. What belongs to a picked launch comes and goes: the
chart draws it over other words, on cleared ground.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log10
from typing import TYPE_CHECKING, Any, Literal

from rooflens.model.verdict.sentences import LEVEL_LABELS
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.names import LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.placement import LINE_PX, Canvas, Spot, Text, around, rank_spots, ridge_spots
from rooflens.report.plane.roofs import CORNER_PX, Flat, Roofs, Slope, flat_names, ridge_text, slope_names
from rooflens.report.plane.viewport import CROWD, SIZES, WIDE, Sheet, point_box, radius_px, strip_lanes, strip_sheet
from rooflens.report.roofline.rows import clock_text, rounded
from rooflens.report.roofline.selection import ALL, LEVEL_MARKS, own_boxes, shown_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflens.model.launches import Launch
    from rooflens.model.roofline.roofs import Roof
    from rooflens.report.plane.plane import Domain, Plane, Point, StripPoint
    from rooflens.report.plane.viewport import SizeClass, Viewport
    from rooflens.report.roofline.rows import Row

    Kind = Literal["rank", "ridge", "mark", "name"]
    Domains = tuple[Domain, Domain]

SAME_PLACE_DECADES = 0.1
"""Points nearer than this are one place with one mark."""

NAMED_LAUNCHES = 4
"""With no more launches than this, names of levels take the place of their letters."""

LAUNCHES_TRIED = 3
"""Launches of one kernel at which its name is tried."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a launch, or at a ridge, which belongs to none."""

    kind: Kind
    launch: Launch | None
    text: Text


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plane at one class of sizes, with the names of its roofs placed; `alone` without those of another GPU."""

    size: SizeClass
    canvas: Canvas
    roofs: Mapping[str, list[Any]]
    alone: bool


def drawings(plane: Plane, picked: str, wider: Domains | None) -> list[Drawing]:
    """Draw a plane at each class of sizes, and once more over the wider range that other GPUs' roofs need."""
    own = (plane.x_domain(), plane.y_domain())
    drawn = [_drawing(plane, picked, size, own, alone=True) for size in SIZES]
    return [*drawn, _drawing(plane, picked, WIDE, wider, alone=False)] if wider else drawn


def _drawing(plane: Plane, picked: str, size: SizeClass, domains: Domains, *, alone: bool) -> Drawing:
    view = Sheet(*domains, size.width_px, size.height_px)
    roofs = Roofs(tuple(_slopes(plane)), tuple(_flats(plane, size)), *domains)
    canvas = Canvas(view, lines=list(roofs.lines(view)))
    gaps = [p for p in shown_at(plane, plane.first_level) if p.launch.key == picked]
    avoid = [_point_box(plane, point, view) for point in plane.points]
    avoid += [box for point in gaps for box in own_boxes(plane, point, view, level=plane.first_level)]
    return Drawing(size, canvas, roofs.name(canvas, avoid), alone)


def _slopes(plane: Plane) -> Iterator[Slope]:
    for roof in plane.level_roofs:
        yield Slope(roof.keys[0], roof.peak, plane.top, slope_names(roof.keys, roof.peak))


def _flats(plane: Plane, size: SizeClass) -> Iterator[Flat]:
    """Name the flat roofs; a narrow plane has no room for the clock."""
    fastest = max((roof.peak for roof in plane.level_roofs), default=None)
    for roof in plane.pipe_roofs:
        names = pipe_names(roof, plane.clocks_hz)
        begin = roof.peak / fastest if fastest else None
        yield Flat(roof.keys[0], roof.peak, names[-1:] if size.narrow else names[:-1], begin)


def pipe_names(roof: Roof, clocks_hz: tuple[float, float] | None) -> tuple[str, ...]:
    """Name a flat roof with its instruction, value and clock, then shorter."""
    # The key of wgmma and tcgen05 names the instruction, the key of mma does not.
    mark = " mma" if roof.instruction == "mma" else ""
    return flat_names(roof.keys, roof.peak, mark=mark, clock=clock_text(clocks_hz))


def with_wider(drawn: Sequence[Drawing]) -> Sequence[Drawing]:
    """List the drawings by slot: the classes of sizes, then those while roofs of another GPU are shown too.

    Only the wide one is drawn anew for these; in the others words of launches are left out, and roofs keep their names.
    """
    return [*drawn, *drawn[1 : len(SIZES)]] if len(drawn) > len(SIZES) else drawn


def roof_places(drawn: Sequence[Drawing], key: str) -> list[list[Any] | None]:
    """List the place of a roof's name by slot."""
    return [one.roofs.get(key) for one in with_wider(drawn)]


def _point_box(plane: Plane, point: Point, view: Viewport) -> Box:
    return point_box(view.at(point.intensity_flop_per_byte, point.flop_per_s), radius_px(plane, point.launch))


def levels_shown(plane: Plane) -> tuple[str, ...]:
    """List what the selector of levels offers."""
    levels = tuple(dict.fromkeys(point.level for point in plane.points))
    return (*(level for level in plane.levels if level in levels), ALL)


def label_rows(plane: Plane, drawn: Sequence[Drawing], ranks: Mapping[str, int], picked: str) -> list[Row]:
    """Make one row per text at a point or a corner and level.

    Keys: `s` kind, `k` and `g` where it belongs to a launch, `t` text, `p` places at each class of sizes, and at last
    while roofs of another GPU are shown too.
    """
    rows: dict[tuple[object, ...], Row] = {}
    for level in levels_shown(plane):
        for i, one in enumerate(drawn):
            for label, place in _level_labels(plane, level, one, ranks, picked):
                launch, text = label.launch, label.text
                key = (label.kind, launch.key if launch else "", level, text.x, text.y)
                row = rows.setdefault(key, _label_row(label, level, place[0]) | {"p": [None] * len(drawn)})
                row["p"][i] = ["" if place[0] == row["t"] else place[0], *place[1:]]
    return list(rows.values())


def _label_row(label: Label, level: str, words: str) -> Row:
    keys = {"k": label.launch.key, "g": label.launch.group_key} if label.launch else {}
    return {"s": label.kind, "level": level, "x": rounded(label.text.x), "y": rounded(label.text.y), "t": words} | keys


def _level_labels(
    plane: Plane, level: str, one: Drawing, ranks: Mapping[str, int], picked: str
) -> Iterator[tuple[Label, list[Any]]]:
    """Place the text of one level at one class of sizes; ranks first, names last."""
    view, canvas = one.canvas.view, one.canvas.copy()
    shown = shown_at(plane, level)
    corners = plane.ridges(plane.first_level if level == ALL else level)
    canvas.taken.extend(_point_box(plane, point, view) for point in plane.points if level in {ALL, point.level})
    canvas.taken.extend(Box(*view.at(x, y), CORNER_PX, CORNER_PX, view.at(x, y)[0]) for x, y in corners)
    for point in shown:
        if point.launch.key == picked:
            canvas.taken.extend(own_boxes(plane, point, view, level=level))
    # Names of the other GPU's roofs may stand at the ridges.
    named = corners if one.alone else ()
    ridges = (Label("ridge", None, Text((ridge_text(x),), x, y, ridge_spots())) for x, y in named)
    for label in (*_ranks(plane, shown, ranks), *ridges, *_marks(plane, level, one.size)):
        if place := canvas.place(label.text):
            yield label, place
    for launches in _names(plane, shown, one.size):
        for label, point in launches:
            own = tuple(own_boxes(plane, point, view, level=level))
            if place := canvas.place(replace(label.text, own=own)):
                yield label, place
                break


def _at(kind: Kind, words: str, point: Point, spots: Iterable[Spot]) -> Label:
    place = point.intensity_flop_per_byte, point.flop_per_s
    return Label(kind, point.launch, Text((words,), *place, list(spots), bold=kind == "rank"))


def _ranks(plane: Plane, shown: Iterable[Point], ranks: Mapping[str, int]) -> list[Label]:
    """Ask for the numbers of the ranking."""
    ranked = sorted((p for p in shown if p.launch.key in ranks), key=lambda point: ranks[point.launch.key])
    return [_at("rank", str(ranks[p.launch.key]), p, rank_spots(radius_px(plane, p.launch))) for p in ranked]


def _marks(plane: Plane, level: str, size: SizeClass) -> Iterator[Label]:
    """Ask for the names or letters of levels where all of them are shown; a crowd would fill the plane with them."""
    launches = {point.launch.key for point in plane.points}
    if level != ALL or len(launches) > CROWD or len(plane.levels) == 1:
        return
    words = LEVEL_MARKS if len(launches) > NAMED_LAUNCHES or size.narrow else LEVEL_LABELS
    for point in _apart(plane.points):
        r = radius_px(plane, point.launch) + LINE_PX / 2 + 2
        side = radius_px(plane, point.launch) + 3
        spots = [Spot(0, r, 0), Spot(0, -r, 0), Spot(side, 0, 1), Spot(-side, 0, -1)]
        yield _at("mark", words[point.level], point, spots)


def _apart(points: Iterable[Point]) -> list[Point]:
    """Leave out points at the same level that stand almost where another one does: one mark tells both."""
    kept: list[Point] = []
    for point in points:
        if not any(point.level == other.level and _near(point, other) for other in kept):
            kept.append(point)
    return kept


def _near(one: Point, other: Point) -> bool:
    x = abs(log10(one.intensity_flop_per_byte / other.intensity_flop_per_byte))
    return x < SAME_PLACE_DECADES and abs(log10(one.flop_per_s / other.flop_per_s)) < SAME_PLACE_DECADES


def _names(plane: Plane, shown: Iterable[Point], size: SizeClass) -> Iterator[list[tuple[Label, Point]]]:
    """Ask for the names of the kernels with most time, each at the longest of its launches that has room."""
    points = {point.launch.key: point for point in shown}
    for words, launches in heaviest(plane, (point.launch for point in points.values()), size):
        yield [
            (_at("name", words, points[one.key], around(radius_px(plane, one))), points[one.key]) for one in launches
        ]


def heaviest(plane: Plane, launches: Iterable[Launch], size: SizeClass) -> list[tuple[str, list[Launch]]]:
    """List the kernels with most time that a size may name: short name, and longest launches."""
    kernels = {p.launch.group_key: p.launch.analysis for p in plane.placed}
    names = short_names(kernels, NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH)
    by_kernel: dict[str, list[Launch]] = {}
    for launch in sorted(launches, key=lambda launch: -(launch.time_share or 0.0)):
        by_kernel.setdefault(launch.group_key, []).append(launch)
    return [(names[key], own[:LAUNCHES_TRIED]) for key, own in list(by_kernel.items())[: size.names]]


def strip_label_rows(plane: Plane, ranks: Mapping[str, int]) -> list[Row]:
    """Make one row per text of the strip and level, as the plane's labels are: `s` kind, `t` text, `p` places."""
    rows: dict[tuple[str, str, str], Row] = {}
    for level in (*dict.fromkeys(point.level for point in plane.strip), ALL):
        shown = [p for p in plane.strip if (p.nearest if level == ALL else p.level == level)]
        for i, size in enumerate(SIZES):
            for kind, point, lane, place in _strip_labels(plane, shown, size, ranks):
                row: Row = {"s": kind, "level": level, "k": point.launch.key, "g": point.launch.group_key}
                row |= {"share": rounded(point.share), "lane": lane, "t": place[0], "p": [None] * len(SIZES)}
                row = rows.setdefault((level, kind, point.launch.key), row)
                row["p"][i] = ["" if place[0] == row["t"] else place[0], *place[1:]]
    return list(rows.values())


def _strip_labels(
    plane: Plane, shown: list[StripPoint], size: SizeClass, ranks: Mapping[str, int]
) -> Iterator[tuple[Kind, StripPoint, int, list[Any]]]:
    """Place the text of one level of the strip at one class of sizes."""
    view, lanes = strip_sheet(plane, size.width_px), strip_lanes(plane)
    canvas = Canvas(view)
    for point in shown:
        at = view.at(point.share, lanes[point.launch.key])
        canvas.taken.append(point_box(at, radius_px(plane, point.launch)))
    points = {point.launch.key: point for point in shown}
    wanted: list[tuple[Kind, str, list[Launch]]] = [
        ("rank", str(ranks[p.launch.key]), [p.launch]) for p in shown if p.launch.key in ranks
    ]
    wanted += [("name", words, own) for words, own in heaviest(plane, (p.launch for p in shown), size)]
    for kind, words, launches in wanted:
        for launch in launches:
            point, lane = points[launch.key], lanes[launch.key]
            spots = (rank_spots if kind == "rank" else around)(radius_px(plane, launch))
            if place := canvas.place(Text((words,), point.share, lane, spots, bold=kind == "rank")):
                yield kind, point, lane, place
                break
