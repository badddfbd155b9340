"""The way of a ladder through the plane: versions by number, joined in order, each at the level that binds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from rooflens import format as fmt
from rooflens.model.compare.ladder import Ladder, Rung
from rooflens.model.records import Analysis
from rooflens.model.roofline.roofs import RoofSet
from rooflens.model.roofline.standing import Standing
from rooflens.model.summary import identity
from rooflens.report.path.placing import placed, walker
from rooflens.report.plane.simple import Dot, Drawn, dot_of, plane_spec, roofs_of
from rooflens.report.words.labels import UNITS
from rooflens.report.words.ladder import limiter

NAME_WIDTH = 48

MOST_NAMED = 3
"""Fewer dots than this in one place have their names beside their numbers."""

LARGEST = 0.4
"""Part of the largest area of a dot: numbers have to be read between them."""

STAR = "\u2605"


def path_spec(ladder: Ladder, roofs: Mapping[str, RoofSet]) -> Mapping[str, Any] | None:
    """Specify the way of a ladder for Vega-Lite; None where fewer than two versions have a place.

    Args:
        ladder: The versions.
        roofs: Those of each GPU of the page.
    """
    found = placed(ladder)
    if len(found) < 2:
        return None
    own = [at for _, rung, at in found if not rung.library]
    longest = max(rung.time.median_ns or 0.0 for _, rung, _ in found) or 1.0
    analyses = [rung.analysis for _, rung, _ in found if rung.analysis]
    gpu = identity(analyses[0])[0]
    slopes, flats = roofs_of(roofs.get(gpu, RoofSet()), (at.level for _, _, at in found), gpu)
    star = f", {STAR} the fastest" if len(ladder.tied) == 1 else ""
    path = tuple((at.intensity, at.per_s) for at in own)
    plane = Drawn(
        f"{gpu}: {_title(ladder)}",
        tuple(_rung_dot(number, rung, rung.analysis, at, longest) for number, rung, at in found if rung.analysis),
        (f"Numbers as beside it{star}.", "Each at the level that binds it. Area: time."),
        slopes,
        flats,
        (path,) if len(path) > 1 else (),
        also=tuple((at.intensity, at.limit_per_s) for _, _, at in found if at.limit_per_s),
        is_near=True,
        unit=UNITS[found[0][2].unit],
    )
    best = ladder.tied[0] if len(ladder.tied) == 1 else None
    return plane_spec(_labelled(plane, [(number, rung) for number, rung, _ in found], best.label if best else ""))


def _title(ladder: Ladder) -> str:
    drawn = walker(ladder)
    return "versions" if drawn is ladder else f"versions of {fmt.cut_middle(fmt.plain_name(drawn.name), NAME_WIDTH)}"


def _rung_dot(number: int, rung: Rung, analysis: Analysis, at: Standing, longest_ns: float) -> Dot:
    return dot_of(
        analysis,
        at,
        rung.library or f"{number} {rung.label}",
        part=LARGEST * (rung.time.median_ns or 0.0) / longest_ns,
        is_faint=bool(rung.library),
        facts={"Time": rung.time.words, "Limited by": limiter(analysis)},
    )


def _labelled(plane: Drawn, rungs: list[tuple[int, Rung]], best: str) -> Drawn:
    """Write numbers at the dots, with names at both ends of the way, at the best one and at the library's kernel.

    Dots that lie upon one another have their numbers in one place, and no names where they are more than two.
    """
    own = [number for number, rung in rungs if not rung.library]
    dots = list(plane.dots)
    for group in plane.together():
        said = []
        for number, rung in (rungs[place] for place in group):
            is_named = len(group) < MOST_NAMED and (rung.label == best or number in {own[0], own[-1]})
            name = f" {rung.label}" if is_named else ""
            said.append(rung.library or f"{number}{f' {STAR}' if rung.label == best else ''}{name}")
        dots[group[0]] = replace(dots[group[0]], label=", ".join(said))
    return replace(plane, dots=tuple(dots))
