from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.samples import Sample

from rooflens.analyzing import analyze_paths
from rooflens.model.compare.compare import Side
from rooflens.model.compare.findings import FindingChanges, changed_findings, findings_sentence
from rooflens.model.compare.ladder import Ladder, compare
from rooflens.model.records import Analysis, Evidence, Finding, Gain, Limit
from rooflens.report.comparison.data import to_json
from rooflens.writing.answers import of_comparison

LOADS = {"global_load_sectors": 31e6, "global_load_requests": 1e6}
GOOD_LOADS = {"global_load_sectors": 4e6, "global_load_requests": 1e6}


def finding(
    rule: str, gain: float | None = None, severity: str = "limiter", title: str = "", **evidence: float
) -> Finding:
    """Make a finding with shares as its evidence."""
    shares = tuple(Evidence(name, value, "share", "m") for name, value in evidence.items())
    return Finding(rule, title or rule, severity, shares, f"mend {rule}", "coalesce", gain and Gain(gain))  # type: ignore[arg-type]


def kernel(time_us: float, *findings: Finding, counters: dict[str, float] | None = None) -> Analysis:
    """Make a kernel with these findings, whose limit is 4 times faster."""
    made = samples.analysis(Sample("copy", "memory", time_us, "dram"))
    made = replace(made, verdict=replace(made.verdict, limit=Limit(4.0, proven=True)))
    every = {**made.kernel.counters, **(counters or {})}
    return replace(made, kernel=replace(made.kernel, counters=every), findings=findings)


def compared(before: Analysis, after: Analysis) -> Ladder:
    """Compare two recordings of one kernel."""
    return compare(Side("base", (samples.report([before]),)), Side("head", (samples.report([after]),)))


def between(before: Analysis, after: Analysis) -> FindingChanges:
    """Return the changes of findings from one recording to the other."""
    (change,) = compared(before, after).changes
    found = changed_findings(change)
    assert found is not None
    return found


def test_a_finding_that_is_gone_is_told_with_its_counter_and_the_speed_up() -> None:
    """Uncoalesced loads that were fixed: sectors per request on both sides, the factor reached and the limit."""
    loads = finding("uncoalesced_global_load", 3.7, title="uncoalesced global loads")
    found = between(kernel(320, loads, counters=LOADS), kernel(100, counters=GOOD_LOADS))
    told = "uncoalesced global loads gone: 31.0 to 4.00 sectors a request; 3.2x reached, the limit was 4.0x"
    assert findings_sentence(found) == told
    assert [change.what for change in found.changes] == ["gone"]


def test_without_the_counters_nothing_is_gone() -> None:
    """If the head never counted sectors, the finding is not called gone, and the speed-up is not attributed to it."""
    found = between(kernel(320, finding("uncoalesced_global_load", 3.7), counters=LOADS), kernel(100))
    assert found.changes == ()
    assert found.untold == ("uncoalesced_global_load",)
    assert findings_sentence(found) == ""


def test_nor_is_what_the_base_could_not_find_new() -> None:
    """A finding is called new only if the base has its counters too."""
    loads = finding("uncoalesced_global_load", 2.0)
    assert between(kernel(100), kernel(100, loads, counters=LOADS)).untold == ("uncoalesced_global_load",)
    found = between(kernel(100, counters=GOOD_LOADS), kernel(100, loads, counters=LOADS))
    assert [change.what for change in found.changes] == ["new"]


@pytest.mark.parametrize(("after", "changes"), [(0.51, 0), (0.53, 1), (0.2, 1)])
def test_only_numbers_beyond_noise_are_a_change(after: float, changes: int) -> None:
    """A share that changed by less than two points counts as unchanged."""
    found = between(
        kernel(100, finding("low_occupancy", 1.5, occupancy=0.5)),
        kernel(100, finding("low_occupancy", 1.5, occupancy=after)),
    )
    assert len(found.changes) == changes


def test_a_finding_that_became_a_note_no_longer_costs() -> None:
    """Another severity is a change; when a finding lessens, the factor reached is compared with its limit."""
    before = kernel(100, finding("low_occupancy", 1.5, occupancy=0.5))
    found = between(before, kernel(80, finding("low_occupancy", None, "note", occupancy=0.75)))
    told = "low_occupancy no longer matters: occupancy 50 % to 75 %; 1.2x reached, the limit was 4.0x"
    assert findings_sentence(found) == told


def test_notes_are_not_told() -> None:
    """Findings that cost no time on either side are not reported, however their numbers change."""
    found = between(kernel(100, finding("a", None, "note", x=0.1)), kernel(100, finding("a", None, "note", x=0.9)))
    assert findings_sentence(found) == ""


def test_more_than_the_limit_is_said_so() -> None:
    """A kernel that became faster than its limit did other work, so no factor is adjusted to fit."""
    found = between(kernel(500, finding("x", 2.0, y=0.9)), kernel(100))
    assert found.limit.factor == 4.0
    assert findings_sentence(found).endswith("; 5.0x reached, more than the limit of 4.0x: its work changed")


def test_rules_of_nvidia_s_are_held_apart_by_their_titles() -> None:
    """Two results of NVIDIA's with one ID are two findings; if the head has no rules, none is called gone."""
    told = [finding("nvidia_rule", 1.2, "contributes", f"NVIDIA: {name}", estimated=0.2) for name in ("A", "B")]
    rule = samples.every_verdict()[0].kernel.rules
    before = kernel(100, *told)
    with_rules, without = (
        replace(one, kernel=replace(one.kernel, rules=rules))
        for one, rules in ((kernel(100, told[0]), rule), (kernel(100), ()))
    )
    assert [change.finding.title for change in between(before, with_rules).changes] == ["NVIDIA: B"]
    assert between(before, without).untold == ("NVIDIA: A", "NVIDIA: B")


def test_json_and_markdown_hold_the_findings() -> None:
    """The JSON has the numbers of both sides; Markdown has the findings in the kernel's story, escaped."""
    loads = finding("uncoalesced_global_load", 3.7, title="uncoalesced | loads")
    comparison = compared(kernel(320, loads, counters=LOADS), kernel(100, counters=GOOD_LOADS))
    document: dict[str, Any] = json.loads(to_json([comparison]))
    found = document["programs"][0]["kernels"][0]["findings"]
    assert (found["limit"], found["speedup_reached"]) == (4.0, pytest.approx(3.2))
    assert found["gone"][0]["severity"] == {"base": "limiter", "head": None}
    each = {"name": "sectors_per_request", "unit": "sectors a request", "base": 31.0, "head": 4.0}
    assert found["gone"][0]["evidence"][0] == each
    assert "uncoalesced \\| loads gone" in of_comparison([comparison]).text("md")


def test_the_page_tells_the_findings_escaped() -> None:
    """A kernel's story on the page ends with its findings, whose titles are never interpreted as HTML."""
    loads = finding("uncoalesced_global_load", 3.7, title="<b>loads</b>")
    comparison = compared(kernel(320, loads, counters=LOADS), kernel(100, counters=GOOD_LOADS))
    page = of_comparison([comparison]).text("html")
    assert page.count("&lt;b&gt;loads&lt;/b&gt; gone: 31.0 to 4.00 sectors a request") >= 1
    assert "<b>loads" not in page


@pytest.mark.corpus
def test_divisions_made_multiplications_in_published_reports(corpus: Path) -> None:
    """The weather model before and after its divisions were replaced: 1.78x, within the limit of the base."""
    names = ("GPU_workshop__MW_Baseline", "GPU_workshop__MW_DivToMult")
    sides = [Side(name, analyze_paths([corpus / f"{name}.ncu-rep"]).reports) for name in names]
    changes = {change.name: changed_findings(change) for change in compare(*sides).changes}
    found = changes["compute_tendencies_x_279_gpu"]
    assert found is not None
    assert "fp64_divisions" in {change.finding.id for change in found.changes if change.eased}
    assert found.reached == pytest.approx(1.78, abs=0.005)
    assert found.limit.proven
    assert 1.78 <= (found.limit.factor or 0.0) < 2
    untouched = changes["semi_discrete_step_232_gpu"]
    assert untouched is not None
    assert not any(change.eased for change in untouched.changes)
