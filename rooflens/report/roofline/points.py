"""The layers of points: launches by share of time and verdict, what belongs to the picked one, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.report.plane import expressions as words
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.placement import LEAD_TO_PART
from rooflens.report.plane.viewport import CROWD, areas_px2, lane_count, strip_domain, strip_height_px, widest_share
from rooflens.report.roofline.layers import AT_LEVEL, QUIET, axes, beside_spot, mark_text, named, x, y
from rooflens.report.roofline.selection import GAP_PX, GAP_ROOM_PX, RING_PX, USUAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.plane.plane import Plane

    Style = Mapping[str, Any]

FEW = 4
"""The levels of all launches of an isolated kernel are joined up to so many; more lines would hide one another."""

FAINT = 0.14
"""Opacity of the launches of other kernels while one is isolated."""

AT_NEAREST = "level === 'all' ? datum.near : datum.level === level"
MINE = "kernel !== '' && datum.g === kernel"
JOINED = f"datum.k === picked || {MINE} && datum.peers <= {FEW}"
PICKED = f"(picked !== '' ? datum.k === picked : {MINE} && datum.peers === 1)"
SEEN = "(kernel === '' || datum.g === kernel)"

KERNEL_FIELDS = ["name", "bound", "time", "timeText", "verdict", "wall", "sure", "peers", "flags", "hollow"]

_DOT: Mapping[str, Any] = {"filled": True, "strokeWidth": 1.5, "cursor": "pointer", "ariaRoleDescription": "kernel"}


def points_layer(plane: Plane, selection: alt.Parameter) -> alt.LayerChart:
    """Draw the launches, with the levels, the gap and the ring of the picked one under them."""
    return _over(
        "points",
        [
            *_gap_layers(plane),
            _around(plane, clip=True).encode(x(), y()),
            _dots(plane, AT_LEVEL, words.POINT_TOOLTIP, words.POINT_DESCRIPTION, clip=True)
            .encode(*axes())
            .properties(name="dots")
            .add_params(selection),
            *_level_names(plane),
        ],
    )


def _over(rows: str, layers: list[alt.Chart]) -> alt.LayerChart:
    """Draw layers over the launches that no filter hides, each with what is known of its launch."""
    kernels = alt.LookupData(data=alt.NamedData(name="kernels"), key="k", fields=KERNEL_FIELDS)
    lookup = alt.LookupTransform(lookup="k", **{"from": kernels})
    transform = [alt.FilterTransform(filter="!hidden[datum.k]"), lookup]
    return alt.LayerChart(data=alt.NamedData(name=rows), layer=layers, transform=transform)


def _dots(plane: Plane, at: str, tooltip: str, description: str, *, clip: bool) -> alt.Chart:
    """Draw points: area by share of time, colour and shape by verdict, faint where another kernel is isolated."""
    drawn: alt.Chart = (
        alt.Chart()
        .transform_filter(at)
        .mark_point(
            clip=clip,
            opacity=alt.ExprRef(f"{SEEN} ? 1 : {FAINT}"),
            tooltip=alt.ExprRef(tooltip),
            description=alt.ExprRef(description),
            **_DOT,
        )
        .encode(*verdict_channels(plane.bounds), _sizes(plane), fillOpacity=_hollow())
    )
    return drawn


def _hollow() -> Any:
    return alt.condition("datum.hollow", alt.value(0), alt.value(0.72))


def _sizes(plane: Plane) -> alt.Size:
    """Scale the area with the share of time; the smallest stays large enough to click."""
    scale = alt.Scale(domain=[0, plane.longest_share], range=list(areas_px2(plane)), zero=True)
    return alt.Size("time:Q", legend=None, scale=scale)


def _radius(plane: Plane) -> str:
    """Write the expression for half the width that the size scale gives a point."""
    smallest, largest = areas_px2(plane)
    return f"sqrt({smallest} + {largest - smallest} * datum.time / {plane.longest_share:.4g}) / 2"


def _around(plane: Plane, *, clip: bool) -> alt.Chart:
    """Draw a ring around the picked launch."""
    size = alt.ExprRef(f"pow(2 * {_radius(plane)} + 6, 2)")
    drawn: alt.Chart = (
        alt.Chart()
        .transform_filter(f"({AT_NEAREST}) && {PICKED}")
        .mark_point(style="ring", size=size, clip=clip, aria=False)
    )
    return drawn


def _gap_layers(plane: Plane) -> list[alt.Chart]:
    """Join the levels of the picked launch, and draw its gap to the roof with the factor."""
    joined = alt.Chart().transform_filter(JOINED)
    other = joined.transform_filter(f"!({AT_LEVEL})")
    gap = alt.Chart().transform_filter(f"({AT_NEAREST}) && {PICKED} && datum.gap")
    # The factor stands beside the line where enough of it is seen, else over the roof and over the point.
    gap = gap.transform_calculate(room=f"(log(datum.roof / datum.y) / LN10) * h / spanY - {_radius(plane)}")
    beside = f"datum.room >= {GAP_ROOM_PX}"
    right = f"({beside}) !== (datum.flip === 1)"
    factor: Style = {
        "align": alt.ExprRef(f"{right} ? 'left' : 'right'"),
        "baseline": alt.ExprRef(f"{beside} ? 'middle' : 'bottom'"),
        "dx": alt.ExprRef(f"{right} ? {GAP_PX} : -{GAP_PX}"),
        "dy": alt.ExprRef(f"{beside} ? datum.room / 2 : min(-{GAP_PX}, datum.room - 2)"),
    }
    ring = (2 * RING_PX) ** 2
    return [
        joined.mark_line(style="gap", strokeDash=[1, 3], **QUIET).encode(x(), y(), alt.Order("x:Q"), alt.Detail("k:N")),
        other.mark_point(style="ring", size=ring, **QUIET).encode(x(), y()),
        gap.mark_rule(style="gap", **QUIET).encode(x(), y(), alt.Y2("roof")),
        gap.mark_tick(style="gap", orient="horizontal", size=10, thickness=1.25, **QUIET).encode(x(), y("roof")),
        mark_text(gap, "halo", **factor).encode(x(), y("roof"), alt.Text("gap:N")),
        mark_text(gap, "strong", **factor).encode(x(), y("roof"), alt.Text("gap:N")),
    ]


def _level_names(plane: Plane) -> list[alt.Chart]:
    """Name the levels of the picked launch along its line; a narrow plane has no room for it."""
    launches = {point.launch.key for point in plane.points}
    # With all levels shown, a few launches have names or letters at every point already.
    crowd = "true" if len(launches) > CROWD else "level !== 'all'"
    names = alt.Chart().transform_filter(f"w >= 480 && {crowd} && {PICKED} && datum.level !== level")
    apart: Style = {
        "baseline": "middle",
        "dy": alt.ExprRef(f"(datum.dy || {USUAL.dy}) + (datum.push || 0) * ({_radius(plane)} - 4)"),
    }
    names = names.transform_calculate(levelText=words.LEVEL)
    return [mark_text(names, style, **apart).encode(x(), y(), alt.Text("levelText:N")) for style in ("halo", "note")]


def label_halos() -> list[alt.Chart]:
    """Clear the ground for the text at points, under the points so that none is cut, and lead to text farther off."""
    halo = mark_text(_labels(), "halo", **_as_kind())
    return [_leads(_labels(), "plane", ("x", "y")), halo.encode(x(), y(), alt.Text("words:N"))]


def _leads(labels: alt.Chart, view: str, fields: tuple[str, str]) -> alt.Chart:
    """Draw the lines to words that stand away from their points."""
    at = [f"scale('{view}_{axis}', datum.{field})" for axis, field in zip("xy", fields, strict=True)]
    begin, end = (
        [alt.value(alt.ExprRef(f"{place} + datum.spot[{i}] * {part}")) for i, place in enumerate(at)]
        for part in ("datum.spot[3]", LEAD_TO_PART)
    )
    led = labels.transform_filter("datum.spot[3]").mark_rule(style="lead", **QUIET)
    drawn: alt.Chart = led.encode(x=begin[0], y=begin[1], x2=end[0], y2=end[1])
    return drawn


def label_layers() -> list[alt.Chart]:
    """Write ranks and names at points, ridges at corners, and letters where all levels are shown."""
    strong = _labels().transform_filter("datum.s === 'rank' || datum.s === 'name'")
    notes = _labels().transform_filter("datum.s === 'ridge' || datum.s === 'mark'")
    return [
        mark_text(strong, "label", **_as_kind()).encode(x(), y(), alt.Text("words:N")),
        mark_text(notes, "note", **_as_kind()).encode(x(), y(), alt.Text("words:N")),
    ]


def _labels(rows: str = "labels") -> alt.Chart:
    """Choose the text of the level and the size that are shown; what belongs to a hidden launch goes with it."""
    level = named(rows).transform_filter("datum.level === level")
    if rows == "labels":
        level = level.transform_filter("!wider || datum.d")
    spot = "(kernel !== '' && datum.o ? datum.o : datum.p)[slot]"
    seen = level.transform_filter(f"!datum.k || !hidden[datum.k] && {SEEN}").transform_calculate(spot=spot)
    return seen.transform_filter("datum.spot").transform_calculate(words="w < 480 && datum.u ? datum.u : datum.t")


def _as_kind() -> dict[str, Any]:
    """Place text, and write ranks strong."""
    return {
        **beside_spot(),
        "fontSize": alt.ExprRef("datum.s === 'rank' ? 13 : 12"),
        "fontWeight": alt.ExprRef("datum.s === 'rank' ? 600 : 400"),
    }


def strip_chart(plane: Plane, width_px: int) -> alt.LayerChart:
    """Draw the launches without FLOPs by their share of the level's bandwidth."""
    axis = alt.Axis(format=".0%", tickCount=5, title="Without FLOPs: share of the level's bandwidth", titlePadding=12)
    lanes = strip_domain(lane_count(plane))
    across = alt.X("share:Q", axis=axis, scale=alt.Scale(domain=[0, widest_share(plane)], nice=False))
    lane = alt.Y("lane:Q", axis=None, scale=alt.Scale(domain=list(lanes), nice=False))
    dots = [
        _around(plane, clip=False).encode(across, lane),
        _dots(plane, AT_NEAREST, words.STRIP_TOOLTIP, words.STRIP_DESCRIPTION, clip=False).encode(across, lane),
    ]
    texts = [
        mark_text(_labels("stripLabels"), style, **_as_kind()).encode(across, lane, alt.Text("words:N"))
        for style in ("halo", "label")
    ]
    leads = _leads(_labels("stripLabels"), "strip", ("share", "lane"))
    layers = [leads, texts[0], _over("strip", dots), texts[1]]
    return alt.LayerChart(layer=layers, name="strip", width=width_px, height=strip_height_px(plane))
