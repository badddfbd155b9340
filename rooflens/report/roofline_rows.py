"""The plane of `roofline_data` as the rows its chart draws: short keys, finished words, no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.model import units
from rooflens.model.words import resource_label
from rooflens.report import format as fmt
from rooflens.report.roof_labels import label_places
from rooflens.report.words import BOUND_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflens.report.roofline_data import Plane, Point, Roof, StripPoint
    from rooflens.report.rows import Launch

Row = dict[str, Any]

NAME_WIDTH = 64
BAND_FROM_RATIO = 1.03
"""Roofs whose launches differ by more than this get a band from the lowest to the highest."""

GAP_FROM = 1.1
"""A gap smaller than this would be hidden behind its own point."""

LEVEL_MARKS: Mapping[str, str] = {"dram": "H", "l2": "2", "l1": "1", "smem": "S"}
"""Letters that tell the levels apart where all of them are shown."""

WIDE_PX = (740, 440)
NARROW_PX = (270, 320)
"""Sizes of the plane on a usual screen and on a telephone: the names of roofs are placed for both."""

LABEL_ORDER = ("l2", "l1", "smem", "dram")
LABEL_OFFSETS_PX = (14, 28, -14, -28)
NEAR_LEVELS_RATIO = 2.0
"""Levels whose intensities differ by less would write their names over one another."""

STRIP_LANES = 3
STRIP_LANES_ALONE = 9
"""Lanes of the strip below a plane, and where it has the picture to itself."""


def point_rows(plane: Plane, ranks: Mapping[str, int]) -> list[Row]:
    """Make one row per launch and level; large ones first, so that small ones lie on top."""
    ordered = sorted(plane.points, key=lambda point: -(point.launch.time_share or 0.0))
    offsets = _label_offsets(plane.points)
    return [_point_row(point, ranks) | offsets[point.launch.key, point.level] for point in ordered]


def _label_offsets(points: Sequence[Point]) -> dict[tuple[str, str], Row]:
    """Choose where each level's name stands under or over its point, so that names of near levels do not collide.

    `dy` is the distance in pixels, `push` the direction in which a neighbour's own size must be added.
    """
    by_launch: dict[str, dict[str, float]] = {}
    for point in points:
        by_launch.setdefault(point.launch.key, {})[point.level] = point.intensity_flop_per_byte
    return {(key, level): row for key, places in by_launch.items() for level, row in _offsets(places).items()}


def _offsets(places: Mapping[str, float]) -> dict[str, Row]:
    """Give each level the first free offset; the far level is last, for as the usual choice it needs no name."""
    rows: dict[str, Row] = {}
    for level in sorted(places, key=LABEL_ORDER.index):
        near = [other for other, x in places.items() if other != level and _are_near(x, places[level])]
        taken = [rows[other]["dy"] for other in near if other in rows]
        dy = next(offset for offset in LABEL_OFFSETS_PX if offset not in taken)
        rows[level] = {"dy": dy, "push": (1 if dy > 0 else -1) if near else 0}
    return rows


def _are_near(one: float, other: float) -> bool:
    return max(one, other) / min(one, other) < NEAR_LEVELS_RATIO


def _point_row(point: Point, ranks: Mapping[str, int]) -> Row:
    roof, gap = point.roof_flop_per_s, point.gap
    drawn_gap = gap is not None and gap >= GAP_FROM
    return _common(point.launch, point.level, nearest=point.nearest) | {
        "x": units.round_significant(point.intensity_flop_per_byte, 5),
        "y": units.round_significant(point.flop_per_s, 5),
        "roof": units.round_significant(roof, 5) if roof and drawn_gap else None,
        "gap": fmt.factor(gap) if drawn_gap else "",
        "rank": str(ranks.get(point.launch.key, "")),
        "intensity": fmt.intensity(point.intensity_flop_per_byte),
        "achieved": fmt.si(point.flop_per_s, "FLOP/s"),
        "roofText": _roof_text(roof, gap),
    }


def _roof_text(roof: float | None, gap: float | None) -> str:
    if roof is None or gap is None:
        return "not in the report"
    return f"{fmt.si(roof, 'FLOP/s')} ({fmt.percent(1 / gap)} reached)"


def _common(launch: Launch, level: str, *, nearest: bool) -> Row:
    """Make the fields that plane and strip share."""
    return {
        "k": launch.key,
        "name": units.cut_middle(launch.shown, NAME_WIDTH),
        "bound": launch.bound,
        "verdict": BOUND_LABELS[launch.bound],
        "level": level,
        "levelText": resource_label(level),
        "mark": LEVEL_MARKS.get(level, ""),
        "near": nearest,
        "time": units.round_significant(launch.time_share or 0.0, 4),
        "timeText": _time_text(launch),
        "hollow": launch.estimated or launch.bound == "unknown",
    }


def _time_text(launch: Launch) -> str:
    if launch.duration_ns is None:
        return "not in the report"
    return f"{fmt.duration(launch.duration_ns)} ({fmt.percent(launch.time_share)} of GPU time)"


def strip_rows(plane: Plane) -> list[Row]:
    """Make one row per launch without FLOPs and level, spread over a few lanes so that they do not cover each other."""
    lanes = {key: i % lane_count(plane) for i, key in enumerate(dict.fromkeys(p.launch.key for p in plane.strip))}
    return [_strip_row(point, lanes[point.launch.key]) for point in plane.strip]


def lane_count(plane: Plane) -> int:
    """Choose how many lanes spread the strip."""
    launches = len({point.launch.key for point in plane.strip})
    return min(STRIP_LANES if plane.points else STRIP_LANES_ALONE, max(launches, 2))


def _strip_row(point: StripPoint, lane: int) -> Row:
    return _common(point.launch, point.level, nearest=point.nearest) | {
        "share": units.round_significant(point.share, 5),
        "shareText": f"{fmt.percent(point.share)} of the {resource_label(point.level)} peak",
        "lane": lane,
    }


def roof_rows(plane: Plane) -> list[Row]:
    """Make two rows per diagonal roof: where it enters the plane and where it meets the top flat roof."""
    (x_lo, x_hi), (y_lo, y_hi) = plane.x_domain(), plane.y_domain()
    top = max((roof.peak for roof in plane.pipe_roofs), default=y_hi)
    rows = []
    for roof in plane.level_roofs:
        start = max(x_lo, y_lo / roof.peak)
        stop = min(x_hi, top / roof.peak)
        if start < stop:
            rows += [_roof_row(roof, x, end=x == start) for x in (start, stop)]
    return rows


def roof_label_rows(plane: Plane, roofs: Sequence[Row]) -> list[Row]:
    """Make one row per name of a diagonal roof: its place in a wide plane (`x`, `y`) and in a narrow one."""
    ends = zip(roofs[::2], roofs[1::2], strict=True)
    lines = {low["level"]: ((low["x"], high["x"]), low["label"]) for low, high in ends}
    wide, narrow = (label_places(plane, lines, *size) for size in (WIDE_PX, NARROW_PX))
    slopes = {roof.keys[0]: roof.peak for roof in plane.level_roofs}
    return [
        {field: row[field] for field in ("level", "keys", "label")}
        | {"x": wide[key], "y": wide[key] * slopes[key], "nx": narrow[key], "ny": narrow[key] * slopes[key]}
        for row in roofs
        if row["label"] and (key := row["level"])
    ]


def twin_rows(plane: Plane) -> list[Row]:
    """Make two rows per attainable roof: the lighter dashed twin under its diagonal or flat roof."""
    (x_lo, x_hi), (y_lo, y_hi) = plane.x_domain(), plane.y_domain()
    top = max((roof.attainable or roof.peak for roof in plane.pipe_roofs), default=y_hi)
    fastest = max((roof.attainable or roof.peak for roof in plane.level_roofs), default=None)
    rows = []
    for roof in plane.level_roofs:
        if slope := roof.attainable:
            rows += _twin(roof, [(x, x * slope) for x in (max(x_lo, y_lo / slope), min(x_hi, top / slope))])
    for roof in plane.pipe_roofs:
        if flat := roof.attainable:
            rows += _twin(roof, [(x, flat) for x in (max(x_lo, flat / fastest if fastest else x_lo), x_hi)])
    return rows


def _twin(roof: Roof, ends: Sequence[tuple[float, float]]) -> list[Row]:
    return [{"key": roof.keys[0], "x": x, "y": y} for x, y in ends if ends[0][0] < ends[1][0]]


def _roof_row(roof: Roof, x: float, *, end: bool) -> Row:
    names = ", ".join(resource_label(key) for key in roof.keys)
    return {
        "level": roof.keys[0],
        "keys": list(roof.keys),
        "x": x,
        "y": x * roof.peak,
        "lo": x * roof.low,
        "hi": x * roof.high,
        "band": roof.high / roof.low > BAND_FROM_RATIO,
        "label": f"{names}  {fmt.si(roof.peak, 'B/s')}" if end else "",
    }


def pipe_rows(plane: Plane, label_step_ratio: float) -> list[Row]:
    """Make one row per flat roof, from where the fastest level meets it; labels keep `label_step_ratio` apart."""
    fastest = max((roof.peak for roof in plane.level_roofs), default=None)
    (x_lo, x_hi) = plane.x_domain()
    rows: list[Row] = []
    for roof in plane.pipe_roofs:
        start = min(max(x_lo, roof.peak / fastest), x_hi) if fastest else x_lo
        rows.append(_pipe_row(roof, (start, x_hi), plane.clocks_hz, rows, label_step_ratio))
    return rows


def _pipe_row(
    roof: Roof,
    span: tuple[float, float],
    clocks_hz: tuple[float, float] | None,
    above: Sequence[Row],
    label_step_ratio: float,
) -> Row:
    names = ", ".join(resource_label(key) for key in roof.keys)
    value = f"{names}  {fmt.si(roof.peak, 'FLOP/s')}"
    clock = clock_text(clocks_hz)
    return {
        "x": span[0],
        "x2": span[1],
        "y": roof.peak,
        "lo": roof.low,
        "hi": roof.high,
        "band": roof.high / roof.low > BAND_FROM_RATIO,
        "labelY": min(roof.peak, above[-1]["labelY"] / label_step_ratio) if above else roof.peak,
        "short": value.removesuffix("FLOP/s"),
        "long": f"{value} at {clock}" if clock else value,
    }


def clock_text(clocks_hz: tuple[float, float] | None) -> str:
    """Write a clock, or its range when launches differ by more than a band would show."""
    if clocks_hz is None:
        return ""
    low, high = clocks_hz
    if high / low < BAND_FROM_RATIO:
        return fmt.si((low + high) / 2, "Hz")
    return f"{fmt.si(low, 'Hz')} to {fmt.si(high, 'Hz')}"
