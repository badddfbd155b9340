"""The plane of `roofline_data` as the rows its chart draws: short keys, numbers rounded, no colour.

What belongs to a launch is stored once, in the rows of `kernel_rows`; the chart looks it up for each level.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rooflens import format as fmt
from rooflens.model.roofline.roofs import BAND_FROM_RATIO, Roof
from rooflens.model.summary import Launch, cautions
from rooflens.model.verdict.sentences import bottleneck_words, resource_label, unmeasured_words
from rooflens.report.html.theme import is_hollow
from rooflens.report.plane.plane import Plane, Point
from rooflens.report.roofline.selection import GAP_FROM, USUAL, name_offsets
from rooflens.report.words.labels import BOUND_LABELS, flag_name, stall_label

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
    launches = {point.launch.key: point.launch for point in plane.placed}
    drawn = {point.launch.key: point.launch for point in plane.points}
    peers = Counter(launch.group_key for launch in drawn.values())
    texts: dict[str, int] = {}
    rows = [
        _kernel_row(
            launch,
            peers[launch.group_key],
            plane.reports.get(launch.analysis.kernel.digest, ""),
            is_numbered=key in plane.numbered,
        )
        for key, launch in launches.items()
    ]
    for row in rows:
        row |= {key: texts.setdefault(row[key], len(texts)) for key in SHARED_WORDS if key in row}
    return rows, list(texts)


def _kernel_row(launch: Launch, peers: int, report: str, *, is_numbered: bool) -> Row:
    verdict = launch.analysis.verdict
    row = {
        "k": launch.key,
        "name": fmt.cut_middle(launch.shown, NAME_WIDTH),
        "bound": launch.shown_class,
        "time": rounded(launch.time_share or 0.0),
        "timeText": _time_text(launch),
        "verdict": _verdict_text(launch),
        "limiter": bottleneck_words(verdict.bottleneck, launch.gpu),
        "sure": verdict.confidence,
        "peers": peers,
        "report": fmt.cut_middle(report, REPORT_WIDTH),
        "flags": ", ".join(flag_name(flag) for flag in cautions(launch.analysis)),
        "hollow": 1 if launch.estimated or is_hollow(launch.shown_class) else None,
        "numbered": 1 if is_numbered else None,
    }
    return {key: value for key, value in row.items() if value not in {None, ""}}


def _time_text(launch: Launch) -> str:
    if launch.duration_ns is None:
        return "not in the report"
    time = f"{fmt.duration(launch.duration_ns)}, {fmt.percent(launch.time_share)} of GPU time"
    launches = launch.analysis.launches
    return f"{time}, {fmt.count(launches, 'launch')}" if launches > 1 else time


def _verdict_text(launch: Launch) -> str:
    """Say class, resource and cause of a verdict in a few words."""
    verdict = launch.analysis.verdict
    resource = f": {resource_label(verdict.resource, launch.gpu)}" if verdict.resource else ""
    cause = f", {stall_label(verdict.cause)}" if verdict.cause else ""
    lacks = f", {unmeasured_words(verdict.or_bound)}" if verdict.or_bound else ""
    return f"{BOUND_LABELS[launch.shown_class]}{resource}{cause}{', at the roof' if verdict.at_roof else ''}{lacks}"


def point_rows(plane: Plane) -> list[Row]:
    """Make a row per launch and level; large ones first, so that small ones lie on top."""
    ordered = sorted(plane.points, key=lambda point: -(point.launch.time_share or 0.0))
    by_launch: dict[str, dict[str, float]] = {}
    for point in plane.points:
        by_launch.setdefault(point.launch.key, {})[point.level] = point.intensity_flop_per_byte
    offsets = {key: name_offsets(places) for key, places in by_launch.items()}
    rows = []
    for point in ordered:
        offset = offsets[point.launch.key][point.level]
        rows.append(_point_row(point) | ({} if offset == USUAL else {"dy": offset.dy, "push": offset.push}))
    return rows


def _point_row(point: Point) -> Row:
    traffic = point.launch.analysis.levels[point.level]
    row = {
        "k": point.launch.key,
        "g": point.launch.group_key,
        "level": point.level,
        "near": 1 if point.nearest else None,
        "bytes": rounded(traffic.amount_bytes) or None,
        "rate": rounded(traffic.bytes_per_s) or None,
        "share": rounded(traffic.share),
        "x": rounded(point.intensity_flop_per_byte),
        "y": rounded(point.flop_per_s),
        "roof": rounded(point.roof_flop_per_s),
        "gap": 1 if point.gap is not None and point.gap >= GAP_FROM else None,
        "u": None if point.unit == "FLOP" else point.unit,
    }
    return {key: value for key, value in row.items() if value is not None or key == "roof"}


def roof_rows(plane: Plane) -> list[Row]:
    """Make a row per diagonal roof, the fastest first.

    Keys: `v` bytes per second, `e` the flat roof at which it ends, `own` where it limits a launch.
    """
    top = rounded(plane.top)
    own = {point.level for point in plane.points if point.nearest}
    return [
        _roof_row(roof)
        | {"e": top, "level": roof.keys[0], "keys": list(roof.keys)}
        | ({"own": 1} if own.intersection(roof.keys) else {})
        for roof in plane.level_roofs
    ]


def pipe_rows(plane: Plane) -> list[Row]:
    """Make a row per flat roof, the highest first: `v` FLOP per second, `c` the intensity where it begins."""
    steepest = max((roof.peak for roof in plane.level_roofs), default=None)
    begins = (rounded(roof.peak / steepest) if steepest else None for roof in plane.pipe_roofs)
    rows = zip(plane.pipe_roofs, begins, strict=True)
    return [_roof_row(roof) | {"c": begin, "key": roof.keys[0]} for roof, begin in rows]


def _roof_row(roof: Roof) -> Row:
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
