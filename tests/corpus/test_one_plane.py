"""One plane: every chart of a page places a kernel alike, under the same roofs, and says of it what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rooflens.model.records import Analysis, AnalyzedReport
from rooflens.model.roofline.standing import standing
from rooflens.model.roofline.unit_names import binding_label
from rooflens.model.roofline.work import main_work
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import Content, build_content
from rooflens.report.path.drawing import path_spec
from rooflens.report.plane.marks import rounded
from rooflens.report.plane.plane import Plane
from rooflens.report.roofline.launches import plane
from rooflens.report.roofline.rows import point_rows

_SHOWN = 1e-3
"""Numbers of a chart have four digits."""
_PASSES = 0.03
"""A stage's share is of another pass than the rate and its roof."""


@pytest.fixture(scope="module")
def pages(published: list[AnalyzedReport]) -> list[Content]:
    """Make the page of each published report, and one of all."""
    limits = default_thresholds()
    return [build_content(own, "", limits) for own in (*([one] for one in published), published)]


def _planes(page: Content) -> Iterator[Plane]:
    yield from (plane(page, gpu) for gpu in page.gpus)


def test_what_is_at_the_roof_is_drawn_at_what_is_labelled_its_roof(published: list[AnalyzedReport]) -> None:
    """A dot is as far below its roof, or below the bar of what is full before it, as its verdict says: 80 % or more."""
    wrong, held = [], 0
    for analysis in (one for report in published for one in report.analyses):
        verdict, at = analysis.verdict, standing(analysis)
        if analysis.kernel.failed or not verdict.at_roof or verdict.bottleneck is None or at is None:
            continue
        held += 1
        if at.share is None or at.share < verdict.bottleneck.share * (1 - _PASSES):
            wrong.append((analysis.kernel.source[-50:], analysis.kernel.index, verdict.bottleneck, at))
    assert wrong == []
    assert held >= 10


def _recomputed(analysis: Analysis, level: str) -> dict[str, float | None]:
    """Work out the numbers of a tooltip from FLOPs, bytes, time and peak."""
    moved, peak = analysis.levels[level].amount_bytes or 0.0, analysis.levels[level].peak_bytes_per_s
    work, seconds = main_work(analysis).total or 0.0, (analysis.kernel.duration_ns or 0.0) / 1e9
    rate = moved / seconds
    return {
        "x": work / moved,
        "y": work / seconds,
        "bytes": moved,
        "rate": rate,
        "share": rate / peak if peak else None,
    }


def test_numbers_of_tooltips_are_those_of_the_counters(pages: list[Content]) -> None:
    """Intensity, rate, traffic and the part of its bandwidth follow from FLOPs, bytes, time and peak, for each dot."""
    wrong, held = [], 0
    for page in pages[:-1]:
        analyses = {launch.key: launch.analysis for launch in page.timed}
        for row in (row for placed in _planes(page) for row in point_rows(placed)):
            held += 1
            own = _recomputed(analyses[row["k"]], row["level"])
            shown = {name: row.get(name) for name in own}
            if shown != pytest.approx(own, rel=_SHOWN):
                wrong.append((page.runs[0].source[-40:], row, own))
    assert wrong[:3] == []
    assert held >= 200


def test_what_a_dot_is_measured_against_has_its_name(pages: list[Content]) -> None:
    """Where a stage or pipe without a line is full first, the dot's limit is achieved / share of it, under its name."""
    wrong, bars = [], 0
    for page in pages[:-1]:
        analyses = {launch.key: launch.analysis for launch in page.timed}
        for row in (row for placed in _planes(page) for row in point_rows(placed) if "near" in row):
            at = standing(analyses[row["k"]])
            assert at is not None
            bars += at.binding is not None
            named = binding_label(at.binding) if at.binding else None
            limit = row["y"] / at.share if at.share else None
            if row.get("binds") != named or row["limit"] != (limit and pytest.approx(limit, rel=3 * _SHOWN)):
                wrong.append((row, at))
    assert wrong[:3] == []
    assert bars >= 20


def _dots(spec: Any) -> set[tuple[float, float]]:
    return {(row["x"], row["y"]) for row in spec["datasets"]["dots"]}


def test_both_planes_of_a_page_place_a_kernel_alike(pages: list[Content]) -> None:
    """The dots of a ladder are points of the page's roofline, and its roofs are lines of it, to the digit."""
    wrong, held = [], 0
    for page in pages:
        points = {point.at for placed in _planes(page) for point in placed.points if point.nearest}
        lines = {rounded(roof.peak) for roofs in page.roofs.values() for roof in (*roofs.levels, *roofs.pipes)}
        for ladder in page.ladders:
            if (spec := path_spec(ladder, page.roofs)) is None:
                continue
            held += 1
            own = {row["v"] for name in ("roofs", "pipes") for row in spec["datasets"][name]}
            if not (page.aggregated or _dots(spec) <= points) or not own <= lines:
                wrong.append((ladder.program, _dots(spec) - points, own - lines))
    assert wrong == []
    assert held >= 3
