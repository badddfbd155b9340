"""Ghost dots: where each move of a kernel would put its dot, as far as its gain can be modelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import altair as alt

from rooflens.report.plane.marks import AT, QUIET, Style, written
from rooflens.report.plane.plane import Plane
from rooflens.report.plane.viewport import SIZES, SLOT
from rooflens.report.roofline.choices import LABEL_ROOM_PX, NARROW_ROOM_PX, after_words, ghost_at, ghost_labels
from rooflens.report.roofline.rows import rounded


def ghost_rows(plane: Plane, picked: str) -> list[dict[str, Any]]:
    """Make a row per level and move with a gain of the picked launch and those of the ranking.

    Keys: `m` the place of the move among the choices.
    """
    slopes = {key: roof.peak for roof in plane.level_roofs for key in roof.keys}
    several = Counter(launch.group_key for launch in plane.launches)
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
        }
        for point in plane.points
        if point.launch.rank or point.launch.key == picked
        for at, gain in point.launch.gains
        for x, y in (ghost_at(point, gain, slopes.get(point.level)),)
    ]


def ghost_layers(shown: str, size: alt.ExprRef, beside_px: str, asked: str) -> Iterator[alt.Chart]:
    """Draw an arrow to the ghost of the chosen move, the ghost as an empty dashed ring, and the time it stands for.

    Args:
        shown: The expression that holds for rows of the picked launch at the level shown.
        size: Area of the launch's dot.
        beside_px: How far beside the ghost its words stand.
        asked: The expression that holds while its words are to be seen.
    """
    rows = alt.Chart().transform_filter(f"{shown} && datum.m === move")
    yield rows.mark_rule(style="ghost", **QUIET).encode(
        x=alt.X("x0:Q"), y=alt.Y("y0:Q"), x2=alt.X2("x"), y2=alt.Y2("y")
    )
    yield rows.mark_point(style="ghost", size=size, shape="circle", filled=False, clip=True, aria=False).encode(
        **AT, tooltip=alt.Tooltip("after:N", title="after the move")
    )
    named = rows.transform_filter(asked).transform_calculate(words="w < 480 ? split(datum.label, ':')[0] : datum.label")
    # The same side at all widths of a class of sizes, for the smallest of which other words were placed.
    rooms = (f"{NARROW_ROOM_PX if one.narrow else LABEL_ROOM_PX} / {one.width_px}" for one in SIZES)
    side = f"log(datum.x / x0) / LN10 / spanX < [{', '.join(rooms)}][{SLOT}]"
    look: Style = {
        "align": alt.ExprRef(f"{side} ? 'left' : 'right'"),
        "dx": alt.ExprRef(f"({side} ? 1 : -1) * ({beside_px})"),
    }
    yield from written(named, "label", baseline="middle", **look)
