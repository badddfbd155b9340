"""Ghost dots: where each move of a kernel would put its dot, as far as its gain can be modelled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from rooflens.model.records import Gain
from rooflens.report.plane.geometry import Box
from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import PAGE, QUIET, at_spot, leads, rounded, written
from rooflens.report.plane.plane import ALL, OWN, Plane, Point
from rooflens.report.plane.viewport import SIZES, Sheet
from rooflens.report.roofline.choices import after_words, ghost_at, ghost_labels
from rooflens.report.roofline.layers import SPOT_AT_LEVEL
from rooflens.report.roofline.selection import ghost_place, steady_boxes

_Steady: TypeAlias = "dict[str, list[tuple[Sheet, list[Box]]]]"
"""By level, the boxes of what is the same for all moves of a launch, at each size of the plane."""

MOST_PLACED = 40
"""Launches whose ghosts have words, those with most at stake first; of others the pointer tells the time."""


def ghost_rows(plane: Plane, picked: str) -> list[dict[str, Any]]:
    """Make a row per level and move with a gain of the picked launch and those of the ranking.

    Keys: `m` the place of the move among the choices, `p` places of its words by what is shown, at each size.
    """
    slopes = {key: roof.peak for roof in plane.level_roofs for key in roof.keys}
    several = Counter(launch.group_key for launch in plane.launches)
    sheets, own = _sheets(plane), defaultdict[str, list[Point]](list)
    for point in plane.points:
        own[point.launch.key].append(point)
    ranks = {point.launch.key: point.launch.rank for point in plane.points if point.launch.rank}
    worded = {picked, *sorted(ranks, key=lambda key: ranks[key])[:MOST_PLACED]}
    shown = [point for point in plane.points if point.launch.rank or point.launch.key == picked]
    steady = {
        id(point): _steady(plane, point, own[point.launch.key], sheets) for point in shown if point.launch.key in worded
    }
    return [
        {
            "k": point.launch.key,
            "g": point.launch.group_key,
            "level": point.level,
            **({"near": 1} if point.nearest else {}),
            "m": at,
            "x": rounded(x),
            "y": rounded(y),
            "x0": rounded(point.intensity),
            "y0": rounded(point.per_s),
            "after": after_words(gain),
            "label": ghost_labels(at, gain, each=several[point.launch.group_key] > 1)[0],
            "p": _places(plane, point, (at, gain), steady[id(point)]) if id(point) in steady else {},
        }
        for point in shown
        for at, gain in point.launch.gains
        for x, y in (ghost_at(point, gain, slopes.get(point.level)),)
    ]


def _sheets(plane: Plane) -> dict[str, list[Sheet]]:
    """Lay out the plane at each level and size once: what is in sight is found among all its points."""
    return {
        level: [
            Sheet(x_domain, y_domain, size.width_px, size.height_px)
            for x_domain, y_domain in ((plane.x_domain(level), plane.y_domain(level)),)
            for size in SIZES
        ]
        for level in plane.choices
    }


def _steady(plane: Plane, point: Point, points: Sequence[Point], sheets: dict[str, list[Sheet]]) -> _Steady:
    """Make the boxes that labels keep clear of, at each level and size of the drawing: no move changes them."""
    if not point.launch.gains:
        return {}
    levels = [level for level in plane.choices if level == point.level or (point.nearest and level in {ALL, OWN})]
    return {
        level: [(sheet, steady_boxes(plane, point, points, sheet, level)) for sheet in sheets[level]]
        for level in levels
    }


def _places(plane: Plane, point: Point, move: tuple[int, Gain], steady: _Steady) -> dict[str, list[list[Any] | None]]:
    found = {
        level: [ghost_place(plane, point, move, sheet, boxes) for sheet, boxes in at_level]
        for level, at_level in steady.items()
    }
    return {level: [["", *one.row[1:]] if one else None for one in places] for level, places in found.items()}


def ghost_layers(shown: str, size: alt.ExprRef, asked: str) -> Iterator[alt.Chart]:
    """Draw an arrow to the ghost of the chosen move, the ghost as an empty dashed ring, and the time it stands for.

    Args:
        shown: The expression that holds for rows of the picked launch at the level shown.
        size: Area of the launch's dot.
        asked: The expression that holds while its words are to be seen.
    """
    rows = alt.Chart().transform_filter(f"{shown} && datum.m === move")
    yield rows.mark_rule(style="ghost", **QUIET).encode(
        x=alt.X("x0:Q"), y=alt.Y("y0:Q"), x2=alt.X2("x"), y2=alt.Y2("y")
    )
    yield rows.mark_point(style="ghost", size=size, shape="circle", filled=False, clip=True, aria=False).encode(
        **PAGE.at, tooltip=alt.Tooltip("after:N", title="after the move")
    )
    named = rows.transform_filter(asked).transform_calculate(
        spot=SPOT_AT_LEVEL, words="w < 480 ? split(datum.label, ':')[0] : datum.label"
    )
    named = named.transform_filter("datum.spot")
    yield leads(named)
    yield from written(named, "label", **at_spot())
