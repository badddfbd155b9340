"""The columns of the list: quotients of sums, ranges where launches differ, and nothing invented."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support import samples

from rooflens import format as fmt
from rooflens.model.records import Analysis, Gain, Limit, Move
from rooflens.model.summary import KernelSummary
from rooflens.model.verdict.thresholds import default_thresholds
from rooflens.report.content import build_content
from rooflens.report.page.kernels import ValueCell, columns, filled, time_parts, written


def launch(duration_us: float, dram_bytes: float, flop: float, **counters: float) -> Analysis:
    """Make one launch of the kernel `k` on an A100: 1.555 TB/s at DRAM and 19.5 TFLOP/s of fp32."""
    made = samples.analysis(samples.Sample("k", "memory", duration_us, "dram", {"dram": dram_bytes}, {"fp32": flop}))
    return replace(made, kernel=replace(made.kernel, counters={**made.kernel.counters, **counters}))


def row(*analyses: Analysis) -> dict[str, ValueCell]:
    """Read the cells of the first kernel of a page of these launches."""
    content = build_content([samples.report(analyses)], "test", default_thresholds())
    offered = columns(gpus=1, reports=1)
    cells = written(content.listed[0], "v1", offered)
    return {column.key: cell for column, cell in zip(offered, cells, strict=True)}


def test_amounts_are_those_of_all_launches_and_shares_of_the_median_one() -> None:
    """Two launches of 1 and 3 ms: 4 ms, 6 GFLOP and 2 GB; rates, shares and intensity are the longer launch's."""
    cells = row(launch(1000, 1.5e9, 5e9), launch(3000, 0.5e9, 1e9))
    raw = {
        key: float(cells[key].raw)
        for key in (
            "launches",
            "time",
            "share",
            "dram_per_byte",
            "dram_share",
            "work_amount_per_s",
            "kernel_dram_bytes",
        )
    }
    assert raw == pytest.approx(
        {
            "launches": 2,
            "time": 4e6,
            "share": 1,
            "dram_per_byte": 2,
            "dram_share": 0.5e9 / 3e-3 / 1.555e12,
            "work_amount_per_s": 1e9 / 3e-3,
            "kernel_dram_bytes": 2e9,
        }
    )
    assert cells["kernel_work"].text == "6.00 GFLOP"
    assert (cells["dram_per_byte"].text, cells["time"].text) == ("2.00", "4.00 ms")


def test_the_part_of_its_roof_is_of_the_lowest_one() -> None:
    """At 3 FLOP/B the slope of DRAM allows 4.67 TFLOP/s: 1.5 TFLOP/s are 32 % of that, not of the fp32 peak."""
    cells = row(launch(4000, 2e9, 6e9))
    assert float(cells["roof"].raw) == pytest.approx(1.5e12 / (3 * 1.555e12), rel=1e-6)
    assert cells["roof"].text == "32 %"


def test_launches_that_differ_have_a_span() -> None:
    """Grid, block, registers and shared memory give least and most, and both are exported."""
    one, other = launch(10, 1e6, 1e6, registers_per_thread=40), launch(20, 1e6, 1e6, registers_per_thread=40)
    other = replace(other, kernel=replace(other.kernel, grid=(8, 4, 2)))
    cells = row(one, other)
    assert (cells["grid_size"].text, cells["grid_size"].raw, cells["grid_size"].also) == ("64 to 1,024", "1024", "64")
    assert (cells["registers_per_thread"].text, cells["block_size"].text) == ("40", "256")
    assert (cells["smem_per_block_bytes"].text, cells["smem_per_block_bytes"].raw) == (fmt.MISSING, "")


def test_occupancy_spans_the_launches_and_is_missing_where_one_lacks_it() -> None:
    """20 % and 60 % give a range; if one launch lacks the counter, there is none."""
    first, second = (launch(time, 1e6, 1e6, achieved_occupancy=part) for time, part in ((1000, 0.2), (3000, 0.6)))
    assert (row(first, second)["occupancy"].text, row(first, second)["occupancy"].raw) == ("20 % to 60 %", "0.6")
    assert row(first, launch(3000, 1e6, 1e6))["occupancy"].raw == ""


def test_gain_and_limit_are_the_median_launch_s() -> None:
    """The launch of 200 us gives both factors, and the 100 us that its floor and its move leave."""
    made = [
        replace(
            one,
            verdict=replace(
                one.verdict,
                limit=Limit(limit, time_ns / limit, "DRAM traffic"),
                moves=(Move("coalesce", "coalesce", gain=Gain(gain, time_ns / gain)),),
            ),
        )
        for one, time_ns, gain, limit in (
            (launch(100, 1e6, 1e6), 1e5, 3.0, 4.0),
            (launch(200, 1e6, 1e6), 2e5, 1.6, 2.0),
        )
    ]
    cells = row(*made)
    assert float(cells["verdict_gain_factor"].raw) == 1.6
    assert float(cells["verdict_limit_factor"].raw) == 2.0
    assert float(cells["verdict_limit_floor_ns"].raw) == pytest.approx(1e5)
    assert cells["verdict_gain_factor"].text == "1.6x"


def test_failed_launches_have_no_numbers() -> None:
    """A failed kernel is marked, and all its numbers are missing rather than zero."""
    cells = row(samples.failed(index=0), samples.failed(index=1))
    assert (cells["bound"].text, cells["bound"].raw, cells["launches"].raw) == ("failed", "failed", "2")
    assert {
        cells[key].raw
        for key in (
            "time",
            "share",
            "leader",
            "roof",
            "verdict_limit_factor",
            "work_amount_per_s",
            "dram_per_byte",
            "grid_size",
        )
    } == {""}


def test_columns_without_a_value_are_left_out() -> None:
    """A page without FLOPs offers no intensity; GPU and report are shown at first only if there are several."""
    content = build_content([samples.report(samples.without_flops())], "test", default_thresholds())
    offered = columns(gpus=1, reports=1)
    keys = {column.key for column, _ in filled(offered, [written(group, "v1", offered) for group in content.listed])}
    assert {"name", "time", "bound", "dram_share"} <= keys
    assert not {"dram_per_byte", "roof", "registers_per_thread"} & keys
    for gpus, reports in ((1, 2), (2, 1)):
        shown = {column.key for column in columns(gpus=gpus, reports=reports) if column.shown}
        assert ("gpu" in shown, "report" in shown) == (gpus > 1, reports > 1)


def test_the_bar_of_a_kernel_is_parted_by_verdict() -> None:
    """A kernel with half the longest kernel's time has half its bar, divided by the time of each verdict."""
    mixed = replace(launch(30, 1e6, 1e6), verdict=samples.every_verdict()[2].verdict)
    other = replace(launch(80, 1e6, 1e6), kernel=replace(launch(80, 1e6, 1e6).kernel, name="longest"))
    content = build_content([samples.report([launch(10, 1e6, 1e6), mixed, other])], "test", default_thresholds())

    def parts(kernel: KernelSummary) -> list[tuple[str, float]]:
        return time_parts(kernel.class_ns, kernel.time_share, 2 / 3)

    assert parts(content.listed[0]) == [("memory", pytest.approx(1))]
    assert parts(content.listed[1]) == [("memory", pytest.approx(1 / 8)), ("latency", pytest.approx(3 / 8))]
