from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import asdict, replace
from support import samples

from rooflens.model.aggregate import aggregate
from rooflens.model.records import LEVELS, Distances, Level, Pipe

if TYPE_CHECKING:
    from rooflens.model.bounds import Bound
    from rooflens.model.records import Analysis


def launch(duration_us: float = 100, bound: Bound = "memory", **changes: Any) -> Analysis:
    """Make one launch of a kernel that does 1 GFLOP and moves 100 MB."""
    amounts = {"level_bytes": {"dram": 1e8, "l2": 2e8}, "flop": {"fp32": 1e9}, "inst": {"alu": 1e6}}
    return samples.analysis(samples.Sample("kernel", bound, duration_us, "dram", **(amounts | changes)))


def with_level(analysis: Analysis, **changes: Any) -> Analysis:
    """Change what is known of a launch at DRAM."""
    return replace(analysis, levels={**analysis.levels, "dram": replace(analysis.levels["dram"], **changes)})


def with_kernel(analysis: Analysis, **changes: Any) -> Analysis:
    """Change what is known of a launch's origin."""
    return replace(analysis, kernel=replace(analysis.kernel, **changes))


def test_one_launch_is_its_own_sum() -> None:
    """A kernel that ran once is not touched."""
    one = launch()
    assert aggregate([one]) is one


def test_times_add_up() -> None:
    """The GPU time of the sum is the sum of the times, whatever each record stands for."""
    whole = aggregate([launch(100), replace(launch(300), launches=9)])
    assert whole.launches == 10
    assert whole.gpu_time_ns == pytest.approx(100e3 + 9 * 300e3)


def test_amounts_are_those_of_the_mean_launch() -> None:
    """Amount x launches is the sum of what all launches did, at every level, pipe and type."""
    big = launch(300, level_bytes={"dram": 4e8, "l2": 2e8}, flop={"fp32": 3e9}, inst={"alu": 5e6})
    whole = aggregate([launch(), replace(big, launches=3)])
    assert 4 * (whole.levels["dram"].amount_bytes or 0) == pytest.approx(1e8 + 3 * 4e8)
    assert 4 * (whole.pipes["alu"].amount or 0) == pytest.approx(1e6 + 3 * 5e6)
    assert 4 * whole.flop["fp32"] == pytest.approx(1e9 + 3 * 3e9)
    assert whole.flop_total == whole.flop["fp32"]


def test_rates_and_intensities_are_sums_over_sums() -> None:
    """A short launch does not weigh as much as a long one, as it would in a mean of ratios."""
    short, long = launch(1, flop={"fp32": 1e7}), launch(999)
    whole = aggregate([short, long])
    assert whole.flop_per_s == pytest.approx((1e7 + 1e9) / 1e-3)
    assert whole.levels["dram"].bytes_per_s == pytest.approx(2e8 / 1e-3)
    assert whole.levels["dram"].intensity_flop_per_byte == pytest.approx((1e7 + 1e9) / 2e8)
    assert whole.pipes["fp32"].amount_per_s == pytest.approx(whole.flop_per_s)


def test_shares_are_time_at_the_peak_over_time_taken() -> None:
    """With peaks of two clocks, the share is the time that all bytes need at their own peaks over the whole time."""
    fast, slow = launch(100), with_level(launch(300), peak_bytes_per_s=1e12, share=1e8 / 300e-6 / 1e12)
    level = aggregate([fast, slow]).levels["dram"]
    assert level.share == pytest.approx((1e8 / 1.555e12 + 1e8 / 1e12) / 400e-6)
    assert level.peak_bytes_per_s == pytest.approx((1.555e12 * 100e-6 + 1e12 * 300e-6) / 400e-6)


def test_equal_launches_sum_to_themselves() -> None:
    """A thousand equal launches stand where one of them stands."""
    one = replace(launch(), flop_peak_per_s=1.95e13)
    whole = aggregate([one] * 1000)
    for name in LEVELS:
        added, alone = asdict(whole.levels[name]), asdict(one.levels[name])
        assert added.pop("bytes_per_s") == pytest.approx(alone.pop("bytes_per_s"))
        assert added == alone
    assert whole.pipes["fp32"].share == one.pipes["fp32"].share
    assert whole.flop_peak_per_s == pytest.approx(one.flop_peak_per_s)
    assert whole.verdict.distances.headroom == pytest.approx(one.verdict.distances.headroom)


@pytest.mark.parametrize("name", [name for name in Level.__struct_fields__ if name not in {"source", "stages"}])
def test_what_one_launch_lacks_the_sum_lacks(name: str) -> None:
    """A value of a level that is missing in one launch is missing in the sum, and never counted as 0."""
    known = with_level(launch(), attainable_per_s=1.4e12)
    lacking = with_level(launch(200), **{"attainable_per_s": 1.3e12, name: None})
    level = aggregate([known, lacking]).levels["dram"]
    derived = name in {"bytes_per_s", "intensity_flop_per_byte"}
    assert (getattr(level, name) is None) is not derived
    if name == "amount_bytes":
        assert (level.bytes_per_s, level.intensity_flop_per_byte, level.source) == (None, None, None)


def test_unknown_flop_of_one_launch_make_the_total_unknown() -> None:
    """FLOPs that were not counted are missing: no total, no rate, no intensity and no roof of a mix."""
    whole = aggregate([launch(), launch(flop=None)])
    assert (whole.flop_total, whole.flop_per_s, whole.flop_peak_per_s) == (None, None, None)
    assert whole.flop == {}
    assert whole.levels["dram"].intensity_flop_per_byte is None
    assert whole.pipes["fp32"].amount is None
    assert whole.pipes["fp32"].share is None


def test_a_pipe_that_one_report_does_not_count_has_no_share() -> None:
    """Instruction pipes without a counter in one launch have neither amount nor share in the sum."""
    whole = aggregate([launch(), launch(inst={})])
    assert (whole.pipes["alu"].amount, whole.pipes["alu"].share) == (None, None)


def test_no_tensor_work_is_none_and_not_missing() -> None:
    """Launches with all FLOPs counted did no tensor work where they name none; its roof is that of those that did."""
    tensor = launch(flop={"fp32": 1e9, "tensor_bf16": 3e9})
    whole = aggregate([launch(), tensor])
    assert whole.flop == {"fp32": 1e9, "tensor_bf16": 1.5e9}
    pipe = whole.pipes["tensor_bf16"]
    assert (pipe.amount, pipe.peak_per_s) == (1.5e9, 312e12)
    assert pipe.share == pytest.approx(1.5e9 / 100e-6 / 312e12)


def test_launches_without_a_duration_have_no_rate() -> None:
    """One missing duration leaves the sum without time, rates and differing shares; amounts stay."""
    untimed = with_kernel(launch(200), counters={})
    whole = aggregate([launch(), untimed])
    assert whole.gpu_time_ns is None
    assert whole.levels["dram"].amount_bytes == 1e8
    assert (whole.levels["dram"].bytes_per_s, whole.levels["dram"].share, whole.flop_per_s) == (None, None, None)
    assert whole.levels["dram"].peak_bytes_per_s == 1.555e12


def test_mixed_roof_is_flop_over_their_time_at_the_peaks() -> None:
    """The roof of launches in two types is total FLOP over the time each needs at its own; idle ones need none."""
    fp32, fp64 = launch(flop={"fp32": 2e9}), launch(flop={"fp64": 1e9})
    expected = 3e9 / (2e9 / 19.5e12 + 1e9 / 9.7e12)
    assert aggregate([fp32, fp64, launch(flop={})]).flop_peak_per_s == pytest.approx(expected)
    assert aggregate([fp32, replace(fp64, flop_peak_per_s=None)]).flop_peak_per_s is None


def test_verdict_is_of_the_class_with_most_time() -> None:
    """Many short launches outweigh a longer one, and the longest of them speaks for all."""
    short = [replace(launch(us, "latency"), launches=10) for us in (90, 95)]
    whole = aggregate([launch(200, "memory"), *short])
    assert whole.verdict.bound == "latency"
    assert whole.verdict.sentence == f"Longest of 21 launches: {short[0].verdict.sentence}"
    assert whole.verdict.evidence == short[1].verdict.evidence


def test_sums_of_sums_name_their_launches_once() -> None:
    """Adding up what was added up before counts all launches, and says so once."""
    whole = aggregate([aggregate([launch(), launch(90)]), launch(80)])
    assert whole.verdict.sentence == f"Longest of 3 launches: {launch().verdict.sentence}"
    assert whole.gpu_time_ns == pytest.approx(270e3)


def test_headroom_explains_the_same_loss() -> None:
    """Time x (1 - 1 / headroom) of the sum is the sum of what its launches lose; one without a headroom leaves none."""
    one, two = launch(100), launch(700)
    whole = aggregate([one, two])
    lost_us = 100 * (1 - 1 / (one.verdict.distances.headroom or 1)) + 700 * (
        1 - 1 / (two.verdict.distances.headroom or 1)
    )
    assert 800 * (1 - 1 / (whole.verdict.distances.headroom or 1)) == pytest.approx(lost_us)
    assert (
        aggregate([one, replace(two, verdict=replace(two.verdict, distances=Distances()))]).verdict.distances.headroom
        is None
    )


def test_traps_of_any_launch_are_traps_of_the_sum() -> None:
    """Flags are united, and a part that is estimated or from a data sheet is marked in the whole."""
    counted = launch(200, flags=("bank_conflicts",))
    estimated = launch(flop_source="estimated", flags=("bank_conflicts", "clocks_moved"), synthetic=True)
    fp32 = replace(estimated.pipes["fp32"], peak_source="datasheet")
    published = replace(estimated, pipes={**estimated.pipes, "fp32": fp32})
    whole = aggregate([counted, published])
    assert whole.flags == ("bank_conflicts", "clocks_moved")
    assert whole.flop_source == {"fp32": "estimated"}
    assert (whole.pipes["fp32"].source, whole.pipes["fp32"].peak_source) == ("estimated", "datasheet")
    assert whole.kernel.synthetic


def test_origin_is_kept_where_all_launches_agree() -> None:
    """Process, device and range of the sum are those of all its launches, or missing."""
    one = with_kernel(launch(), device=0, process="python 1", nvtx_range="step/forward")
    other = with_kernel(launch(90), device=0, process="python 2", nvtx_range="step/backward")
    kernel = aggregate([one, other]).kernel
    assert (kernel.device, kernel.process, kernel.nvtx_range) == (0, None, None)


def test_sources_of_bytes_are_all_named() -> None:
    """Bytes that came from two kinds of counters say both."""
    assert aggregate([launch(), with_level(launch(90), source="lts__t_bytes")]).levels["dram"].source == (
        "dram_read + dram_write; lts__t_bytes"
    )


def test_work_grows_with_the_launches_and_no_faster() -> None:
    """Each launch's pipes are looked at a fixed number of times, however many launches there are."""

    def looks(count: int) -> int:
        seen = 0

        class Counting(dict[str, Pipe]):
            def get(self, *arguments: Any) -> Any:
                nonlocal seen
                seen += 1
                return super().get(*arguments)

        one = launch()
        aggregate([replace(one, pipes=Counting(one.pipes)) for _ in range(count)])
        return seen

    assert looks(400) == 10 * looks(40)
