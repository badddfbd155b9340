"""The headline of a page: kernel, time and move, without invented numbers."""

from __future__ import annotations

from msgspec.structs import replace
from support import samples

from rooflens.model.records import Analysis, Gain, Move, UnitFloor
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.page.headline import headline

DIVISIONS = Move(
    "compute reciprocals once and multiply by them: 1.24 G fp64 divisions", "instructions", "fp64_divisions"
)


def said(*analyses: Analysis) -> str:
    """Write the headline of a page of one report, with plain spaces."""
    return headline(build_content([samples.report(analyses)], "test", default_thresholds())).text.replace("\u00a0", " ")


def kernel(move: Move, **changes: object) -> Analysis:
    """Make a kernel of 6.19 ms with this first move."""
    one = samples.every_verdict()[0]
    kernel = replace(one.kernel, name="tendencies", counters={"duration_ns": 6.19e6})
    return replace(one, kernel=kernel, verdict=replace(one.verdict, moves=(move,), **changes))


def test_the_time_after_the_move_stands_where_the_gain_is_known() -> None:
    """6.19 ms over 1.309 are 4.73 ms; for a proven bound this is the best time; the move is named by what changes."""
    known = replace(DIVISIONS, gain=Gain(1.309))
    assert said(kernel(known)) == "tendencies: 6.19 ms, about 4.73 ms with reciprocals instead of divisions"
    proven = replace(DIVISIONS, gain=Gain(1.309, proven=True))
    assert said(kernel(proven)) == "tendencies: 6.19 ms, at best 4.73 ms with reciprocals instead of divisions"
    by_kind = Move("launch more blocks: 64", "blocks", "small_grid", gain=Gain(2.0))
    assert said(kernel(by_kind)) == "tendencies: 6.19 ms, about 3.10 ms with more blocks"


def test_an_unknown_gain_makes_no_number() -> None:
    """Only time and move are given; neither evidence nor a command is in the headline."""
    assert said(kernel(DIVISIONS)) == "tendencies: 6.19 ms. Compute reciprocals once and multiply by them"
    collect = Move("collect what this report lacks: `rooflens profile -- PROGRAM`", "collect")
    assert said(kernel(collect)) == "tendencies: 6.19 ms. Collect what this report lacks"


def test_an_open_class_is_open_in_the_headline() -> None:
    """If a side was not measured, the headline calls its class possible, before the move."""
    sentence = "Possibly compute-bound: 72 % busy; or memory-bound, as memory was not measured."
    text = said(kernel(DIVISIONS, sentence=sentence, or_bound=("memory",)))
    assert text == "tendencies: 6.19 ms. Possibly compute-bound: compute reciprocals once and multiply by them"


def test_a_report_without_times_or_kernels_says_so() -> None:
    """No time is invented, and failed kernels are named."""
    one = kernel(DIVISIONS)
    timeless = replace(one, kernel=replace(one.kernel, counters={}))
    assert said(timeless) == "tendencies: no time in the report. Compute reciprocals once and multiply by them"
    assert said(samples.failed(index=0)) == "late_kernel could not be profiled"
    assert said() == "No kernels in this report"


def test_of_several_kernels_it_is_the_first_opportunity() -> None:
    """The kernel whose move saves most time comes before a longer one that is near its floor."""
    small = replace(kernel(replace(DIVISIONS, gain=Gain(1.309))), launches=1)
    longest = samples.every_verdict()[1]
    near = replace(longest.verdict, today=UnitFloor("l2", 0.95, 1.9e7))
    longest = replace(longest, verdict=near, kernel=replace(longest.kernel, counters={"duration_ns": 2e7}))
    assert said(small, longest).startswith("tendencies: 6.19 ms, about 4.73 ms")
