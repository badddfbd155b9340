from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from support import samples
from support.loops import for_all
from support.pairs import compare

from rooflens.errors import UsageError
from rooflens.model.compare.compare import Side, Spread, Timing
from rooflens.model.compare.gate import Gate, parse_floor
from rooflens.model.compare.ladder import Ladder
from rooflens.model.records import Analysis


def timing(before_us: Sequence[float], after_us: Sequence[float], under_wave: float = 0.0) -> Timing:
    """Time something on both sides, in microseconds."""
    return Timing(Spread(tuple(t * 1e3 for t in before_us)), Spread(tuple(t * 1e3 for t in after_us)), under_wave)


def kernel(duration_us: float, waves: float | None = None, name: str = "k") -> Analysis:
    """Make a kernel with a duration and a grid of this many waves."""
    one = samples.every_verdict()[0]
    counters = {**one.kernel.counters, "duration_ns": duration_us * 1e3} | ({} if waves is None else {"waves": waves})
    return replace(one, kernel=replace(one.kernel, name=name, function_name=name, counters=counters))


def program(before: Sequence[Sequence[Analysis]], after: Sequence[Sequence[Analysis]]) -> Ladder:
    """Compare recordings of a program, each a list of its kernels."""
    base, head = (Side(name, tuple(map(samples.report, side))) for name, side in (("base", before), ("head", after)))
    return compare(base, head, program="app")


@for_all(
    "text, nanoseconds",
    [("2us", 2000), ("2 µs", 2000), ("2μs", 2000), ("500ns", 500), ("0.1ms", 1e5), ("1s", 1e9), ("0", 0), ("0us", 0)],
)
def test_a_floor_is_a_time_with_its_unit(text: str, nanoseconds: float) -> None:
    """Every common unit is read, including both letters for micro, and zero needs no unit."""
    assert parse_floor(text) == pytest.approx(nanoseconds)


@for_all("text", ["2", "", "us", "-2us", "2 days", "5%", "1e3us", "nan us"])
def test_what_is_no_floor_is_refused(text: str) -> None:
    """A number without a unit is not a time, and negative times are refused."""
    with pytest.raises(UsageError, match="a floor is a time with its unit"):
        parse_floor(text)


@for_all(
    "before, after, under_wave, floor_ns, outcome",
    [
        ([100, 101], [107, 108], 0.0, 0.0, "slower"),
        ([100, 101], [107, 108], 0.0, 6999.0, "slower"),  # the medians, 100.5 and 107.5, are 7 µs apart
        ([100, 101], [107, 108], 0.0, 7001.0, "same"),
        ([100, 101], [107, 108], 0.5, 0.0, "same"),  # 5 % becomes 7.5 % where half the time is below one wave
        ([100, 101], [109, 110], 0.5, 0.0, "slower"),
        ([100, 101], [109, 110], 1.0, 0.0, "same"),
        ([100, 101], [112, 113], 1.0, 0.0, "slower"),
        ([107, 108], [100, 101], 0.0, 7001.0, "same"),
        ([107, 108], [100, 101], 0.0, 6999.0, "faster"),
        ([100, 108], [107, 120], 0.0, 0.0, "same"),  # the ranges meet
        ([100], [200], 0.0, 0.0, "single"),
        ([], [200, 201], 0.0, 0.0, "unknown"),
    ],
)
def test_one_function_decides(
    before: list[float], after: list[float], under_wave: float, floor_ns: float, outcome: str
) -> None:
    """A change needs disjoint ranges, and must exceed the limit, which may be wider, and the floor."""
    assert timing(before, after, under_wave).outcome(0.05, floor_ns) == outcome


def test_time_below_one_wave_widens_by_its_part() -> None:
    """25 of the base's 100 µs are in a grid below one wave; a single kernel has 0 or 1; unknown waves count as 0."""
    sides = [[kernel(25, 0.5, "small"), kernel(60, 3.0, "large"), kernel(15, None, "other")]]
    found = program(sides, [[kernel(200, 9.0, "small"), kernel(60, 0.1, "large"), kernel(15, None, "other")]])
    assert found.total.under_wave == pytest.approx(0.25)
    assert {change.name: change.speed.under_wave for change in found.changes} == {"small": 1, "large": 0, "other": 0}


def test_the_floor_lets_a_short_kernel_through_and_says_so() -> None:
    """30 % of 3 µs are below the floor of 2 µs: the gate passes and names the kernel; without a floor it fails."""
    compared = program([[kernel(3.0)], [kernel(3.01)]], [[kernel(3.9)], [kernel(3.91)]])
    gated = Gate(0.05).judge([compared])
    assert (gated.word, gated.failures) == ("holds", [])
    assert gated.let_through == [
        (
            "app: GPU time takes 30.0 % more (3.00 µs [3.00 µs, 3.01 µs] -> 3.90 µs [3.90 µs, 3.91 µs]): "
            "the floor is the reason why this does not fail: 900 ns lost, no more than the floor of 2 µs"
        )
    ]
    assert gated.is_held_by_floor
    assert Gate(0.05, floor_ns=0).judge([compared]).failed


def test_the_floor_is_the_reason_for_a_single_run_too() -> None:
    """A single run that takes twice as long fails unless the floor is higher, which is then the reason."""
    compared = program([[kernel(100)]], [[kernel(200)]])
    gated = Gate(0.05, floor_ns=1e9).judge([compared])
    assert (gated.word, gated.is_held_by_floor, gated.unjudged) == ("holds", True, [])
    (said,) = gated.let_through
    assert said.endswith("the floor is the reason why this does not fail: 100 µs lost, no more than the floor of 1 s")
    assert not Gate(0.05, floor_ns=1e9).judge([program([[kernel(100)]], [[kernel(104)]])]).is_held_by_floor


def test_a_grid_below_one_wave_needs_twice_the_change() -> None:
    """8 % fails a grid of 2 waves but not one of half a wave, which the gate names; 11 % fails both."""
    for waves, growth, failed in ((2.0, 1.08, True), (0.5, 1.08, False), (0.5, 1.11, True)):
        sides = [[[kernel(t * f, waves)] for t in (1000, 1001)] for f in (1.0, growth)]
        gated = Gate(0.05).judge([program(*sides)])
        assert gated.failed is failed
        assert [line.partition("): ")[2] for line in gated.let_through] == (
            [] if failed else ["no more than 10 %, the limit where grids do not fill the GPU"]
        )


def test_launches_share_the_floor_where_counts_differ() -> None:
    """With 0.5 µs more per launch, ten launches lose 5 µs and fail, while two lose 1 µs and pass."""
    for launches, failed in ((10, True), (2, False)):
        before = [[kernel(3.0 + e)] * launches for e in (0, 0.01)]
        after = [[kernel(3.5 + e)] * (launches + 1) for e in (0, 0.01)]
        judged = Gate(0.05, per_kernel=True).judge([program(before, after)]).judged
        assert [one.failed for one in judged if one.kernel] == [failed]


def test_a_gone_kernel_hides_no_regression() -> None:
    """What both sides have takes 50 % more; that the head lacks a longer kernel makes up for none of it."""
    before = [[kernel(100 + e), kernel(900, name="long")] for e in (0, 1)]
    found = program(before, [[kernel(150 + e)] for e in (0, 1)])
    assert found.total.lost_ns < 0
    gated = Gate(0.05).judge([found])
    assert gated.failed
    assert gated.left_out == ["app: 1 gone kernel took 900 µs, not judged"]
    assert gated.failures[0].startswith("app: GPU time of the kernels on both sides takes 49.8 % more")


@pytest.mark.parametrize(("flop_factor", "failed"), [(2.0, True), (1.0, False)])
def test_what_does_the_work_of_gone_kernels_is_judged(flop_factor: float, failed: bool) -> None:  # noqa: FBT001
    """A fused kernel with the FLOPs of both that went counts, and is too slow; one with half of them is another job."""
    same = [kernel(100, name=name) for name in ("first", "second", "other")]
    assert same[0].flop_total
    fused = replace(kernel(300, name="fused"), flop_total=flop_factor * same[0].flop_total)
    after = [[fused, same[2]], [fused, kernel(101, name="other")]]
    found = program([same, [*same[:2], kernel(101, name="other")]], after)
    assert Gate(0.05).judge([found]).failed is failed
    assert len(found.alone) == (0 if failed else 3)


def test_single_runs_are_not_judged_and_named() -> None:
    """A program with single runs within its band is not judged; beside a program that passes it is named."""
    single = program([[kernel(100)]], [[kernel(109)]])
    assert Gate(0.05).judge([single]).word == "not judged"
    same = replace(program([[kernel(1)], [kernel(2)]], [[kernel(1)], [kernel(2)]]), program="other")
    gated = Gate(0.05).judge([single, same])
    assert gated.word == "holds"
    assert gated.unjudged == [
        "app: a single run on a side, and within the 10 % it may differ by, so that the gate cannot judge it"
    ]


def test_a_clearly_faster_single_run_passes() -> None:
    """A single run that is 20 % faster exceeds the noise and passes; 8 % is not judged, nor 18 % below one wave."""
    for after, waves, word in ((80, 9.0, "holds"), (92, 9.0, "not judged"), (82, 0.5, "not judged")):
        gated = Gate(0.25).judge([program([[kernel(100, waves)]], [[kernel(after, waves)]])])
        assert (gated.word, len(gated.unjudged)) == (word, 0 if word == "holds" else 1), after


def test_the_limit_of_a_single_run_is_named_as_what_it_is() -> None:
    """Up to 10 % is called chance, beyond that up to `--fail-on` the gate's limit, as given if few grids are small."""
    few = [kernel(996, 9.0), kernel(4, 0.5, "small")]
    for growth, limit, words in (
        (1.08, 0.25, "and within the 10 % it may differ by, so"),
        (1.2, 0.25, "and within the 25 % that the gate allows, so"),
        (1.3, 0.25, "and beyond the 25 % that the gate allows"),
    ):
        grown = [replace(k, kernel=replace(k.kernel, counters=_longer(k, growth))) for k in few]
        gated = Gate(limit).judge([program([few], [grown])])
        (said,) = gated.failures or gated.unjudged
        assert words in said


def _longer(one: Analysis, growth: float) -> dict[str, float]:
    return {**one.kernel.counters, "duration_ns": one.kernel.counters["duration_ns"] * growth}


def test_a_single_run_fails_beyond_its_band() -> None:
    """A kernel 2.09 times as slow fails despite single runs; a faster one, or one that loses 1 us, does not."""
    gated = Gate(0.05).judge([program([[kernel(100)]], [[kernel(209)]])])
    assert (gated.word, gated.unjudged) == ("failed", [])
    assert gated.failures == [
        (
            "app: GPU time takes 109.0 % more (100 µs -> 209 µs): "
            "a single run on a side, and beyond the 10 % that a single run may differ by"
        )
    ]
    for before, after, waves in ((209, 100, 9.0), (1, 2, 9.0), (100, 119, 0.5)):
        assert not Gate(0.05).judge([program([[kernel(before, waves)]], [[kernel(after, waves)]])]).failed
    assert not Gate(0.3).judge([program([[kernel(100)]], [[kernel(129)]])]).failed
