"""The way of a ladder through the plane: versions by number, joined in order, each at the level that binds it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log10
from typing import Any

from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.compare.ladder import Ladder, Rung
from rooflens.model.roofline.datasheets import ANY_MEMORY, Datasheet, datasheet_of
from rooflens.model.roofline.work import main_work
from rooflens.model.verdict.sentences import resource_label
from rooflens.report.path.placing import placed, walker
from rooflens.report.plane.places import Place, roofs_over
from rooflens.report.plane.simple import HEIGHT, Dot, Drawn, Line, plane_spec
from rooflens.report.words.ladder import limiter

LABEL_WIDTH, NAME_WIDTH = 24, 48
WIDTH_PX = 600
"""About what a chart beside a ladder is wide."""

NEAR_PX = 18
"""Dots nearer to one another than this have their numbers in one place."""

MOST_NAMED = 3
"""Fewer dots than this in one place have their names beside their numbers."""

LARGEST = 0.4
"""Part of the largest area of a dot: numbers have to be read between them."""

STAR = "\u2605"


def path_spec(ladder: Ladder) -> Mapping[str, Any] | None:
    """Specify the way of a ladder for Vega-Lite; None where fewer than two versions have a place."""
    found = placed(ladder)
    if len(found) < 2:
        return None
    own = [(place, rung, at) for place, rung, at in found if not rung.library]
    longest = max(rung.time.median_ns or 0.0 for _, rung, _ in found) or 1.0
    analyses = [rung.analysis for _, rung, _ in found if rung.analysis]
    roofs, levels = roofs_over(analyses), {at.level for _, _, at in found}
    gpu = analyses[0].kernel.gpu
    slopes = [
        Line(f"{resource_label(next(iter(roof.keys)), gpu)} {fmt.si(roof.peak, 'B/s')}", roof.peak)
        for roof in roofs.levels
        if levels & set(roof.keys)
    ]
    flats = [
        Line(f"{resource_label(next(iter(roof.keys)))} {fmt.si(roof.peak, 'FLOP/s')}", roof.peak)
        for roof in roofs.pipes
    ]
    notes = [f"Numbers as beside it, {STAR} the fastest; each at the level that binds it. Area: time."]
    tops = [(at.intensity_flop_per_byte, at.roof_flop_per_s) for _, _, at in found if at.roof_flop_per_s]
    if not (slopes or flats) and (sheet := datasheet_of(gpu)):
        slopes, flats = _published(sheet, levels, [name for one in analyses for name in one.counted_flop])
        tops = [(at.intensity_flop_per_byte, line.peak) for _, _, at in found for line in flats]
        notes.append("Roofs: the datasheet's, at boost clock; the report holds none.")
    dots = tuple(_dot(place, rung, at, longest) for place, rung, at in found)
    path = tuple((at.intensity_flop_per_byte, at.flop_per_s) for _, _, at in own)
    plane = Drawn(
        f"{gpu or 'unknown GPU'}: {_title(ladder)}",
        dots,
        tuple(notes),
        tuple(slopes),
        tuple(flats),
        (path,) if len(path) > 1 else (),
        also=tuple(tops),
        is_near=True,
        unit=next(at.unit for _, _, at in found),
    )
    return plane_spec(_labelled(plane, found))


def _published(sheet: Datasheet, levels: Collection[str], pipes: Iterable[str]) -> tuple[list[Line], list[Line]]:
    """Return the slope of DRAM and the flat roofs of some pipes, as the maker of the GPU states them."""
    memory, bytes_per_s = sheet.memory_kind or ANY_MEMORY, sheet.dram_bandwidth.value
    slopes = [Line(f"{memory} {fmt.si(bytes_per_s, 'B/s')}", bytes_per_s)] if "dram" in levels else []
    peaks = {pipe: peak.value for pipe in pipes if (peak := sheet.peak(pipe))}
    return slopes, [Line(f"{resource_label(pipe)} {fmt.si(peak, 'FLOP/s')}", peak) for pipe, peak in peaks.items()]


def _title(ladder: Ladder) -> str:
    drawn = walker(ladder)
    return "versions" if drawn is ladder else f"versions of {fmt.cut_middle(fmt.plain_name(drawn.name), NAME_WIDTH)}"


def _dot(number: int, rung: Rung, at: Place, longest_ns: float) -> Dot:
    analysis = rung.analysis
    time_ns = rung.time.median_ns or 0.0
    unit = main_work(analysis).unit if analysis else "FLOP"
    return Dot(
        at.intensity_flop_per_byte,
        at.flop_per_s,
        analysis.verdict.shown_class if analysis else "unknown",
        rung.library or f"{number} {rung.label}",
        part=LARGEST * time_ns / longest_ns,
        is_filled=not rung.library,
        facts={
            "Time": rung.time.words,
            "Limited by": limiter(analysis) if analysis else "",
            "Level": resource_label(at.level, analysis.kernel.gpu if analysis else None),
            "Place": f"{fmt.intensity(at.intensity_flop_per_byte)}, {fmt.si(at.flop_per_s, f'{unit}/s')}",
        },
    )


def _labelled(plane: Drawn, found: Sequence[tuple[int, Rung, Place]]) -> Drawn:
    """Write numbers at the dots, with names at both ends of the way, at the fastest and at the library's kernel.

    Dots that lie upon one another have their numbers in one place, and no names where they are more than two.
    """
    own = [number for number, rung, _ in found if not rung.library]
    groups: list[list[int]] = []
    for place, dot in enumerate(plane.dots):
        near = next((group for group in groups if _are_near(plane, plane.dots[group[0]], dot)), None)
        if near is None:
            groups.append([place])
        else:
            near.append(place)
    labels = {}
    for group in groups:
        said = []
        for number, rung, _ in (found[place] for place in group):
            star = f" {STAR}" if rung.is_fastest else ""
            is_named = len(group) < MOST_NAMED and (rung.is_fastest or number in {own[0], own[-1]})
            name = f" {fmt.cut_middle(rung.label, LABEL_WIDTH)}" if is_named else ""
            said.append(rung.library or f"{number}{star}{name}")
        labels[_outermost(plane, group)] = ", ".join(said)
    dots = (replace(dot, label=labels.get(place, "")) for place, dot in enumerate(plane.dots))
    return replace(plane, dots=tuple(dots))


def _outermost(plane: Drawn, group: Sequence[int]) -> int:
    """Return the dot of a group whose label runs over no other: labels lead to the middle of the plane."""
    low, high = plane.x_domain
    by_place = sorted(group, key=lambda place: plane.dots[place].x)
    return by_place[-1] if plane.dots[by_place[-1]].x <= (low * high) ** 0.5 else by_place[0]


def _are_near(plane: Drawn, one: Dot, other: Dot) -> bool:
    across, up = (
        log10(there / here) / log10(high / low) * size
        for here, there, (low, high), size in (
            (one.x, other.x, plane.x_domain, WIDTH_PX),
            (one.y, other.y, plane.y_domain, HEIGHT),
        )
    )
    return abs(across) < 3 * NEAR_PX and abs(up) < NEAR_PX
