from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support import samples
from support.pairs import compare
from support.samples import Sample

from rooflens.analyzing import analyze_paths
from rooflens.model.compare.compare import Side
from rooflens.model.compare.findings import FindingChanges, changed_findings
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import Analysis, Evidence, Finding, Gain, Limit
from rooflens.report.comparison.data import to_json
from rooflens.report.words.change import findings_sentence
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
    told = (
        "uncoalesced global loads gone: 31.0 to 4.00 sectors a request; "
        "3.2x reached, 3.7x was predicted, the limit was 4.0x"
    )
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
        kernel(100, finding("low_occupancy", 1.5, theoretical_occupancy=0.5)),
        kernel(100, finding("low_occupancy", 1.5, theoretical_occupancy=after)),
    )
    assert len(found.changes) == changes


def test_a_finding_that_became_a_note_no_longer_costs() -> None:
    """Another severity is a change; when a finding lessens, the factor reached is compared with its limit."""
    before = kernel(100, finding("low_occupancy", 1.5, theoretical_occupancy=0.5))
    found = between(before, kernel(80, finding("low_occupancy", None, "note", theoretical_occupancy=0.75)))
    told = (
        "low_occupancy no longer matters: theoretical occupancy 50 % to 75 %; "
        "1.2x reached, 1.5x was predicted, the limit was 4.0x"
    )
    assert findings_sentence(found) == told


def test_notes_are_not_told() -> None:
    """Findings that cost no time on either side are not reported, however their numbers change."""
    found = between(kernel(100, finding("a", None, "note", x=0.1)), kernel(100, finding("a", None, "note", x=0.9)))
    assert findings_sentence(found) == ""


def test_more_than_the_limit_is_said_so() -> None:
    """A kernel that became faster than its limit did other work, so no factor is adjusted to fit."""
    found = between(kernel(500, finding("x", 2.0, y=0.9)), kernel(100))
    assert found.limit.factor == 4.0
    told = "; 5.0x reached, 2.0x was predicted, more than the limit of 4.0x: its work changed"
    assert findings_sentence(found).endswith(told)


def test_the_forecast_of_the_slower_side_is_held_against_the_time() -> None:
    """Forward it is the gain of the finding that went, backward of the one that came; on another GPU there is none."""
    loads = finding("uncoalesced_global_load", 2.5, title="loads")
    slow, fast = kernel(300, loads, counters=LOADS), kernel(100, counters=GOOD_LOADS)
    forward, back = between(slow, fast), between(fast, slow)
    for found, is_back in ((forward, False), (back, True)):
        forecast = found.forecast
        assert forecast is not None
        assert (forecast.predicted, forecast.reached, forecast.is_back) == (2.5, pytest.approx(3.0), is_back)
    assert findings_sentence(forward).endswith("; 3.0x reached, 2.5x was predicted, the limit was 4.0x")
    assert findings_sentence(back).endswith("; undoing it: 2.5x predicted, 3.0x measured")
    elsewhere = replace(fast, kernel=replace(fast.kernel, gpu="Tesla T4"))
    assert (between(slow, elsewhere).forecast, between(slow, elsewhere).reached) == (None, None)


@pytest.mark.parametrize(
    ("name", "unit", "numbers", "said"),
    [
        ("elements per thread", "elements", (1.38, 2.72), "better: 1.38 to 2.72 elements"),
        ("warp_fill", "share", (0.5, 0.28), "worse: warp fill 50 % to 28 %"),
        ("loads a result", "loads/store", (128, 64), "better: 128 to 64.0 loads/store"),
        ("results per thread", "stores/thread", (16, 4), ""),
        ("shared memory now", "B", (23_100, 31_000), ""),
        ("block slots filled", "share", (0.63, 0.37), ""),
        ("instructions a warp", "inst", (99.6, 111), ""),
    ],
)
def test_only_what_measures_a_fault_is_better_or_worse(
    name: str, unit: str, numbers: tuple[float, float], said: str
) -> None:
    """Sizes that go with a fault may do either: memory a block takes, stores a thread, slots filled are no news."""
    sides = [
        kernel(100 - 10 * at, replace(finding("x", 1.5), evidence=(Evidence(name, value, unit, "m"),)))
        for at, value in enumerate(numbers)
    ]
    assert findings_sentence(between(*sides)) == (f"x {said}" if said else "")


def test_what_came_better_is_not_said_to_matter() -> None:
    """A finding that costs time now although its number got better is told by the number."""
    before = kernel(100, finding("stalls", None, "note", **{"mio_throttle stalls": 0.53}))
    found = between(before, kernel(250, finding("stalls", 1.2, **{"mio_throttle stalls": 0.37})))
    assert findings_sentence(found) == "stalls better: mio throttle stalls 53 % to 37 %"


def test_findings_that_change_place_by_a_hair_are_no_news() -> None:
    """Costly now with the number it had is decided by something else; where the time stayed, so is all without one."""
    as_it_was = [finding("x", *of, conflict_share=0.3) for of in ((1.2,), (None, "note"))]
    assert between(kernel(100, as_it_was[0]), kernel(60, as_it_was[1])).changes == ()
    assert between(kernel(100, finding("x", 1.2)), kernel(99)).changes == ()
    assert [one.what for one in between(kernel(100, finding("x", 1.2)), kernel(60)).changes] == ["gone"]


def test_rules_of_nvidia_s_are_held_apart_by_their_titles() -> None:
    """Two results of NVIDIA's with one ID are two findings; if the head has no rules, none is called gone."""
    told = [finding("nvidia_rule", 1.2, "contributes", f"NVIDIA: {name}") for name in ("A", "B")]
    rule = samples.every_verdict()[0].kernel.rules
    before = kernel(100, *told)
    with_rules, without = (
        replace(one, kernel=replace(one.kernel, rules=rules))
        for one, rules in ((kernel(80, told[0]), rule), (kernel(80), ()))
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
    forecast = {"finding": "uncoalesced_global_load", "side": "base", "predicted": 3.7, "reached": pytest.approx(3.2)}
    assert found["forecast"] == forecast
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
    assert untouched.changes == ()
    assert found.forecast is not None
    assert (found.forecast.finding.id, found.forecast.is_back) == ("fp64_divisions", False)
    assert found.forecast.predicted == pytest.approx(1.31, abs=0.02)
