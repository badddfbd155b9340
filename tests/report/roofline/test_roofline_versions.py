"""Versions of a kernel in the roofline: what several reports hold of one name, joined in the order of recording."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from support import samples

from rooflens.model.records import AnalyzedReport
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.plane.plane import plane
from rooflens.report.roofline.chart import roofline_spec
from rooflens.report.roofline.versions import versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflens.report.plane.plane import Plane

START_UNIX_S = 1_700_000_000


def report(at: int, *names: str, name: str = "", seconds: int | None = None) -> AnalyzedReport:
    """Make the report of one version: each is faster than the last, and moves less."""
    digest = f"{at:064d}"
    moved = {"dram": 1e9 / (at + 1), "l2": 2e9}
    kernels = [
        samples.analysis(samples.Sample(kernel, "memory", 400 / (at + 1), "dram", moved, {"fp32": 1e9}), index, digest)
        for index, kernel in enumerate(names)
    ]
    run = samples.run(
        digest=digest,
        source=f"reports/{name or f'attention_v{at}'}.ncu-rep",
        created_unix_s=START_UNIX_S + (at if seconds is None else seconds),
    )
    return AnalyzedReport(run, tuple(kernels))


def planed(reports: Sequence[AnalyzedReport]) -> Plane:
    """Place what these reports hold."""
    page = build_content(reports, "test", default_thresholds())
    return plane(page.gpus[0], page.timed, page.report_labels)


def spec(reports: Sequence[AnalyzedReport]) -> dict[str, Any]:
    """Specify the chart of these reports."""
    return roofline_spec(planed(reports), title="A100", picked="", ranks={})


def test_versions_are_joined_in_the_order_of_recording() -> None:
    """Whatever order the reports are given in, the path goes from the oldest to the newest, at each level."""
    made = spec([report(2, "attention"), report(0, "attention"), report(1, "attention")])
    path = [row for row in made["datasets"]["versions"] if row["level"] == "dram"]
    assert [row["i"] for row in path] == [0, 1, 2]
    xs = [row["x"] for row in path]
    assert xs == sorted(xs)
    assert {row["level"] for row in made["datasets"]["versions"]} == {"dram", "l2"}


def test_versions_are_named_by_their_reports() -> None:
    """The newest one has the kernel's name and its label; the others have theirs."""
    rows = spec([report(i, "attention") for i in range(4)])["datasets"]["labels"]
    names = {row["t"] for row in rows if row["s"] == "name" and row["level"] == "dram"}
    assert names == {"v0", "v1", "v2", "attention, v3"}


def test_versions_at_one_place_have_one_label() -> None:
    """A version that stands where a newer one does is not written over it."""
    same = replace(report(1, "attention"), analyses=report(0, "attention").analyses)
    moved = tuple(replace(one, kernel=replace(one.kernel, digest=same.run.digest)) for one in same.analyses)
    rows = spec([report(0, "attention"), replace(same, analyses=moved)])["datasets"]["labels"]
    assert [row["t"] for row in rows if row["s"] == "name" and row["level"] == "dram"] == ["attention, v1"]


def test_one_report_and_other_names_make_no_versions() -> None:
    """Kernels of one report, and different kernels of two, are joined by nothing."""
    assert versions(planed([report(0, "attention", "softmax")])) == ()
    assert versions(planed([report(0, "attention"), report(1, "softmax")])) == ()
    assert "versions" not in spec([report(0, "attention")])["datasets"]


def test_the_longest_launch_stands_for_a_version() -> None:
    """Of several launches in one report the path takes the longest."""
    several = report(1, "attention", "attention", "softmax")
    first, second, other = several.analyses
    longer = replace(second, kernel=replace(second.kernel, counters={**second.kernel.counters, "duration_ns": 9e9}))
    ((_, newest),) = versions(planed([report(0, "attention"), replace(several, analyses=(first, longer, other))]))
    assert newest.launch.duration_ns == 9e9


def test_tooltips_name_the_report() -> None:
    """Rows of launches hold the label of their report, and none where the page has one report."""
    kernels = spec([report(i, "attention") for i in range(2)])["datasets"]["kernels"]
    assert {row["report"] for row in kernels} == {"v0", "v1"}
    assert "report" not in spec([report(0, "attention")])["datasets"]["kernels"][0]
