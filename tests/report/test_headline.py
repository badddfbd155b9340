"""The headline of a page: kernel, time and move, without invented numbers."""

from __future__ import annotations

from msgspec.structs import replace
from support import samples

from rooflens.model.records import Analysis, Bottleneck, Gain, Move, UnitFloor
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.overview.headline import headline
from rooflens.report.words.headline import name_of

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


def test_several_launches_have_their_sum_and_their_number() -> None:
    """As in the rows below, the times before and after the move are of all launches, even or uneven."""
    known = replace(DIVISIONS, gain=Gain(1.309))
    first = kernel(known)
    assert said(*[replace(first, launches=1)] * 2) == (
        "tendencies: 12.4 ms in 2 launches, about 9.46 ms with reciprocals instead of divisions"
    )
    long = replace(first, kernel=replace(first.kernel, index=7, counters={"duration_ns": 12.38e6}))
    assert said(first, long) == (
        "tendencies: 18.6 ms in 2 launches, about 14.2 ms with reciprocals instead of divisions"
    )


def test_an_unknown_gain_makes_no_number() -> None:
    """Time and limiter are given, and what to try, if that has a name; neither evidence nor a command."""
    assert said(kernel(DIVISIONS)) == (
        "tendencies: 6.19 ms, memory-bound (HBM2 91 %); try it with reciprocals instead of divisions"
    )
    nameless = kernel(Move("do something else", "collect"))
    assert said(nameless) == "tendencies: 6.19 ms, memory-bound (HBM2 91 %); gain not known"
    unknown = kernel(Move("collect what this report lacks: `rooflens profile -- PROGRAM`", "collect"), bound="unknown")
    assert said(unknown) == "tendencies: 6.19 ms; what limits it was not measured"


def test_flops_and_bytes_without_a_time_say_what_the_roof_allows() -> None:
    """A list of metrics without a duration still has an intensity, and a roof there."""
    unknown = kernel(Move("collect what this report lacks", "collect"), bound="unknown")
    untimed = replace(unknown, kernel=replace(unknown.kernel, counters={}))
    assert said(untimed) == ("tendencies: 1.22 FLOP/B at HBM2 allows at most 1.89 TFLOP/s; no time in the report")


def test_a_finished_kernel_is_called_done() -> None:
    """At the roof that it cannot pass its headline begins with that."""
    assert said(kernel(DIVISIONS, done=Bottleneck("dram", 0.95))) == "Done: tendencies at 95 % of HBM2, 6.19 ms"
    unknown = kernel(DIVISIONS, done=Bottleneck("dram", 0.95), is_only_at_roof=True)
    assert said(unknown) == "At its roof: tendencies at 95 % of HBM2, 6.19 ms"


def test_an_open_class_is_open_in_the_headline() -> None:
    """If a side was not measured, the headline calls its class possible."""
    assert said(kernel(DIVISIONS, or_bound=("compute",))).startswith(
        "tendencies: 6.19 ms, possibly memory-bound (HBM2 91 %); try it"
    )


def test_a_report_without_times_or_kernels_says_so() -> None:
    """No time is invented, and failed kernels are named."""
    one = kernel(DIVISIONS)
    timeless = replace(one, kernel=replace(one.kernel, counters={}))
    assert said(timeless).startswith("tendencies: no time in the report, memory-bound; try it")
    assert said(samples.failed(index=0)) == "late_kernel could not be profiled"
    assert said() == "No kernels here"


def test_names_are_few_words_whose_brackets_close() -> None:
    """Template arguments are one word; what is too long is called by its function; no bracket is left open."""
    assert name_of("gemm<128, 64, true>") == "gemm<128,64,true>"
    assert name_of("fill and 1,203 more") == "fill and 1,203 more"
    assert name_of(f"ns::scan<{'tuple<int, ' * 40}int>") == "ns::scan"
    assert name_of("sequence 0 (warm up of all") == "sequence 0 warm"
    assert name_of("((((") == "(no name)"
    assert name_of("operator->*<a, b>") == "operator->*<a,b>"


def test_of_several_kernels_it_is_the_first_opportunity() -> None:
    """The kernel whose move saves most time comes before a longer one that is near its floor."""
    small = replace(kernel(replace(DIVISIONS, gain=Gain(1.309))), launches=1)
    longest = samples.every_verdict()[1]
    near = replace(longest.verdict, today=UnitFloor("l2", 0.95, 1.9e7))
    longest = replace(longest, verdict=near, kernel=replace(longest.kernel, counters={"duration_ns": 2e7}))
    assert said(small, longest).startswith("tendencies: 6.19 ms, about 4.73 ms")
