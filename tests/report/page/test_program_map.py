"""The map of the program: where its kernels are launched, and what it leaves out."""

from __future__ import annotations

import re

from browsing import placed
from msgspec.structs import replace
from support import samples
from support.rendered import rendered

from rooflens.model.records import Analysis, AnalyzedReport, Gain, Move
from rooflens.model.unprofiled import InProgram, Unprofiled
from rooflens.report.words.strips import MOST_STRIPS


def strips(analyses: list[Analysis]) -> list[str]:
    """Return what the strips of a page's map represent."""
    return re.findall(
        r'class="strip" data-filter="range" data-value="([^"]*)"', rendered([samples.report(analyses)], "map")
    )


def test_ranges_and_modules_are_strips() -> None:
    """Ranges come from the report, modules from the timeline below it; the filter offers the same places."""
    ranges = ["train/step/forward", "train/step/backward", ""]
    assert strips(placed()) == ranges
    first, *others = placed()
    in_linear = replace(first, in_program=InProgram(4_000, 400, module="Linear_3"))
    assert strips([in_linear, *others]) == ["train/step/forward/Linear_3", *ranges[1:]]
    page = rendered([samples.report([in_linear, *others])], "map")
    assert '<option value="train/step/forward/Linear_3">' in page
    assert "Range, module" in page


def test_what_the_map_leaves_out_is_counted() -> None:
    """A map of many ranges shows those with most time, and the number of the others."""
    many = samples.many(MOST_STRIPS + 6)
    apart = [replace(one, kernel=replace(one.kernel, nvtx_range=f"layer {i}")) for i, one in enumerate(many)]
    assert len(strips(apart)) == MOST_STRIPS
    assert re.search(r"Not drawn: 6\sranges with", rendered([samples.report(apart)], "map"))


def test_reports_of_several_programs_are_strips_and_versions_have_no_map() -> None:
    """Each program is a strip that filters on a click; times of versions do not add up to one program."""
    one, two = samples.every_verdict()[:2]
    runs = [samples.run(digest=digit * 64, source=f"{digit}.ncu-rep") for digit in "ab"]
    apart = [replace(a, kernel=replace(a.kernel, digest=run.digest)) for a, run in zip((one, two), runs, strict=True)]
    page = rendered([AnalyzedReport(run, (a,)) for a, run in zip(apart, runs, strict=True)], "two")
    assert re.findall(r'data-filter="report" data-value="(\w+)"', page) == ["a", "b"]
    again = [replace(one, kernel=replace(one.kernel, digest=run.digest)) for run in runs]
    assert 'id="map"' not in rendered([AnalyzedReport(run, (a,)) for a, run in zip(again, runs, strict=True)], "two")


def test_gaps_are_white_where_a_timeline_is_given() -> None:
    """Of 10 ms no kernel ran for 4, and kernels outside the report for 3: both have their width and no class."""
    one, two = (
        replace(a, kernel=replace(a.kernel, counters={"duration_ns": 1.5e6})) for a in samples.every_verdict()[:2]
    )
    report = samples.report([one, two])
    page = rendered([replace(report, unprofiled=Unprofiled(10_000_000, 6_000_000))], "gaps")
    widths = dict(re.findall(r'<div class="cell"\s+style="flex-grow:([\d.]+)"\s+title="([^,"]+)', page))
    assert widths == {"300.00": "not in the report", "400.00": "no kernel ran"}


def test_only_a_known_gain_is_hatched() -> None:
    """Time above a limit has no known way to be saved, so a cell without a gain has no hatching."""
    one, two = samples.every_verdict()[:2]
    known = replace(one, verdict=replace(one.verdict, moves=(Move("coalesce", "coalesce", gain=Gain(2.0)),)))
    assert (
        rendered([samples.report([one, two])], "none").partition('id="map"')[2].partition("</section>")[0].count("<u ")
        == 0
    )
    drawn = rendered([samples.report([known, two])], "one").partition('id="map"')[2].partition("</section>")[0]
    assert re.findall(r'<u style="width:([\d.]+)%"', drawn) == ["50.0"]
