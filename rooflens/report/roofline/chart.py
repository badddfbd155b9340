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

import altair as alt

from rooflens.report.plane.roof_names import top_of
from rooflens.report.plane.text_marks import SLOT
from rooflens.report.roofline import rows
from rooflens.report.roofline.datasheet import gather, line_rows, reaches, widest
from rooflens.report.roofline.label_rows import flat_places, flipped, label_rows, sized, slope_places
from rooflens.report.roofline.labels import strip_label_rows
from rooflens.report.roofline.layers import datasheet_layers, ridge_layers, roof_layers
from rooflens.report.roofline.points import label_halos, label_layers, points_layer, strip_chart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflens.model.roofline.roofs import Roof
    from rooflens.report.plane.plane import Plane
    from rooflens.report.roofline.datasheet import Sheetlines

WIDTH = 800
HEIGHT = 440


def roofline_spec(
    plane: Plane, *, title: str, picked: str, ranks: Mapping[str, int], datasheet: Sequence[rows.Row] = ()
) -> dict[str, Any]:
    """Specify the plane, and the strip below it when launches without FLOPs exist.

    Args:
        plane: What stands where.
        title: Stands over the chart.
        picked: Key of the launch whose gap is drawn from the start; empty for none.
        ranks: Numbers of the biggest losses by key of launch.
        datasheet: Roofs of other GPUs to choose from (`rooflens.report.datasheet`).
    """
    gpus = gather(datasheet) if plane.points else []
    parts = ([_plane_chart(plane, gpus)] if plane.points else []) + ([strip_chart(plane, WIDTH)] if plane.strip else [])
    # The title may not be wider than the plane: the page fits the whole drawing to its room.
    size: dict[str, Any] = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    heading = alt.Title(title, subtitle=_subtitle(plane), **size)
    params = [*_params(plane, picked), *(_plane_params(plane, gpus) if plane.points else ())]
    # Altair copies a chart for every change: all that is known goes in at once.
    chart = alt.VConcatChart(vconcat=parts, spacing=24, title=heading, params=[one.param for one in params])
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    kernels, texts = rows.kernel_rows(plane)
    spec["params"].append({"name": "texts", "value": texts})
    spec["datasets"] = {"kernels": kernels} | _datasets(plane, picked, ranks, gpus)
    return spec


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
    return "; ".join(notes) + "."


def _plane_chart(plane: Plane, gpus: Sequence[Sheetlines]) -> alt.LayerChart:
    zoom = alt.selection_interval(name="zoom", bind="scales", zoom="wheel![event.ctrlKey]")
    layers = [
        *roof_layers(plane),
        *(datasheet_layers() if gpus else ()),
        *ridge_layers(),
        *label_halos(),
        points_layer(plane, zoom),
        *label_layers(),
    ]
    view = alt.ViewBackground(cursor="grab")
    return alt.LayerChart(layer=layers, name="plane", width=WIDTH, height=HEIGHT, view=view)


def _params(plane: Plane, picked: str) -> list[alt.Parameter]:
    """Declare what the page sets, and which of the classes of sizes the width falls into."""
    values = {
        "level": default_level(plane),
        "picked": picked,
        "kernel": "",
        "hidden": {},
        "datasheet": "",
        "w": WIDTH,
        "h": HEIGHT,
    }
    return [
        *(alt.param(name=name, value=value) for name, value in values.items()),
        alt.param(name="slot", expr=SLOT),
    ]


def _plane_params(plane: Plane, gpus: Sequence[Sheetlines]) -> list[alt.Parameter]:
    """Declare the roofs' numbers, the whole range of the plane, and what is seen of it."""
    numbers = {
        "reach": reaches(plane, gpus),
        "far": default_level(plane),
        "slopes": {key: rows.rounded(roof.peak) for roof in plane.level_roofs for key in roof.keys},
        "top": rows.rounded(top_of(plane)),
        "topAttained": _highest(plane.pipe_roofs, attained=True),
        "fastest": _highest(plane.level_roofs),
        "fastestAttained": _highest(plane.level_roofs, attained=True),
    }
    seen = {
        "wider": "datasheet !== '' && isValid(reach[datasheet])",
        "base": "reach[datasheet] || reach['']",
        "x0": "zoom.x ? zoom.x[0] : base[0]",
        "x1": "zoom.x ? zoom.x[1] : base[1]",
        "y0": "zoom.y ? zoom.y[0] : base[2]",
        "y1": "zoom.y ? zoom.y[1] : base[3]",
        "spanX": "log(x1 / x0) / LN10",
        "spanY": "log(y1 / y0) / LN10",
        "turn": "-atan2(h / spanY, w / spanX) * 57.2958",
    }
    return [
        *(alt.param(name=name, value=value) for name, value in numbers.items()),
        *(alt.param(name=name, expr=expr) for name, expr in seen.items()),
    ]


def _highest(roofs: Iterable[Roof], *, attained: bool = False) -> float | int | None:
    values = [(roof.attainable or roof.peak) if attained else roof.peak for roof in roofs]
    return rows.rounded(max(values, default=None))


def _datasets(
    plane: Plane, picked: str, ranks: Mapping[str, int], gpus: Sequence[Sheetlines]
) -> dict[str, list[rows.Row]]:
    data: dict[str, list[rows.Row]] = {}
    if plane.points:
        sizes = sized(plane, ranks, picked)
        labels = label_rows(plane, sizes, widest(plane, gpus))
        data |= {
            "points": rows.point_rows(plane, flipped(plane, sizes[0], labels)),
            "roofs": [row | {"p": slope_places(sizes, row["level"])} for row in rows.roof_rows(plane)],
            "pipes": [row | {"p": flat_places(sizes, row["key"])} for row in rows.pipe_rows(plane)],
            "labels": labels,
        }
        data |= {"datasheet": line_rows(plane, sizes, gpus)} if gpus else {}
    if plane.strip:
        data |= {"strip": rows.strip_rows(plane), "stripLabels": strip_label_rows(plane, ranks)}
    return data
