"""Text at points: ranks of the biggest losses, ridges of the roofs, names of the heaviest kernels.

All of it is placed here, level by level and for each class of sizes, because Vega-Lite places no labels: what would
overlap other text, a point or the edge of the plane is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from math import log10
from typing import TYPE_CHECKING, Literal

from rooflens import format as fmt
from rooflens.model.verdict.sentences import LEVEL_LABELS
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.placement import LINE_PX, Canvas, Spot, Wish, place, rank_spots, spots_around
from rooflens.report.plane.roof_names import CORNER_PX, at_level, point_boxes
from rooflens.report.plane.short_names import LABEL_WIDTH, NARROW_LABEL_WIDTH, short_names
from rooflens.report.plane.viewport import CROWD, SIZES, point_box, radius_px, strip_lanes, strip_sheet
from rooflens.report.roofline.rows import rounded
from rooflens.report.roofline.selection import ALL, LEVEL_MARKS, own_boxes, shown_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflens.model.launches import Launch
    from rooflens.report.plane.placement import Place
    from rooflens.report.plane.plane import Plane, Point, StripPoint
    from rooflens.report.plane.roof_names import Drawing
    from rooflens.report.plane.viewport import SizeClass
    from rooflens.report.roofline.rows import Row
    from rooflens.report.roofline.selection import Request

    Kind = Literal["rank", "ridge", "mark", "name"]
    Asked = tuple[str, StripPoint, Wish]


SAME_PLACE_DECADES = 0.1
"""Points nearer than this are one place with one mark."""

NAMED_LAUNCHES = 4
"""With no more launches than this, names of levels take the place of their letters."""

LAUNCHES_TRIED = 6
"""Launches of one kernel at which its name is tried."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text at one size of the plane.

    Attributes:
        launch: None for a ridge, which belongs to no launch.
        spot: None where it does not fit.
        alone: Its spot while its kernel is isolated; None where it does not fit then.
    """

    kind: Kind
    text: str
    x: float
    y: float
    launch: Launch | None
    level: str
    spot: Spot | None = None
    alone: Spot | None = None

    @property
    def wish(self) -> Wish:
        """Ask for its spot again."""
        return Wish(self.text, self.x, self.y, [self.spot] if self.spot else [], bold=self.kind == "rank")


def levels_shown(plane: Plane) -> tuple[str, ...]:
    """List what the selector of levels offers."""
    levels = tuple(dict.fromkeys(point.level for point in plane.points))
    return (*(level for level in plane.levels if level in levels), ALL)


def place_labels(request: Request, size: SizeClass, drawn: Sequence[Drawing]) -> list[Label]:
    """Place the text of one level at one class of sizes; ranks first, names last."""
    canvases = [_canvas(request, size, one) for one in drawn]
    single = chain(_ranks(request), _ridges(request), _marks(request, size))
    alternatives = chain(([one] for one in single), _names(request, size))
    return [label for either in alternatives if (label := _first_placed(either, canvases))]


def _first_placed(alternatives: Iterable[tuple[Label, Wish]], canvases: Sequence[Canvas]) -> Label | None:
    for label, wish in alternatives:
        before = [replace(canvas, taken=list(canvas.taken)) for canvas in canvases] if wish.own else []
        if spot := place(replace(wish, own=None), canvases):
            return replace(label, spot=spot, alone=_place_alone(wish, spot, before) if wish.own else spot)
    return None


def _place_alone(wish: Wish, spot: Spot, canvases: Sequence[Canvas]) -> Spot | None:
    """Keep a name's spot where it is clear of all that appears when its launch is picked, or find another for then."""
    kept = place(replace(wish, spots=[spot]), [replace(canvas, taken=list(canvas.taken)) for canvas in canvases])
    return kept or place(wish, canvases)


def still_free(labels: Iterable[Label], request: Request, drawn: Drawing) -> list[Label]:
    """Keep the labels that are also free in another drawing, such as one with room for other roofs."""
    canvas = _canvas(request, SIZES[0], drawn)
    return [one for one in labels if one.spot and place(one.wish, [canvas])]


def _canvas(request: Request, size: SizeClass, drawn: Drawing) -> Canvas:
    """Begin with what text must keep clear of: points, names of roofs, and all that belongs to the picked launch."""
    plane, canvas = request.plane, drawn.canvas
    own = own_boxes(request, request.picked, size, canvas.at)
    points = point_boxes(plane, at_level(plane, request.level), drawn.sheet)
    dots = [Box(*canvas.at(x, y), CORNER_PX, CORNER_PX) for x, y in corners(request)]
    return replace(canvas, taken=[*canvas.taken, *points, *dots, *own], lines=list(canvas.lines))


def _wanted(kind: Kind, text: str, point: Point, request: Request, spots: Sequence[Spot]) -> tuple[Label, Wish]:
    x, y = point.intensity_flop_per_byte, point.flop_per_s
    label = Label(kind, text, x, y, point.launch, request.level)
    return label, Wish(text, x, y, spots, bold=kind == "rank")


def _ranks(request: Request) -> Iterator[tuple[Label, Wish]]:
    """Ask for the numbers of the biggest losses."""
    ranked = [point for point in shown_at(request.plane, request.level) if point.launch.key in request.ranks]
    for point in sorted(ranked, key=lambda point: request.ranks[point.launch.key]):
        spots = rank_spots(radius_px(request.plane, point.launch))
        yield _wanted("rank", str(request.ranks[point.launch.key]), point, request, spots)


def corners(request: Request) -> tuple[tuple[float, float], ...]:
    """List the ridges that are shown at a level; where all are shown, those of the first."""
    return request.plane.ridges(request.plane.first_level if request.level == ALL else request.level)


def ridge_text(flop_per_byte: float) -> str:
    """Name a ridge by its intensity."""
    return f"ridge {fmt.intensity(flop_per_byte)}"


def _ridges(request: Request) -> Iterator[tuple[Label, Wish]]:
    """Ask for the intensities of the corners of the level's roofs."""
    for x, y in corners(request):
        text = ridge_text(x)
        yield Label("ridge", text, x, y, None, request.level), Wish(text, x, y, ridge_spots())


def ridge_spots() -> list[Spot]:
    """List the places of a ridge's intensity: over the corner to its left, then under it to its right, then farther."""
    above, below = -LINE_PX / 2 - 4, LINE_PX / 2 + 4
    near = [Spot(-4, above, -1), Spot(8, below, 1), Spot(0, above, 0), Spot(4, above, 1)]
    return [*near, Spot(-4, above - LINE_PX, -1), Spot(4, above - LINE_PX, 1), Spot(14, below + LINE_PX, 1)]


def _marks(request: Request, size: SizeClass) -> Iterator[tuple[Label, Wish]]:
    """Ask for the names or letters of levels where all of them are shown; a crowd would fill the plane with them."""
    launches = {point.launch.key for point in request.plane.points}
    if request.level != ALL or len(launches) > CROWD or len(request.plane.levels) == 1:
        return
    words = LEVEL_MARKS if len(launches) > NAMED_LAUNCHES or size.narrow else LEVEL_LABELS
    for point in _apart(request.plane.points):
        r = radius_px(request.plane, point.launch) + LINE_PX / 2 + 2
        beside = radius_px(request.plane, point.launch) + 3
        spots = [Spot(0, r, 0), Spot(0, -r, 0), Spot(beside, 0, 1), Spot(-beside, 0, -1)]
        yield _wanted("mark", words[point.level], point, request, spots)


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


def _names(request: Request, size: SizeClass) -> Iterator[list[tuple[Label, Wish]]]:
    """Ask for the names of the kernels with most time, each at the longest of its launches that has room."""
    points = {point.launch.key: point for point in shown_at(request.plane, request.level)}
    names = names_of(request.plane, size)
    for text, launches in heaviest((point.launch for point in points.values()), names, size):
        either = []
        for launch in launches:
            label, wish = _wanted(
                "name", text, points[launch.key], request, spots_around(radius_px(request.plane, launch))
            )
            either.append((label, replace(wish, own=_own(request, launch.key, size))))
        yield either


def names_of(plane: Plane, size: SizeClass) -> dict[str, str]:
    """Give short names to the kernels of a plane and its strip, by group key."""
    return short_names((p.launch for p in plane.placed), NARROW_LABEL_WIDTH if size.narrow else LABEL_WIDTH)


def heaviest(launches: Iterable[Launch], names: Mapping[str, str], size: SizeClass) -> list[tuple[str, list[Launch]]]:
    """List the kernels with most time that a size may name: short name, and longest launches."""
    by_kernel: dict[str, list[Launch]] = {}
    for launch in sorted(launches, key=lambda launch: -(launch.time_share or 0.0)):
        by_kernel.setdefault(launch.group_key, []).append(launch)
    return [(names[key], own[:LAUNCHES_TRIED]) for key, own in list(by_kernel.items())[: size.names]]


def _own(request: Request, key: str, size: SizeClass) -> Callable[[Place], list[Box]]:
    """Keep a name clear of what appears when its own launch is picked."""
    return lambda at: own_boxes(request, key, size, at)


def strip_label_rows(plane: Plane, ranks: Mapping[str, int]) -> list[Row]:
    """Make one row per text and level, as the plane's labels are: `s` kind, `t` and `u` text, `p` places."""
    levels = [*dict.fromkeys(point.level for point in plane.strip), ALL]
    return [row for level in levels for row in _level_rows(plane, level, ranks)]


def _level_rows(plane: Plane, level: str, ranks: Mapping[str, int]) -> list[Row]:
    shown = [p for p in plane.strip if (p.nearest if level == ALL else p.level == level)]
    lanes = strip_lanes(plane)
    rows: dict[tuple[str, str], Row] = {}
    for i, size in enumerate(SIZES):
        canvases = [_strip_canvas(plane, shown, width_px) for width_px in size.widths_px]
        for either in (*_strip_ranks(plane, shown, ranks), *_strip_names(plane, shown, size)):
            found = next(((*one, spot) for one in either if (spot := place(one[2], canvases))), None)
            if found is None:
                continue
            kind, point, wish, spot = found
            row = rows.setdefault((kind, point.launch.key), _row(kind, wish.text, point, lanes[point.launch.key]))
            row["level"] = level
            row["p"][i] = spot.row
            if wish.text != row["t"]:
                row["u"] = wish.text
    return list(rows.values())


def _row(kind: str, text: str, point: StripPoint, lane: int) -> Row:
    keys = {"k": point.launch.key, "g": point.launch.group_key}
    return {"s": kind, **keys, "share": rounded(point.share), "lane": lane, "t": text, "p": [None] * len(SIZES)}


def _strip_canvas(plane: Plane, shown: Sequence[StripPoint], width_px: int) -> Canvas:
    sheet, lanes = strip_sheet(plane, width_px), strip_lanes(plane)
    boxes = [point_box(sheet.at(p.share, lanes[p.launch.key]), radius_px(plane, p.launch)) for p in shown]
    return Canvas(sheet.at, sheet.width_px, sheet.height_px, boxes)


def _strip_ranks(plane: Plane, shown: Sequence[StripPoint], ranks: Mapping[str, int]) -> list[list[Asked]]:
    lanes = strip_lanes(plane)
    return [
        [("rank", p, Wish(str(ranks[key]), p.share, lanes[key], rank_spots(radius_px(plane, p.launch)), bold=True))]
        for p in shown
        if (key := p.launch.key) in ranks
    ]


def _strip_names(plane: Plane, shown: Sequence[StripPoint], size: SizeClass) -> list[list[Asked]]:
    """Ask for the names of the kernels with most time, each at the longest of its launches that has room."""
    lanes, points = strip_lanes(plane), {point.launch.key: point for point in shown}
    return [
        [
            ("name", points[key], Wish(text, points[key].share, lanes[key], spots_around(radius_px(plane, launch))))
            for launch in launches
            if (key := launch.key)
        ]
        for text, launches in heaviest((point.launch for point in shown), names_of(plane, size), size)
    ]
