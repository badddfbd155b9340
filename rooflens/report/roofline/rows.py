"""A plane as the rows that its chart draws: short keys, numbers rounded, no colour.

What belongs to a launch is stored once, in the rows of `kernel_rows`; the chart looks it up for each level.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rooflens import format as fmt
from rooflens.model.roofline.roofs import BAND_FROM_RATIO, RoofLine
from rooflens.model.roofline.unit_names import binding_label
from rooflens.report.html.theme import is_hollow
from rooflens.report.plane.marks import rounded
from rooflens.report.plane.plane import DrawnLaunch, Plane, Point
from rooflens.report.plane.roofs import TWIN_DASH, flat_row, joined, slope_row
from rooflens.report.roofline.selection import USUAL, name_offsets, shows_gap

Row = dict[str, Any]

SHARED_WORDS = ("name", "verdict", "flags")
"""Fields of a launch that are the same for many."""

NAME_WIDTH = 64
REPORT_WIDTH = 48


def kernel_rows(plane: Plane) -> tuple[list[Row], list[str]]:
    """Make a row per drawn launch, with its words, without empty fields.

    Keys: `k` launch, `time` share of GPU time, `peers` launches of the kernel in the plane, `report` its label where
    the page holds several.

    Returns:
        The rows, and the words that many launches share: `name`, `verdict` and `flags` of a row are places in them.
    """
    peers = Counter(launch.group_key for launch in plane.launches)
    texts: dict[str, int] = {}
    launches = {one.launch.key: one.launch for one in plane.placed}
    rows = [_kernel_row(launch, peers[launch.group_key]) for launch in launches.values()]
    for row in rows:
        row |= {key: texts.setdefault(row[key], len(texts)) for key in SHARED_WORDS if key in row}
    return rows, list(texts)


def _kernel_row(launch: DrawnLaunch, peers: int) -> Row:
    row = {
        "k": launch.key,
        "name": fmt.cut_middle(launch.shown, NAME_WIDTH),
        "bound": launch.shown_class,
        "time": rounded(launch.time_share),
        "timeText": launch.time_words,
        "verdict": launch.verdict_words,
        "limiter": launch.limiter_words,
        "sure": launch.confidence,
        "peers": peers,
        "report": fmt.cut_middle(launch.report, REPORT_WIDTH),
        "flags": launch.flag_words,
        "hollow": 1 if is_hollow(launch.shown_class) else None,
        "estimated": 1 if launch.estimated else None,
        "numbered": 1 if launch.rank else None,
    }
    return {key: value for key, value in row.items() if value not in {None, ""}}


def point_rows(plane: Plane) -> list[Row]:
    """Make a row per launch and level; large ones first, so that small ones lie on top."""
    ordered = sorted(plane.points, key=lambda point: -point.launch.time_share)
    by_launch: dict[str, dict[str, float]] = {}
    for point in plane.points:
        by_launch.setdefault(point.launch.key, {})[point.level] = point.intensity
    offsets = {key: name_offsets(places) for key, places in by_launch.items()}
    rows = []
    for point in ordered:
        offset = offsets[point.launch.key][point.level]
        rows.append(_point_row(point) | ({} if offset == USUAL else {"dy": offset.dy, "push": offset.push}))
    return rows


def _point_row(point: Point) -> Row:
    row = {
        "k": point.launch.key,
        "g": point.launch.group_key,
        "level": point.level,
        "near": 1 if point.nearest else None,
        "bytes": rounded(point.traffic_bytes) or None,
        "rate": rounded(point.bytes_per_s) or None,
        "share": rounded(point.bandwidth_share),
        "x": rounded(point.intensity),
        "y": rounded(point.per_s),
        "limit": rounded(point.limit_per_s),
        "binds": binding_label(point.binding) if point.binding else None,
        "gap": 1 if shows_gap(point) else None,
        "u": None if point.counts == "FLOP" else point.counts,
    }
    return {key: value for key, value in row.items() if value is not None or key == "limit"}


def roof_rows(plane: Plane) -> list[Row]:
    """Make a row per diagonal roof, the fastest first.

    Keys: those of `slope_row`, `own` where it limits a launch, `keys` the levels that share it, the first as `level`.
    """
    own = {point.level for point in plane.points if point.nearest}
    return [
        slope_row(roof.keys[0], roof.peak, plane.top, is_measured=roof.is_measured)
        | _spread(roof)
        | {"level": roof.keys[0], "keys": list(roof.keys)}
        | ({"own": 1} if own.intersection(roof.keys) else {})
        for roof in plane.level_roofs
    ]


def pipe_rows(plane: Plane) -> list[Row]:
    """Make a row per flat roof, the highest first: the keys of `flat_row`, and its own."""
    steepest = max((roof.peak for roof in plane.level_roofs), default=None)
    return [
        flat_row(roof.peak, steepest, is_measured=roof.is_measured) | _spread(roof) | {"key": roof.keys[0]}
        for roof in plane.pipe_roofs
    ]


def twin_rows(plane: Plane) -> dict[str, list[Row]]:
    """Make the rows of attainable roofs, and of DRAM at its own top clock."""
    top = max((roof.attainable or roof.peak for roof in plane.pipe_roofs), default=None)
    steepest = max((roof.attainable or roof.peak for roof in plane.level_roofs), default=None)
    slopes = [(roof.attainable, top) for roof in plane.level_roofs if roof.attainable]
    slopes += [(roof.full_clock, plane.top) for roof in plane.level_roofs if roof.full_clock]
    flats = [roof.attainable for roof in plane.pipe_roofs if roof.attainable]
    rows = {
        "twinSlopes": [{"v": rounded(peak), "e": rounded(end), "dash": TWIN_DASH} for peak, end in slopes],
        "twinFlats": [
            {"v": rounded(peak), "c": rounded(peak / steepest) if steepest else None, "dash": TWIN_DASH}
            for peak in flats
        ],
    }
    return {name: own for name, own in rows.items() if own}


def _spread(roof: RoofLine) -> Row:
    """Say from where to where the peaks of its launches lie."""
    return {"lo": rounded(roof.low), "hi": rounded(roof.high)} if roof.spread else {}


POINT_KEYS = (
    "launch",
    "kernel",
    "report",
    "gpu",
    "level",
    "is_binding",
    "counts",
    "intensity_flop_per_byte",
    "flop_per_s",
    "limit_flop_per_s",
    "limited_by",
    "time_share",
    "verdict",
    "is_estimated",
)
ROOF_KEYS = ("gpu", "resource", "name", "kind", "bytes_per_s", "flop_per_s", "is_measured")
"""Keys of the rows that anyone can read; `Report.points` and `Report.roofs` say what they mean."""


def point_records(plane: Plane) -> list[Row]:
    """Make a row per launch and level in words and units that anyone can read; large ones first."""
    return [
        dict(zip(POINT_KEYS, _point_values(plane.gpu, point), strict=True))
        for point in sorted(plane.points, key=lambda point: -point.launch.time_share)
    ]


def _point_values(gpu: str, point: Point) -> tuple[Any, ...]:
    launch = point.launch
    return (
        launch.key,
        launch.shown,
        launch.report or None,
        gpu,
        point.level,
        point.nearest,
        point.counts,
        point.intensity,
        point.per_s,
        point.limit_per_s,
        binding_label(point.binding) if point.binding else None,
        launch.time_share,
        launch.shown_class,
        launch.estimated,
    )


def roof_records(plane: Plane) -> list[Row]:
    """Make a row per roof, and per lighter one, in words and units that anyone can read: diagonal ones first."""
    return [
        dict(zip(ROOF_KEYS, (plane.gpu, roof.keys[0], name, kind, *rates, roof.is_measured), strict=True))
        for roofs in (plane.level_roofs, plane.pipe_roofs)
        for roof in roofs
        for name in (joined(roof.keys, plane.gpu),)
        for kind, value in (("peak", roof.peak), ("attainable", roof.attainable), ("full_clock", roof.full_clock))
        if value
        for rates in ((value, None) if roofs is plane.level_roofs else (None, value),)
    ]


def clock_text(clocks_hz: tuple[float, float] | None) -> str:
    """Write a clock, or its range when launches differ by more than a band would show."""
    if clocks_hz is None:
        return ""
    low, high = clocks_hz
    if high / low < BAND_FROM_RATIO:
        return fmt.si((low + high) / 2, "Hz")
    return f"{fmt.si(low, 'Hz')} to {fmt.si(high, 'Hz')}"
