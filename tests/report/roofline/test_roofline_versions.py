"""Versions of a kernel in the roofline: kernels of one name in several reports, joined in order of recording."""

from __future__ import annotations

from msgspec.structs import replace
from planes import plane_of, spec_of, version

from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.roofline.chart import roofline_spec
from rooflens.report.roofline.launches import plane
from rooflens.report.roofline.versions import versions


def test_versions_are_joined_in_their_order() -> None:
    """The path goes from the first version to the last, at each level."""
    made = spec_of([version(i, "attention") for i in range(3)])
    path = [row for row in made["datasets"]["versions"] if row["level"] == "dram"]
    assert [row["i"] for row in path] == [0, 1, 2]
    xs = [row["x"] for row in path]
    assert xs == sorted(xs)
    assert {row["level"] for row in made["datasets"]["versions"]} == {"dram", "l2"}


def test_versions_are_named_by_their_reports() -> None:
    """The newest version has the kernel's name and its label, the others only their label."""
    rows = spec_of([version(i, "attention") for i in range(4)])["datasets"]["labels"]
    names = {row["t"] for row in rows if row["s"] == "name" and row["level"] == "dram"}
    assert names == {"v0", "v1", "v2", "attention, v3"}


def test_versions_at_one_place_have_one_label() -> None:
    """A version at the place of a newer one is not written over it."""
    same = replace(version(1, "attention"), analyses=version(0, "attention").analyses)
    moved = tuple(replace(one, kernel=replace(one.kernel, digest=same.run.digest)) for one in same.analyses)
    rows = spec_of([version(0, "attention"), replace(same, analyses=moved)])["datasets"]["labels"]
    assert [row["t"] for row in rows if row["s"] == "name" and row["level"] == "dram"] == ["attention, v1"]


def test_one_report_and_other_names_make_no_versions() -> None:
    """Kernels of one report, and kernels of two with different names and without a ladder, are not joined."""
    assert versions(plane_of([version(0, "attention", "softmax")])) == ()
    reports = [version(0, "attention"), version(1, "softmax")]
    page = replace(build_content(reports, "test", default_thresholds()), ladder=None, lines={}, climbers={})
    assert versions(plane(page, page.gpus[0])) == ()
    assert "versions" not in spec_of([version(0, "attention")])["datasets"]


def test_the_longest_launch_stands_for_a_version() -> None:
    """Of several launches in one report the path uses the longest."""
    several = version(1, "attention", "attention", "softmax")
    first, second, other = several.analyses
    longer = replace(second, kernel=replace(second.kernel, counters={**second.kernel.counters, "duration_ns": 9e9}))
    ((_, newest),) = versions(plane_of([version(0, "attention"), replace(several, analyses=(first, longer, other))]))
    assert newest.time_words.startswith("9.00 s")


def test_tooltips_name_the_version() -> None:
    """Rows of launches have their report's label if the page has several reports."""
    kernels = spec_of([version(i, "attention") for i in range(2)])["datasets"]["kernels"]
    assert {row["report"] for row in kernels} == {"v0", "v1"}
    assert "report" not in spec_of([version(0, "attention")])["datasets"]["kernels"][0]


def test_beside_a_ladder_its_versions_have_their_labels_and_other_kernels_their_names() -> None:
    """The fastest version is named first; a kernel that three reports have once is named without a report."""
    reports = [version(i, "attention", "reference") for i in range(3)]
    page = build_content(reports, "test", default_thresholds())
    climbers = {(report.run.digest, "attention"): f"v{at}" for at, report in reversed(list(enumerate(reports)))}
    placed = plane(page, page.gpus[0], climbers=climbers)
    rows = roofline_spec(placed, title="A100", picked="")["datasets"]["labels"]
    names = [row["t"] for row in rows if row["s"] == "name" and row["level"] == "dram"]
    assert sorted(names[1:]) == ["reference", "v0", "v1"]
    assert names[0] == "v2"
