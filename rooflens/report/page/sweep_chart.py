"""A sweep as the rows its chart draws: roofs, the path of its cases, and where each was predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import altair as alt
from markupsafe import Markup
from msgspec import Struct

from rooflens import format as fmt
from rooflens.model.bounds import Bound
from rooflens.report.content import Content
from rooflens.report.html.parts import Figure
from rooflens.report.html.templates import render
from rooflens.report.labels import BOUND_LABELS
from rooflens.report.page.cards.expectation import sizes_text
from rooflens.report.page.ladders import ladder_of
from rooflens.report.page.sweeps import Step, Sweep, find_sweeps
from rooflens.report.plane.axes import axes
from rooflens.report.plane.geometry import Box, Line
from rooflens.report.plane.legend import verdict_channels
from rooflens.report.plane.marks import AT, QUIET, Spec, table, unchecked
from rooflens.report.plane.path import NOWHERE, PathPlane, arrows, rounded, strong_names
from rooflens.report.plane.placement import Text, around, beside
from rooflens.report.plane.plane import aired, free_edge
from rooflens.report.plane.roofs import Roofs, flat_roof, slope_roof
from rooflens.report.plane.viewport import Sheet, SizeClass, point_box

Row = dict[str, Any]


LEAST_DECADES = 3.0

NAMES_PART = 0.28
"""Part of the width that is kept for the names of flat roofs."""

DOT_AREA_PX2 = 150

RING_AREA_PX2 = 44

DOT_PX = sqrt(DOT_AREA_PX2) / 2

APART_PX = 7
"""Distance that a case's label keeps from the dots of other cases: it may not seem to be theirs."""

STEP_SPOTS = (*beside(DOT_PX, near_px=4), *beside(DOT_PX, near_px=14), *around(DOT_PX))
"""Places of a case's label: at its dot, a little off where that is taken, then away from it with a line."""

MAX_SWEEPS = 12

HOW_TO_READ = (
    "One dot per case: its kernels' FLOPs over their DRAM bytes and over their time. A ring marks the predicted position: "
    "on the roof, at the intensity of the compulsory bytes. A dot to its left moved more bytes, one to its right fewer."
)


class SweepPlane(Struct, frozen=True):
    """The plane that a sweep is drawn in."""

    sweep: Sweep
    plane: PathPlane

    def predicted(self, step: Step) -> tuple[float, float] | None:
        """Give the place that was predicted: on the roof, at the intensity of the compulsory bytes."""
        return _predicted(step)

    def dots(self, sheet: Sheet) -> list[Box]:
        """Make the boxes of dots and rings, which are never written over."""
        rings = [found for step in self.sweep.placed if (found := _predicted(step))]
        dots = [point_box(sheet.at(*_place_of(step)), DOT_PX) for step in self.sweep.placed]
        return [*dots, *(point_box(sheet.at(*ring), sqrt(RING_AREA_PX2) / 2) for ring in rings)]

    def ways(self, sheet: Sheet) -> list[Line]:
        """Make the lines from dots to their predictions."""
        return [
            Line(*sheet.at(*_place_of(step)), *sheet.at(*ring))
            for step in self.sweep.placed
            if (ring := _predicted(step))
        ]

    def texts(self, sheet: Sheet, size: SizeClass) -> Iterator[tuple[str, Text]]:
        """Ask for the labels of the cases along the path."""
        for at, step in enumerate(self.sweep.placed):
            others = [sheet.at(*_place_of(other)) for other in self.sweep.placed if other is not step]
            names = (step.short,) if size.narrow else (step.label, step.short)
            apart = tuple(point_box(other, DOT_PX + APART_PX) for other in others)
            yield f"step {at}", Text(names, *_place_of(step), STEP_SPOTS, bold=True, own=apart)


def _predicted(step: Step) -> tuple[float, float] | None:
    intensity, roof = step.predicted_intensity, step.roof_at(step.predicted_intensity)
    return (intensity, roof) if intensity and roof else None


def _place_of(step: Step) -> tuple[float, float]:
    return step.intensity_flop_per_byte or 1.0, step.flop_per_s or 1.0


def sweep_plane(sweep: Sweep) -> SweepPlane:
    """Choose the range of a sweep's plane: dots, predictions, roofs and ridges with half a decade of air."""
    places = [_place_of(step) for step in sweep.placed]
    predicted = [ring for step in sweep.placed if (ring := _predicted(step))]
    xs = [x for x, _ in (*places, *predicted)] + [ridge for _, ridge in sweep.ridges]
    ys = [y for _, y in (*places, *predicted)] + [pipe.peak for pipe in sweep.pipes]
    low, high = aired(xs, LEAST_DECADES)
    # The names of flat roofs stand at their right end: dots and rings should not reach below them.
    x_domain = low, max(high, free_edge(max(xs), low, NAMES_PART))
    slopes = (slope_roof(sweep.memory.keys, sweep.memory.peak),) if sweep.memory else ()
    flats = tuple(flat_roof(pipe.keys, pipe.peak) for pipe in sweep.pipes)
    roofs = Roofs(slopes, flats, x_domain, aired(ys, LEAST_DECADES))
    return SweepPlane(sweep, PathPlane(roofs, tuple(places)))


def datasets(plane: SweepPlane, groups: Mapping[str, str]) -> dict[str, list[Row]]:
    """Make all rows of the chart; `groups` gives the group of each launch's key."""
    rows, places = plane.plane.datasets(plane.texts, plane.dots, plane.ways, roofs_last=True)
    steps = enumerate(plane.sweep.placed)
    return {
        "steps": [_step_row(at, step, groups) | {"p": places.get(f"step {at}", NOWHERE)} for at, step in steps],
        **rows,
    }


def _step_row(at: int, step: Step, groups: Mapping[str, str]) -> Row:
    foot = _predicted(step)
    measured = step.checked.measured
    key = step.keys[0] if step.keys else ""
    return {
        "i": at,
        "k": key,
        "g": groups.get(key, ""),
        "ks": list(step.keys),
        "x": rounded(step.intensity_flop_per_byte or 0.0),
        "y": rounded(step.flop_per_s or 0.0),
        "px": rounded(foot[0]) if foot else None,
        "py": rounded(foot[1]) if foot else None,
        "bound": step.bound,
        "name": step.label,
        "verdict": BOUND_LABELS[step.bound],
        "intensity": fmt.intensity(step.intensity_flop_per_byte),
        "achieved": fmt.si(step.flop_per_s, "FLOP/s"),
        "roofText": _roof_text(step),
        "predicted": fmt.intensity(step.predicted_intensity),
        "timeText": fmt.duration(measured.time_ns),
    }


def _roof_text(step: Step) -> str:
    roof = step.roof_at(step.intensity_flop_per_byte)
    return f"{fmt.si(roof, 'FLOP/s')} ({fmt.percent(step.roof_share)} reached)" if roof else "not in the report"


@unchecked
def sweep_spec(sweep: Sweep, *, title: str, subtitle: Sequence[str], groups: Mapping[str, str]) -> Spec:
    """Specify the plane with roofs, ridges, the path, and where each case was predicted.

    The page sets `picked`, the key of a launch, beside the size of the plane.
    """
    plane = sweep_plane(sweep)
    known = table("steps").transform_filter("datum.px !== null")
    # Words stand on cleared ground: they come before the marks, which they must not cut.
    layers = [
        known.mark_rule(style="gap", strokeDash=[1, 3], **QUIET).encode(
            x=alt.X("x:Q"), y=alt.Y("y:Q"), x2=alt.X2("px"), y2=alt.Y2("py")
        ),
        table("steps").mark_line(style="note", strokeWidth=2, **QUIET).encode(**AT, order=alt.Order("i:Q")),
        arrows(),
        *strong_names("steps"),
        known.mark_point(style="ring", size=RING_AREA_PX2, **QUIET).encode(
            x=alt.X("px:Q"), y=alt.Y("py:Q"), tooltip=_tooltip()
        ),
        _dots({step.bound for step in sweep.placed}),
    ]
    return plane.plane.specify(layers, datasets(plane, groups), title=title, subtitle=subtitle, picked="")


def _dots(bounds: set[Bound]) -> alt.Chart:
    picked = alt.condition("indexof(datum.ks, picked) >= 0", alt.value(4), alt.value(1.5))
    look: dict[str, Any] = {"filled": True, "opacity": 1, "size": DOT_AREA_PX2, "strokeWidth": 1.5, "cursor": "pointer"}
    at = axes("Arithmetic intensity at DRAM (FLOP/B)")
    dots = table("steps").mark_point(**look)
    return dots.encode(**at, **verdict_channels(bounds), tooltip=_tooltip(), strokeWidth=picked)


def _tooltip() -> list[alt.Tooltip]:
    fields = {
        "name": "Case",
        "verdict": "Verdict",
        "intensity": "Intensity",
        "predicted": "Predicted",
        "achieved": "Achieved",
        "roofText": "Its roof",
        "timeText": "Time",
    }
    return [alt.Tooltip(field, type="nominal", title=title) for field, title in fields.items()]


def sweeps(page: Content) -> Markup:
    """Show the sweeps of a page; nothing where there is none."""
    found = find_sweeps(page)
    groups = {launch.key: launch.group_key for launch in page.launches}
    shown = [(sweep, _figure(f"sweep-{i}", sweep, page, groups)) for i, sweep in enumerate(found[:MAX_SWEEPS])]
    return render(
        "report/sweeps",
        shown=[(sweep, figure, ladder_of(sweep, page)) for sweep, figure in shown],
        left_out=len(found) - len(shown),
    )


def _figure(key: str, sweep: Sweep, page: Content, groups: Mapping[str, str]) -> Figure:
    kept = sizes_text(sweep.kept)
    subtitle = f"{sweep.gpu}{f', {kept}' if kept else ''}", "Rings: predicted position of each case"
    title = f"{sweep.title}{': synthetic data' if page.synthetic else ''}"
    return Figure(
        key,
        sweep_spec(sweep, title=title, subtitle=subtitle, groups=groups),
        label=f"Path of {sweep.title} across the roofline of {sweep.gpu}; the table by it holds the same data.",
        save="",
        notes=(HOW_TO_READ,) if key == "sweep-0" else (),
        holder="the table holds its data",
    )
