"""The hierarchical roofline of one GPU as a Vega-Lite specification; it holds no colour, the theme does."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any

import altair as alt

from rooflens.model.records import BOUNDS, LEVELS
from rooflens.report import roofline_rows as rows
from rooflens.report.roof_labels import CROWD, LIFT_PX, areas_px2, longest
from rooflens.report.roofline_data import decades
from rooflens.report.theme import LOOKS
from rooflens.report.words import BOUND_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflens.report.roofline_data import Plane

    Style = Mapping[str, Any]
    Words = tuple[alt.Chart, alt.Text, Style]

WIDTH = 800
HEIGHT = 440
LANE_PX = 24
LABEL_PX = 16
NAMED_LAUNCHES = 4
"""With no more launches than this, names of levels take the place of their letters."""


LEVEL_DASHES: Mapping[str, tuple[int, ...]] = {"dram": (1, 0), "l2": (10, 5), "l1": (9, 4, 2, 4), "smem": (4, 4)}

AT_LEVEL = "level === 'all' || datum.level === level"
AT_NEAREST = "level === 'all' ? datum.near : datum.level === level"
PICKED = "datum.k === picked"

_DOT: Mapping[str, Any] = {"filled": True, "opacity": 1, "strokeWidth": 1.5, "cursor": "pointer"}

_SI_FLOPS = (
    "datum.value < 1000 ? format(datum.value, '~g') + ' FLOP/s' : "
    "slice(format(datum.value, '~s'), 0, -1) + ' ' + slice(format(datum.value, '~s'), -1) + "
    "(w < 480 ? '' : 'FLOP/s')"
)


def roofline_spec(plane: Plane, *, title: str, picked: str, ranks: Mapping[str, int]) -> dict[str, Any]:
    """Specify the plane, and the strip below it when launches without FLOPs exist.

    The page sets the parameters: `level` (a level or `all`), `picked` (key of a launch), `w` and `h` (pixels).
    """
    parts = ([_plane_chart(plane)] if plane.points else []) + ([_strip_chart(plane)] if plane.strip else [])
    chart = alt.vconcat(*parts, spacing=24).add_params(
        alt.param(name="level", value=default_level(plane)),
        alt.param(name="picked", value=picked),
        alt.param(name="w", value=WIDTH),
        alt.param(name="h", value=HEIGHT),
    )
    # The title may not be wider than the plane: the page fits the whole drawing to its room.
    size: Style = {"limit": alt.ExprRef("w"), "fontSize": alt.ExprRef("w < 480 ? 12 : 14")}
    chart = chart.properties(title=alt.Title(title, subtitle=_subtitle(plane), **size))
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    spec["datasets"] = _datasets(plane, ranks)
    return spec


def default_level(plane: Plane) -> str:
    """Choose the level shown first: the farthest one that has data."""
    return next(iter(plane.levels), "all")


def _subtitle(plane: Plane) -> str:
    notes = ["Area: share of GPU time"]
    roofs = plane.level_roofs + plane.pipe_roofs if plane.points else ()
    if any(p.launch.estimated for p in plane.points):
        notes.append("hollow: FLOPs estimated")
    if any(roof.high / roof.low > rows.BAND_FROM_RATIO for roof in roofs):
        notes.append("bands: roofs differ between launches")
    if any(roof.attainable for roof in roofs):
        notes.append("light dashes: attainable roofs, measured on this GPU")
    return "; ".join(notes) + "."


def _datasets(plane: Plane, ranks: Mapping[str, int]) -> dict[str, list[rows.Row]]:
    label_step_ratio = 10 ** (LABEL_PX * _decades(plane.y_domain()) / HEIGHT)
    roofs = rows.roof_rows(plane)
    return {
        "points": rows.point_rows(plane, ranks),
        "strip": rows.strip_rows(plane),
        "roofs": roofs,
        "roofLabels": rows.roof_label_rows(plane, roofs),
        "twins": rows.twin_rows(plane),
        "pipes": rows.pipe_rows(plane, label_step_ratio),
    }


def _plane_chart(plane: Plane) -> alt.LayerChart:
    ground = [*_twin_layers(plane), *_roof_layers(plane), *_pipe_layers(plane), *_picked_layers(plane), *_halos(plane)]
    return alt.LayerChart(layer=[*ground, _points_layer(plane), *_marks(plane)]).properties(
        name="plane", width=WIDTH, height=HEIGHT
    )


def _x(plane: Plane, field: str = "x") -> alt.X:
    domain = plane.x_domain()
    label = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, ',')"
    axis = alt.Axis(values=decades(domain), labelExpr=label, title="Arithmetic intensity (FLOP/B)", titlePadding=12)
    return alt.X(field, type="quantitative", axis=axis, scale=alt.Scale(type="log", domain=domain, nice=False))


def _y(plane: Plane, field: str = "y") -> alt.Y:
    domain = plane.y_domain()
    axis = alt.Axis(values=decades(domain), labelExpr=_SI_FLOPS, title=None)
    return alt.Y(field, type="quantitative", axis=axis, scale=alt.Scale(type="log", domain=domain, nice=False))


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _roof_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the diagonal roofs: a band where clocks differ, the line, and its name along it."""
    chosen = "level === 'all' || indexof(datum.keys, level) >= 0 ? 1 : 0.55"
    dash = alt.StrokeDash(
        "level:N",
        legend=None,
        scale=alt.Scale(domain=list(LEVELS), range=[list(LEVEL_DASHES[level]) for level in LEVELS]),
    )
    band = _named("roofs").mark_area(style="band", clip=True).transform_filter("datum.band")
    line = _named("roofs").mark_line(style="roof", clip=True)
    angle = _roof_angle(plane)
    text: Style = {"align": "left", "baseline": "bottom", "dy": -LIFT_PX, "angle": alt.ExprRef(angle)}
    place = {"px": "w < 480 ? datum.nx : datum.x", "py": "w < 480 ? datum.ny : datum.y", "shown": chosen}
    labels = [
        _named("roofLabels").mark_text(style=style, **text).transform_calculate(**place) for style in ("halo", "label")
    ]
    opacity = alt.Opacity("shown:Q", legend=None, scale=None)
    return [
        band.encode(_x(plane), _y(plane, "lo"), alt.Y2("hi"), alt.Detail("level:N")),
        line.transform_calculate(shown=chosen).encode(_x(plane), _y(plane), dash, opacity),
        labels[0].encode(_x(plane, "px"), _y(plane, "py"), alt.Text("label:N")),
        labels[1].encode(_x(plane, "px"), _y(plane, "py"), alt.Text("label:N"), opacity),
    ]


def _twin_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the attainable roofs, where any is known: light, in short dashes whatever the level."""
    if not any(roof.attainable for roof in (*plane.level_roofs, *plane.pipe_roofs)):
        return []
    line = _named("twins").mark_line(style="twin", strokeDash=[3, 3], clip=True)
    return [line.encode(_x(plane), _y(plane), alt.Detail("key:N"))]


def _roof_angle(plane: Plane) -> str:
    """Write the expression for the slope of a diagonal roof on the screen, in degrees."""
    decades_ratio = _decades(plane.x_domain()) / _decades(plane.y_domain())
    return f"-atan2(h * {decades_ratio:.4g}, w) * 57.2958"


def _decades(domain: tuple[float, float]) -> float:
    return log10(domain[1] / domain[0])


def _pipe_layers(plane: Plane) -> list[alt.Chart]:
    """Draw the flat roofs with value and clock at their right end."""
    band = _named("pipes").mark_rect(style="band", clip=True).transform_filter("datum.band")
    label = alt.Text("label:N")
    text: Style = {"align": "right", "baseline": "bottom", "dy": -4, "dx": -2}
    labels = _named("pipes").transform_calculate(label="w < 480 ? datum.short : datum.long")
    return [
        band.encode(_x(plane), alt.X2("x2"), _y(plane, "lo"), alt.Y2("hi")),
        _named("pipes").mark_rule(style="roof").encode(_x(plane), alt.X2("x2"), _y(plane)),
        labels.mark_text(style="halo", **text).encode(_x(plane, "x2"), _y(plane, "labelY"), label),
        labels.mark_text(style="label", **text).encode(_x(plane, "x2"), _y(plane, "labelY"), label),
    ]


def _picked_layers(plane: Plane) -> list[alt.Chart]:
    """Join the levels of the picked launch, and draw its gap to the roof with the factor."""
    mine = _named("points").transform_filter(PICKED)
    gap = mine.transform_filter(f"({AT_NEAREST}) && datum.roof")
    # The factor stands over the roof, and over the point where that reaches higher.
    over = f"{_radius(plane)} + 2 - (log(datum.roof / datum.y) / LN10) * h / {_decades(plane.y_domain()):.4g}"
    factor: Style = {"align": "right", "baseline": "bottom", "dx": -5, "dy": alt.ExprRef(f"-max(5, {over})")}
    return [
        mine.mark_line(style="gap", strokeDash=[1, 3]).encode(_x(plane), _y(plane), alt.Order("x:Q")),
        gap.mark_rule(style="gap").encode(_x(plane), _y(plane), alt.Y2("roof")),
        gap.mark_tick(style="gap", orient="horizontal", size=10, thickness=1.25).encode(_x(plane), _y(plane, "roof")),
        gap.mark_text(style="halo", **factor).encode(_x(plane), _y(plane, "roof"), alt.Text("gap:N")),
        gap.mark_text(style="strong", **factor)
        .transform_calculate(gapText="datum.gap + ' more FLOP/s to the roofline'")
        .encode(_x(plane), _y(plane, "roof"), alt.Text("gap:N"), tooltip=alt.Tooltip("gapText:N", title="Gap")),
    ]


def _bound_channels(plane: Plane) -> list[Any]:
    """Encode the verdict by colour and shape together, with one legend for both."""
    labels = {bound: BOUND_LABELS[bound] for bound in BOUNDS}
    cases = " : ".join(f"datum.value === '{bound}' ? '{label}'" for bound, label in labels.items())
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=alt.ExprRef("w < 480 ? 2 : 6"),
        values=list(plane.bounds),
        labelExpr=f"{cases} : datum.value",
        symbolOpacity=1,
    )
    shapes = alt.Scale(domain=list(BOUNDS), range=[LOOKS[bound].shape for bound in BOUNDS])
    colours = alt.Scale(domain=list(BOUNDS))
    return [
        alt.Shape("bound:N", scale=shapes, legend=legend),
        alt.Fill("bound:N", scale=colours, legend=legend),
        alt.Stroke("bound:N", scale=colours, legend=legend),
    ]


def _sizes(plane: Plane) -> alt.Size:
    """Scale the area with the share of time; the smallest stays large enough to click."""
    scale = alt.Scale(domain=[0, longest(plane)], range=list(areas_px2(plane)), zero=True)
    return alt.Size("time:Q", legend=None, scale=scale)


def _radius(plane: Plane) -> str:
    """Write the expression for half the width that the size scale gives a point."""
    smallest, largest = areas_px2(plane)
    return f"sqrt({smallest} + {largest - smallest} * datum.time / {longest(plane):.4g}) / 2"


def _hollow() -> Any:
    return alt.condition("datum.hollow", alt.value(0), alt.value(0.72))


def _tooltip(*extra: alt.Tooltip) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("name:N", title="Kernel"),
        alt.Tooltip("verdict:N", title="Verdict"),
        alt.Tooltip("levelText:N", title="Level"),
        *extra,
        alt.Tooltip("timeText:N", title="Time"),
    ]


def _points_layer(plane: Plane) -> alt.Chart:
    tooltip = _tooltip(
        alt.Tooltip("intensity:N", title="Intensity"),
        alt.Tooltip("achieved:N", title="Achieved"),
        alt.Tooltip("roofText:N", title="Its roof"),
    )
    points = _named("points").transform_filter(AT_LEVEL).mark_point(**_DOT)
    drawn: alt.Chart = points.encode(
        _x(plane), _y(plane), *_bound_channels(plane), _sizes(plane), tooltip=tooltip, fillOpacity=_hollow()
    )
    return drawn


def _halos(plane: Plane) -> list[alt.Chart]:
    """Clear the ground for the marks, under the points so that no point is cut."""
    return [
        part.mark_text(style="halo", **place).encode(_x(plane), _y(plane), text) for part, text, place in _words(plane)
    ]


def _marks(plane: Plane) -> list[alt.Chart]:
    """Write the ranks of the biggest losses at their points, and the levels of the picked launch along its line."""
    ranks, *levels = _words(plane)
    rings = _named("points").transform_filter(f"{PICKED} && !({AT_LEVEL})").mark_point(style="ring", size=40)
    return [
        rings.encode(_x(plane), _y(plane)),
        ranks[0].mark_text(style="strong", **ranks[2]).encode(_x(plane), _y(plane), ranks[1]),
        *(part.mark_text(style="note", **place).encode(_x(plane), _y(plane), text) for part, text, place in levels),
    ]


def _words(plane: Plane) -> list[Words]:
    """Choose rows, text and place of the ranks, of the level names, and of the letters in their stead.

    The picked launch has names at the levels that are not the chosen one; where all levels are shown, few launches have
    names and more of them letters; a narrow plane has letters only.
    """
    radius = _radius(plane)
    ranked = _named("points").transform_filter(f"({AT_NEAREST}) && datum.rank !== ''")
    corner: Style = {
        "align": "right",
        "baseline": "top",
        "dx": alt.ExprRef(f"-{radius}"),
        "dy": alt.ExprRef(f"level === 'all' ? -{LABEL_PX / 2:g} : 0.6 * {radius}"),
    }
    launches = {point.launch.key for point in plane.points}
    named = "true" if len(launches) <= NAMED_LAUNCHES else PICKED
    names = f"w >= 480 && (level === 'all' ? {named} : {PICKED} && datum.level !== level)"
    others = _named("points").transform_filter(names)
    push = "level === 'all' ? (datum.dy > 0 ? 1 : -1) : datum.push"
    apart: Style = {"baseline": "middle", "dy": alt.ExprRef(f"datum.dy + ({push}) * ({radius} - 4)")}
    words: list[Words] = [(ranked, alt.Text("rank:N"), corner), (others, alt.Text("levelText:N"), apart)]
    if len(launches) <= CROWD:
        letters = _named("points").transform_filter(f"level === 'all' && !({names})")
        words.append((letters, alt.Text("mark:N"), apart))
    return words


def _strip_chart(plane: Plane) -> alt.LayerChart:
    """Draw the launches without FLOPs by their share of the level's bandwidth."""
    widest = max([1.0, *(p.share for p in plane.strip)])
    axis = alt.Axis(format=".0%", tickCount=5, title="Without FLOPs: share of the level's bandwidth", titlePadding=12)
    x = alt.X("share:Q", axis=axis, scale=alt.Scale(domain=[0, widest], nice=False))
    lanes = alt.Scale(domain=[-0.8, rows.lane_count(plane) - 0.2], nice=False)
    y = alt.Y("lane:Q", axis=None, scale=lanes)
    tooltip = _tooltip(alt.Tooltip("shareText:N", title="Bandwidth"))
    points = _named("strip").transform_filter(AT_NEAREST).mark_point(**_DOT)
    dots = points.encode(x, y, *_bound_channels(plane), _sizes(plane), tooltip=tooltip, fillOpacity=_hollow())
    around = alt.ExprRef(f"pow(2 * {_radius(plane)} + 8, 2)")
    ring = _named("strip").transform_filter(f"({AT_NEAREST}) && {PICKED}").mark_point(style="ring", size=around)
    return alt.LayerChart(layer=[dots, ring.encode(x, y)]).properties(
        width=WIDTH, height=LANE_PX * rows.lane_count(plane)
    )
