"""The hierarchical roofline of one GPU as an Altair chart; its colours are in the theme.

Signals that the page sets, each with a default so that the specification also draws by itself:

- `move`: place of the chosen move among those of the picked launch; its ghost is drawn.
- `loop`: number of the chosen loop of the picked launch; empty for none.
- `level`: `dram`, `l2`, `l1`, `smem`, `own` for each launch at the level that limits it, or `all`; `picked`: key of a
  launch; `kernel`: key of the kernel that is isolated; `hidden`: keys of launches that filters hide, as `{k3: true}`.
- `ranks`: number of the ranking by key of launch, as `{k3: "1"}`, instead of those in the data; null for those.
- `w`, `h`: pixels of the plane, which the page sets on the plane itself too.
- `zoom_x`, `zoom_y`: `[low, high]` of what is seen of the plane, in its units, or null for all of it. They belong to
  the selection `zoom`, which is bound to the scales: a drag pans, the wheel zooms while ctrl is held, a double click
  resets. Set both, by one factor on the logarithmic scales `plane_x` and `plane_y`: the slopes of names rely on it.
- `box`: what a drag with shift held encloses, as `{x: [low, high], y: [low, high]}`, until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rooflens import format as fmt
from rooflens.model.verdict_classes import is_open
from rooflens.report.plane.axes import seen
from rooflens.report.plane.built import built
from rooflens.report.plane.later import alt
from rooflens.report.plane.marks import (
    HEIGHT,
    WIDTH,
    Param,
    Spec,
    filled,
    layered,
    rounded,
    stacked,
    titled,
    unchecked,
    values,
    written_out,
)
from rooflens.report.plane.plane import ALL, OWN, Plane
from rooflens.report.roofline import rows
from rooflens.report.roofline.bars import bar_rows, bars_chart, bars_heading
from rooflens.report.roofline.course import course_rows
from rooflens.report.roofline.ghost import ghost_rows
from rooflens.report.roofline.labels import Drawings, domains, drawings, label_rows, roof_places
from rooflens.report.roofline.layers import ridge_layers, roof_layers, twin_layers
from rooflens.report.roofline.layout import Layout, PlaneParts, parts_of
from rooflens.report.roofline.loops import loop_rows
from rooflens.report.roofline.points import label_layers, number_layers, points_layer
from rooflens.report.roofline.versions import families, path_layers, path_rows, versions

RANGED = "ranges[level] ? level : 'all'"
"""Expression of the level whose range is seen."""


def roofline_spec(
    plane: Plane,
    *,
    title: str,
    picked: str,
    level: str | None = None,
) -> Spec:
    """Specify the plane, and bars below it when launches without a place in it exist.

    Args:
        plane: Its points, roofs and axes.
        title: Stands over the chart.
        picked: Key of the launch whose gap is drawn from the start; empty for none.
        level: What is shown first, one of `plane.choices`; by default `default_level`.
    """
    drawn = drawings(plane, picked) if plane.points else {}
    kernels, texts = rows.kernel_rows(plane)
    params = [*_params(plane, picked, level), *(_plane_params(plane, drawn) if plane.points else ())]
    params += values(texts=texts)
    data = _datasets(plane, picked, drawn)
    parts = parts_of(plane)
    frame = built(parts, _frame)
    words = {"text": title, "subtitle": _subtitle(plane, parts, has_ghosts=bool(data.get("ghosts")))}
    return filled(frame | {"title": frame["title"] | words}, params, {"kernels": kernels} | data)


@unchecked
def _frame(parts: PlaneParts) -> Spec:
    """Build the chart without its rows, parameters and words."""
    charts = [_plane_chart(parts.plane)] if parts.plane else []
    charts += [bars_chart(parts.bars, WIDTH)] if parts.bars else []
    return written_out(stacked(charts, title=titled("", "")))


def default_level(plane: Plane) -> str:
    """Choose the level shown first: the one that is every launch's own, else each launch at its own."""
    own = {point.level for point in plane.points if point.nearest}
    return next(iter(own)) if len(own) == 1 else OWN if OWN in plane.choices else plane.first_level or ALL


def _subtitle(plane: Plane, parts: PlaneParts, *, has_ghosts: bool) -> str:
    if parts.plane is None:
        return bars_heading(plane)
    ghosts = ["dashed ring: where the chosen move would put the kernel"] if has_ghosts else []
    loops = ["diamonds: loops of the selected kernel"] if plane.loops else []
    return sentence(
        [*notes(plane), *ghosts, *loops, *(["arrows: kernels beyond the axes"] if parts.plane.has_beyond else [])]
    )


def notes(plane: Plane) -> list[str]:
    """Say what is drawn of a plane that holds points, and is in no legend."""
    roofs, memory = plane.level_roofs + plane.pipe_roofs, plane.level_names["dram"]
    found = {
        "area: share of GPU time": len(plane.launches) > 1,
        "hollow: a side was not measured, which could turn the verdict over": any(map(is_open, plane.bounds)),
        "dashed outline: FLOPs estimated": any(launch.estimated for launch in plane.launches),
        "short bar: what is full before the roof": any(point.nearest and point.binding for point in plane.points),
        "bands: roofs differ between launches": any(roof.spread for roof in roofs),
        "dotted: roofs that are not of these runs": not all(roof.is_measured for roof in roofs),
        "light dashes: attainable roofs, measured on this GPU": any(roof.attainable for roof in roofs),
        **{
            f"light dashes over {memory}: at full memory clock, {fmt.si(roof.full_clock, 'B/s')}": True
            for roof in roofs
            if roof.full_clock
        },
        "paths: versions in order": bool(versions(plane)),
    }
    return [note for note, holds in found.items() if holds]


def sentence(notes: Iterable[str]) -> str:
    """Write notes as one sentence without its full stop."""
    words = "; ".join(notes)
    return words[:1].upper() + words[1:]


def _plane_chart(layout: Layout) -> alt.LayerChart:
    # What belongs to the picked launch lies over words, on cleared ground: the points come last.
    layers = [
        *twin_layers(layout.twins),
        *roof_layers(layout),
        *ridge_layers(),
        *(path_layers() if layout.has_versions else ()),
        *label_layers(layout),
        points_layer(layout),
        *number_layers(),
    ]
    return layered(layers, name="plane", width=WIDTH, height=HEIGHT, view=alt.ViewBackground(cursor="grab"))


def _params(plane: Plane, picked: str, level: str | None) -> list[Param]:
    """Declare what the page sets."""
    chosen: dict[str, Any] = {
        "level": level or default_level(plane),
        "picked": picked,
        "kernel": "",
        "hidden": {},
        "move": 0,
    }
    chosen |= {"loop": ""} if plane.loops else {}
    chosen |= {"ranks": None} if plane.points else {}
    return values(**chosen, levelNames=plane.level_names, w=WIDTH, h=HEIGHT)


def _plane_params(plane: Plane, drawn: Drawings) -> list[Param]:
    """Declare the roofs' numbers, the whole range of the plane by level, and what is seen of it."""
    numbers: dict[str, Any] = {
        "ranges": {level: [*x, *y] for level in drawn for x, y in [domains(plane, level)]},
        "far": plane.first_level or ALL,
        "longest": rounded(plane.longest_share),
        "slopes": {key: rounded(roof.peak) for roof in plane.level_roofs for key in roof.keys},
        "top": rounded(plane.top),
        "fastest": rounded(max((roof.peak for roof in plane.level_roofs), default=None)),
        "families": families(versions(plane)),
        "whole": [*plane.whole[0], *plane.whole[1]],
    }
    return [*values(**numbers), *seen(RANGED)]


def _datasets(plane: Plane, picked: str, drawn: Drawings) -> dict[str, list[rows.Row]]:
    data: dict[str, list[rows.Row]] = {}
    if plane.points:
        data |= {
            "points": rows.point_rows(plane),
            "roofs": [row | {"p": roof_places(drawn, row["level"])} for row in rows.roof_rows(plane)],
            "pipes": [row | {"p": roof_places(drawn, row["key"])} for row in rows.pipe_rows(plane)],
            "labels": label_rows(plane, drawn, picked),
            "ghosts": ghost_rows(plane, picked),
        }
        data |= {"loops": loops} if (loops := loop_rows(plane)) else {}
        data |= {"course": course} if (course := course_rows(plane)) else {}
        data |= {"versions": joined} if (joined := path_rows(plane, versions(plane))) else {}
        data |= rows.twin_rows(plane)
    if plane.shares:
        data |= {"bars": bar_rows(plane)}
    return data
