"""The hierarchical roofline of one GPU as a Vega-Lite specification; it holds no colour, the theme does.

Signals that the page sets, each with a default so that the specification also draws by itself:

- `level`: `dram`, `l2`, `l1`, `smem` or `all`; `picked`: key of a launch; `kernel`: key of the kernel that is isolated;
  `hidden`: keys of launches that filters hide, as `{k3: true}`; `datasheet`: id of a GPU whose roofs are drawn too.
- `w`, `h`: pixels of the plane, which the page sets on the plane itself too.
- `zoom_x`, `zoom_y`: `[low, high]` of what is seen of the plane, in its units, or null for all of it. They belong to
  the selection `zoom`, which is bound to the scales: a drag pans, the wheel zooms while ctrl is held, a double click
  resets. Set both, by one factor on the logarithmic scales `plane_x` and `plane_y`: the slopes of names rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflens import format as fmt
from rooflens.report.plane.axes import seen
from rooflens.report.plane.geometry import text_px
from rooflens.report.plane.marks import HEIGHT, WIDTH, specify, values
from rooflens.report.plane.plane import ALL
from rooflens.report.plane.roofs import EDGE_PX
from rooflens.report.plane.viewport import SIZES, SLOT
from rooflens.report.roofline import rows
from rooflens.report.roofline.course import course_rows
from rooflens.report.roofline.datasheet import reaches
from rooflens.report.roofline.labels import domains, drawings, label_rows, roof_places, strip_label_rows, with_wider
from rooflens.report.roofline.layers import datasheet_lines, datasheet_names, ridge_layers, roof_layers
from rooflens.report.roofline.points import label_layers, points_layer, strip_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.model.roofline.roofs import Roof
    from rooflens.report.plane.marks import Layer
    from rooflens.report.plane.plane import Plane
    from rooflens.report.roofline.datasheet import DatasheetRoofs
    from rooflens.report.roofline.labels import Drawing, Drawings


RANGED = "ranges[level] ? level : 'all'"
"""Expression of the level whose range is seen."""


def roofline_spec(
    plane: Plane, *, title: str, picked: str, ranks: Mapping[str, int], datasheet: Sequence[DatasheetRoofs] = ()
) -> dict[str, Any]:
    """Specify the plane, and the strip below it when launches without FLOPs exist.

    Args:
        plane: What stands where.
        title: Stands over the chart.
        picked: Key of the launch whose gap is drawn from the start; empty for none.
        ranks: Numbers of the ranking by key of launch.
        datasheet: Roofs of other GPUs to choose from (`rooflens.report.roofline.datasheet`).
    """
    gpus = datasheet if plane.points else ()
    parts = ([_plane_chart(plane, gpus)] if plane.points else []) + ([strip_chart(plane, WIDTH)] if plane.strip else [])
    drawn = drawings(plane, picked, gpus) if plane.points else {}
    kernels, texts = rows.kernel_rows(plane)
    params = [*_params(plane, picked), *(_plane_params(plane, gpus, drawn) if plane.points else ())]
    params += values(texts=texts)
    return specify(
        {"vconcat": parts, "spacing": 24},
        params,
        {"kernels": kernels} | _datasets(plane, picked, ranks, gpus, drawn),
        title=title,
        subtitle=_subtitle(plane),
    )


def default_level(plane: Plane) -> str:
    """Choose the level shown first: the farthest one that has data."""
    return plane.first_level or "all"


def _subtitle(plane: Plane) -> str:
    notes = ["Area: share of GPU time"]
    roofs = plane.level_roofs + plane.pipe_roofs if plane.points else ()
    if any(p.launch.estimated for p in plane.points):
        notes.append("hollow: FLOPs estimated")
    if any(roof.spread for roof in roofs):
        notes.append("bands: roofs differ between launches")
    if any(roof.attainable for roof in roofs):
        notes.append("light dashes: attainable roofs, measured on this GPU")
    memory = plane.level_names["dram"]
    full = (roof.full_clock for roof in roofs if roof.full_clock)
    notes.extend(f"light dashes over {memory}: at full memory clock, {fmt.si(value, 'B/s')}" for value in full)
    if any(plane.beyond(level) for level in (*plane.levels, ALL)):
        notes.append("arrows: kernels beyond the axes")
    return "; ".join(notes) + "."


def _plane_chart(plane: Plane, gpus: Sequence[DatasheetRoofs]) -> Layer:
    # What belongs to the picked launch lies over words, on cleared ground: the points come last.
    layers = [
        *(datasheet_lines() if gpus else ()),
        *roof_layers(plane),
        *ridge_layers(),
        *label_layers(),
        *(datasheet_names(plane) if gpus else ()),
        points_layer(plane),
    ]
    return {"name": "plane", "width": WIDTH, "height": HEIGHT, "view": {"cursor": "grab"}, "layer": layers}


def _params(plane: Plane, picked: str) -> list[Layer]:
    """Declare what the page sets."""
    first = {"level": default_level(plane), "picked": picked, "kernel": "", "hidden": {}, "datasheet": ""}
    first["levelNames"] = plane.level_names
    return values(**first, w=WIDTH, h=HEIGHT)


def _plane_params(plane: Plane, gpus: Sequence[DatasheetRoofs], drawn: Drawings) -> list[Layer]:
    """Declare the roofs' numbers, the whole range of the plane by level, and what is seen of it."""
    numbers = {
        "ranges": {level: [*x, *y] for level in drawn for x, y in [domains(plane, level)]},
        "far": default_level(plane),
        "slopes": {key: rows.rounded(roof.peak) for roof in plane.level_roofs for key in roof.keys},
        "top": rows.rounded(plane.top),
        "topAttained": _highest(plane.pipe_roofs, attained=True),
        "fastest": _highest(plane.level_roofs),
        "fastestAttained": _highest(plane.level_roofs, attained=True),
    }
    if not gpus:
        return [*values(**numbers), *seen(zooms=True, ranged=RANGED, base="ranges[ranged]")]
    # While roofs of another GPU are shown too, the plane may be wider: its words have places of their own.
    wider = " : ".join(f"w >= {size.from_px} ? {len(SIZES) + i}" for i, size in enumerate(SIZES[:-1]))
    return [
        *values(**numbers, reach=reaches(gpus), **_own_names(plane, drawn)),
        *seen(
            zooms=True,
            slot=f"wider ? ({wider} : {2 * len(SIZES) - 1}) : {SLOT}",
            wider="datasheet !== ''",
            ranged=RANGED,
            own="ranges[ranged]",
            theirs="reach[datasheet] || own",
            base=f"[{', '.join(f'{end}(own[{i}], theirs[{i}])' for i, end in enumerate(('min', 'max') * 2))}]",
        ),
    ]


def _own_names(plane: Plane, drawn: Drawings) -> dict[str, Any]:
    """Say by level and slot how much of the right edge names of flat roofs take, and where those of slopes are."""
    by_level = {level: with_wider(at_level) for level, at_level in drawn.items()}
    return {
        "flatRoom": {level: [_flat_room(plane, one) for one in slots] for level, slots in by_level.items()},
        "slopeNames": {level: [_slope_names(plane, one) for one in slots] for level, slots in by_level.items()},
    }


def _flat_room(plane: Plane, drawing: Drawing) -> int:
    names = [drawing.roofs[roof.keys[0]][0] for roof in plane.pipe_roofs if roof.keys[0] in drawing.roofs]
    return round(max(map(text_px, names), default=0.0)) + 4 * EDGE_PX


def _slope_names(plane: Plane, drawing: Drawing) -> list[list[float]]:
    """Give where the name of each slope begins, as a part of what is seen of it, and its length in pixels."""
    along = [drawing.roofs.get(roof.keys[0], ("", 0.0)) for roof in plane.level_roofs]
    return [[part, round(text_px(name)) + 2 * EDGE_PX] for name, part, *_ in along]


def _highest(roofs: Iterable[Roof], *, attained: bool = False) -> float | int | None:
    values = [(roof.attainable or roof.peak) if attained else roof.peak for roof in roofs]
    return rows.rounded(max(values, default=None))


def _datasets(
    plane: Plane, picked: str, ranks: Mapping[str, int], gpus: Sequence[DatasheetRoofs], drawn: Drawings
) -> dict[str, list[rows.Row]]:
    data: dict[str, list[rows.Row]] = {}
    if plane.points:
        data |= {
            "points": rows.point_rows(plane),
            "roofs": [row | {"p": roof_places(drawn, row["level"])} for row in rows.roof_rows(plane)],
            "pipes": [row | {"p": roof_places(drawn, row["key"])} for row in rows.pipe_rows(plane)],
            "labels": label_rows(plane, drawn, ranks, picked),
        }
        data |= {"course": course} if (course := course_rows(plane)) else {}
        data |= {"datasheet": [gpu.row for gpu in gpus]} if gpus else {}
    if plane.strip:
        data |= {"strip": rows.strip_rows(plane), "stripLabels": strip_label_rows(plane, ranks)}
    return data
