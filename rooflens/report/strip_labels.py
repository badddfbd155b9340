"""Text at the launches without FLOPs: ranks of the biggest losses and names of the heaviest kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflens.report.picked_boxes import ALL
from rooflens.report.placement import Canvas, Wish, place, rank_spots, spots_around
from rooflens.report.point_labels import heaviest, names_of
from rooflens.report.roofline_rows import rounded
from rooflens.report.sheet import SIZES, point_box, radius_px, strip_lanes, strip_sheet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.report.roofline_data import Plane, StripPoint
    from rooflens.report.roofline_rows import Row
    from rooflens.report.sheet import SizeClass

    Asked = tuple[str, StripPoint, Wish]


def strip_label_rows(plane: Plane, ranks: Mapping[str, int]) -> list[Row]:
    """Make one row per text and level, as the plane's labels are: `s` kind, `t` and `u` text, `p` places."""
    levels = [*dict.fromkeys(point.level for point in plane.strip), ALL]
    return [row for level in levels for row in _level_rows(plane, level, ranks)]


def _level_rows(plane: Plane, level: str, ranks: Mapping[str, int]) -> list[Row]:
    shown = [p for p in plane.strip if (p.nearest if level == ALL else p.level == level)]
    lanes = strip_lanes(plane)
    rows: dict[tuple[str, str], Row] = {}
    for i, size in enumerate(SIZES):
        canvases = [_canvas(plane, shown, width_px) for width_px in size.widths_px]
        for either in (*_ranks(plane, shown, ranks), *_names(plane, shown, size)):
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


def _canvas(plane: Plane, shown: Sequence[StripPoint], width_px: int) -> Canvas:
    sheet, lanes = strip_sheet(plane, width_px), strip_lanes(plane)
    boxes = [point_box(sheet.at(p.share, lanes[p.launch.key]), radius_px(plane, p.launch)) for p in shown]
    return Canvas(sheet.at, sheet.width_px, sheet.height_px, boxes)


def _ranks(plane: Plane, shown: Sequence[StripPoint], ranks: Mapping[str, int]) -> list[list[Asked]]:
    lanes = strip_lanes(plane)
    return [
        [("rank", p, Wish(str(ranks[key]), p.share, lanes[key], rank_spots(radius_px(plane, p.launch)), bold=True))]
        for p in shown
        if (key := p.launch.key) in ranks
    ]


def _names(plane: Plane, shown: Sequence[StripPoint], size: SizeClass) -> list[list[Asked]]:
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
