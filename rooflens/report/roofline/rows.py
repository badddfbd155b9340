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
from rooflens.report.plane.plane import DrawnLaunch, Plane, Point
from rooflens.report.plane.roofs import RATED_DASH, TWIN_DASH, slope_dash
from rooflens.report.roofline.selection import USUAL, name_offsets, shows_gap

Row = dict[str, Any]

SHARED_WORDS = ("name", "verdict", "flags")
"""Fields of a launch that are the same for many."""

NAME_WIDTH = 64
REPORT_WIDTH = 48
DIGITS = 4
"""Significant digits of numbers that are drawn: a thousandth of a decade is a third of a pixel."""


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

    Keys: `v` bytes per second, `e` the flat roof at which it ends, `own` where it limits a launch.
    """
    top = rounded(plane.top)
    own = {point.level for point in plane.points if point.nearest}
    return [
        _roof_row(roof)
        | {"e": top, "level": roof.keys[0], "keys": list(roof.keys)}
        | {"dash": slope_dash(roof.keys[0], is_measured=roof.is_measured)}
        | ({"own": 1} if own.intersection(roof.keys) else {})
        for roof in plane.level_roofs
    ]


def pipe_rows(plane: Plane) -> list[Row]:
    """Make a row per flat roof, the highest first: `v` FLOP per second, `c` the intensity where it begins."""
    steepest = max((roof.peak for roof in plane.level_roofs), default=None)
    begins = (rounded(roof.peak / steepest) if steepest else None for roof in plane.pipe_roofs)
    rows = zip(plane.pipe_roofs, begins, strict=True)
    return [
        _roof_row(roof) | {"c": begin, "key": roof.keys[0], **({} if roof.is_measured else {"dash": RATED_DASH})}
        for roof, begin in rows
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


def _roof_row(roof: RoofLine) -> Row:
    spread = {"lo": rounded(roof.low), "hi": rounded(roof.high)} if roof.spread else {}
    return {"v": rounded(roof.peak)} | spread


def clock_text(clocks_hz: tuple[float, float] | None) -> str:
    """Write a clock, or its range when launches differ by more than a band would show."""
    if clocks_hz is None:
        return ""
    low, high = clocks_hz
    if high / low < BAND_FROM_RATIO:
        return fmt.si((low + high) / 2, "Hz")
    return f"{fmt.si(low, 'Hz')} to {fmt.si(high, 'Hz')}"


def rounded(value: float | None) -> float | int | None:
    """Round to what can be seen; whole numbers take less room without their `.0`."""
    if value is None:
        return None
    rounded = fmt.round_significant(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded
