"""The layers of points: launches by share of time and verdict, what belongs to the picked one, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens.report.plane import expressions as text
from rooflens.report.plane.axes import ZOOM, axes
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import (
    QUIET,
    Rows,
    at_spot,
    expr,
    leads,
    lookup,
    place,
    placed,
    quantity,
    words,
    written,
)
from rooflens.report.plane.plane import ALL
from rooflens.report.plane.viewport import (
    CROWD,
    areas_px2,
)
from rooflens.report.roofline.course import course_layers, course_rows
from rooflens.report.roofline.layers import AT_LEVEL
from rooflens.report.roofline.selection import GAP_PX, GAP_ROOM_PX, RING_PX, USUAL, USUAL_GAP
from rooflens.report.roofline.versions import FAMILY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.plane.marks import Layer
    from rooflens.report.plane.plane import Plane

FEW = 4
"""The levels of all launches of an isolated kernel are joined up to so many; more lines would hide one another."""

ARROW_PX = 18
"""Size of the arrows at the edge that stand for launches beyond the axes."""

FAINT = 0.14
"""Opacity of the launches of other kernels while one is isolated."""

AT_NEAREST = "level === 'all' ? datum.near : datum.level === level"
MINE = "kernel !== '' && datum.g === kernel"
JOINED = f"datum.k === picked || {MINE} && datum.peers <= {FEW}"
PICKED = f"(picked !== '' ? datum.k === picked : {MINE} && datum.peers === 1)"
SEEN = f"(kernel === '' || datum.g === kernel || isValid({FAMILY}) && families[datum.g] === {FAMILY})"
"""Expression of what keeps its words while a kernel is isolated: its own launches, and those of its other versions."""

VERSION_FAINT = 0.55
"""Opacity of the other versions of the isolated kernel."""


KERNEL_FIELDS = ("name", "bound", "time", "timeText", "verdict", "wall", "sure", "peers", "flags", "hollow", "report")

_DOT: Mapping[str, Any] = {"filled": True, "strokeWidth": 1.5, "cursor": "pointer", "ariaRoleDescription": "kernel"}


def points_layer(plane: Plane) -> Layer:
    """Draw the launches, with the levels, the gap, the path through its run and the ring of the picked one."""
    course = [_over("course", list(course_layers(PICKED)))] if course_rows(plane) else []
    dots = _dots(plane) | {"name": "dots", "params": [ZOOM]}
    lines, factor = _gap_layers(plane)
    layers = [*lines, *course, _around(plane), dots, *factor, *_level_names(plane)]
    if any(plane.beyond(level) for level in (*plane.levels, ALL)):
        layers.append(_beyond_layer())
    return _over("points", layers)


def _beyond_layer() -> Layer:
    """Point from the edge to the launches that the axes have no room for."""
    left, right, below = "datum.x < base[0]", "datum.x > base[1]", "datum.y < base[2]"
    far = Rows().where(f"({AT_LEVEL}) && ({left} || {right} || {below})")
    far = far.having(
        words=f"{left} ? '\u2190' : {right} ? '\u2192' : '\u2193'",
        edgeX="clamp(datum.x, base[0], base[1])",
        edgeY="max(datum.y, base[2])",
    )
    at = {**place("edgeX", "edgeY"), **words()}
    side = f"{left} ? 'left' : {right} ? 'right' : 'center'"
    said = {"tooltip": expr(text.POINT_TOOLTIP), "description": expr(text.POINT_DESCRIPTION)}
    look = {
        "align": expr(side),
        "baseline": expr(f"{below} ? 'bottom' : 'middle'"),
        "cursor": "pointer",
        "fontSize": ARROW_PX,
    }
    return far.mark("text", at, style="label", ariaRoleDescription="kernel", **look, **said)


def _over(rows: str, layers: list[Layer]) -> Layer:
    """Draw layers over the launches that no filter hides, each with what is known of its launch."""
    steps = [{"filter": "!hidden[datum.k]"}, lookup("k", "kernels", KERNEL_FIELDS)]
    return {"data": {"name": rows}, "transform": steps, "layer": layers}


def _dots(plane: Plane) -> Layer:
    """Draw points: area by share of time, colour and shape by verdict, faint where another kernel is isolated."""
    hollow = {"condition": {"test": "datum.hollow", "value": 0}, "value": 0.72}
    # The area grows with the share of time; the smallest stays large enough to click.
    areas = {"domain": [0, plane.longest_share], "range": list(areas_px2(plane)), "zero": True}
    channels = {
        **axes(units=plane.units),
        **verdict_channels(plane.bounds),
        "size": quantity("time", legend=None, scale=areas),
        "fillOpacity": hollow,
    }
    lit = f"kernel === '' || datum.g === kernel ? 1 : {SEEN} ? {VERSION_FAINT} : {FAINT}"
    said = {"tooltip": expr(text.POINT_TOOLTIP), "description": expr(text.POINT_DESCRIPTION)}
    return Rows().where(AT_LEVEL).mark("point", channels, clip=True, opacity=expr(lit), **said, **_DOT)


def _radius(plane: Plane) -> str:
    """Write the expression for half the width that the size scale gives a point."""
    smallest, largest = areas_px2(plane)
    return f"sqrt({smallest} + {largest - smallest} * datum.time / {plane.longest_share:.4g}) / 2"


def _around(plane: Plane) -> Layer:
    """Draw a ring around the picked launch."""
    size = expr(f"pow(2 * {_radius(plane)} + 6, 2)")
    return Rows().where(f"({AT_NEAREST}) && {PICKED}").mark("point", place(), style="ring", size=size, **QUIET)


def _gap_layers(plane: Plane) -> tuple[list[Layer], list[Layer]]:
    """Join the levels of the picked launch, and draw its gap to the roof; the factor is to lie over all points."""
    joined = Rows().where(JOINED)
    # The factor stands beside the line where enough of it is seen, else over the roof and over the point.
    room = f"(log(datum.roof / datum.y) / LN10) * h / spanY - {_radius(plane)}"
    gap = Rows().where(f"({AT_NEAREST}) && {PICKED} && datum.gap").having(room=room)
    gap = gap.having(spots="level === 'all' ? datum.ga : datum.gs")
    gap = gap.having(spot=f"datum.spots && datum.spots[slot] || {list(USUAL_GAP)}")
    beside = f"datum.room >= {GAP_ROOM_PX}"
    gap = gap.having(side=f"{beside} ? datum.spot[1] : -datum.spot[1]")
    factor = {
        "align": expr("datum.side > 0 ? 'left' : 'right'"),
        "baseline": expr(f"{beside} ? 'middle' : 'bottom'"),
        "dx": expr(f"datum.side * {GAP_PX}"),
        "dy": expr(f"{beside} ? datum.room * datum.spot[0] : min(-{GAP_PX}, datum.room - 2)"),
    }
    way = {"order": {"field": "x", "type": "quantitative"}, "detail": {"field": "k", "type": "nominal"}}
    at_roof, gap_words = place("x", "roof"), {"text": {"field": "gap", "type": "nominal"}}
    tick = {"orient": "horizontal", "size": 10, "thickness": 1.25}
    lines = [
        joined.mark("line", {**place(), **way}, style="gap", strokeDash=[1, 3], **QUIET),
        joined.where(f"!({AT_LEVEL})").mark("point", place(), style="ring", size=(2 * RING_PX) ** 2, **QUIET),
        gap.mark("rule", place(y2="roof"), style="gap", **QUIET),
        gap.mark("tick", at_roof, style="gap", **tick, **QUIET),
    ]
    words_ = [
        gap.mark("text", {**at_roof, **gap_words}, style=style, **QUIET, **factor, **strong)
        for style, strong in (("halo", {"fontWeight": 600, "fontSize": 13}), ("strong", {}))
    ]
    return lines, words_


def _level_names(plane: Plane) -> list[Layer]:
    """Name the levels of the picked launch along its line; a narrow plane has no room for it."""
    launches = {point.launch.key for point in plane.points}
    # With all levels shown, a few launches have names or letters at every point already.
    crowd = "true" if len(launches) > CROWD else "level !== 'all'"
    names = Rows().where(f"w >= 480 && {crowd} && {PICKED} && datum.level !== level")
    apart = expr(f"(datum.dy || {USUAL.dy}) + (datum.push || 0) * ({_radius(plane)} - 4)")
    return written(names.having(words=text.LEVEL), "note", baseline="middle", dy=apart)


def label_layers() -> list[Layer]:
    """Write ranks and names at points, ridges at corners, and letters where all levels are shown."""
    strong = _labels().where("datum.s === 'rank' || datum.s === 'name'")
    notes = _labels().where("datum.s === 'ridge' || datum.s === 'mark'")
    return [leads(_labels()), *written(notes, "note", **_as_kind()), *written(strong, "label", **_as_kind())]


def _labels() -> Rows:
    """Choose the text of the level and the size that are shown; what belongs to a hidden launch goes with it."""
    here = Rows("labels").where("datum.level === level").where(f"!datum.k || !hidden[datum.k] && {SEEN}")
    ranked = placed(here.where("datum.s !== 'rank' || !ranks || ranks[datum.k]"))
    return ranked.having(words="datum.s === 'rank' && ranks ? ranks[datum.k] : datum.words")


def _as_kind() -> Layer:
    """Set text, and ranks strong."""
    return {
        **at_spot(),
        "fontSize": expr("datum.s === 'rank' ? 13 : 12"),
        "fontWeight": expr("datum.s === 'rank' ? 600 : 400"),
    }
